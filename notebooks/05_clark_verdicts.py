# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 5c. What agrees with Clark et al. 2019?
#
# **Question.** What `05_clark_surface` and `05_clark_syntax` found, beside what Clark et al. published. **Their encoder
# is BERT-base, their data are Wikipedia, the Penn Treebank and CoNLL-2012: another model (but for the profile `paper`)
# on other data. Nothing here can be expected to agree in size**; what can be compared is which of two systems is ahead,
# and where in the encoder a pattern sits.
#
# *Source: Clark et al. 2019, sections 3 to 5; values of the article and of the authors' notebook.*

# %% tags=["parameters"]
profile = "offline"
encoder = "minilm"

# %%
from analysis.encoders import encoder_note
from analysis.figures import claim_intervals, style
from analysis.papers.clark2019 import CLAIMS, TABLES, evidence_of, summary_table
from analysis.statistics import claim_table, seed_table
from analysis.study import Results

style()
results = Results(profile)
print(encoder_note(encoder))

# %% [markdown]
# ## The claims
#
# Each sentence of the article that can be measured, with the verdict on this encoder. Intervals over heads draw the heads
# of each layer anew; those of accuracies are the intervals of their tables, over sentences or documents, and the rule
# that a head is compared with is taken as known; those of probes come from their seeds.

# %%
evidence = evidence_of({table: results.load_table(table) for table in TABLES.values()})
claims = claim_table(CLAIMS, evidence).assign(encoder=encoder_note(encoder))
results.save_table(claims, "claims-clark2019")
results.save_figure(claim_intervals(claims, seed_table(CLAIMS, {0: evidence})), "clark-claims")

# %%
shown = ["claim", "published", "ours", "n", "verdict", "control_value"]
claims[shown].style.hide().set_properties(**{"text-align": "left", "vertical-align": "top"})

# %%
print(", ".join(f"{count} {verdict}" for verdict, count in claims["verdict"].value_counts().items()))

# %% [markdown]
# ## Beside the published values

# %%
tables = ["clark_surface", "clark_dependencies", "clark_coreference", "clark_probes"]
companion = summary_table(*(results.load_table(name) for name in tables))
results.save_table(companion, "clark_summary")
headings = {"bert_base_published": "BERT-base (published)", "this_encoder": encoder}
companion.rename(columns=headings).style.format(precision=1, na_rep="–").hide()

# %% [markdown]
# *How far to trust it.* A layer's depth is 0 for the first layer, 100 for the last. Heads are chosen on one half of the
# data and scored on the other, both ways; the published ones are chosen on what they are scored on. Where Table 1 and the authors'
# notebook print different values, both stand here; those of `aux:pass` in Table 1 are probably a slip. The article
# counts more heads for the next token in its text than its figure shows. It does not say what the head that finds
# antecedents chooses among, so that its value stands beside every reading. The published probes have GloVe vectors,
# which are replaced here unless a file is given, and the original alignment. A dash: not published, or too few arcs.
