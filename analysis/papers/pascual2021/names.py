"""The words of the tables of this paper, apart from the code that needs torch: claims are judged without it."""

ATTENTION, EFFECTIVE, EFFECTIVE_SUM, LOCAL, GLOBAL = MAPS = (
    "attention",
    "effective",
    "effective_sum",
    "local_attribution",
    "attribution",
)
IN_WORDS = {
    ATTENTION: "attention",
    EFFECTIVE: "effective attention",
    EFFECTIVE_SUM: "effective attention with rows' sums kept",
    LOCAL: "local attribution",
    GLOBAL: "attribution",
}
# The difference between attention and attribution, and its two parts: what the head does with its input, and what the
# layers below mix into that input.
WHOLE, VALUES, MIXING = "whole", "values and softmax", "mixing"
PEARSON, SPEARMAN, JSD, TV, TOP_1, TOP_5, TOP_5_OTHER = MEASURES = (
    "pearson",
    "spearman",
    "jensen_shannon",
    "total_variation",
    "top_1",
    "top_5",
    "top_5_other",
)
SHARE, SLOPE = "mixing_share", "jensen_shannon_slope"
PERSISTS, PARTLY, LOST, ABSENT, UNTESTABLE = (
    "in all layers",
    "in some layers",
    "lost",
    "on neither map",
    "untestable",
)
