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
from analysis.figures import claim_strip, style
from analysis.papers.clark2019.measures import CLAIMS, TABLES, measures
from analysis.statistics.claim_tables import claim_table
from analysis.study import Results

style()
results = Results(profile)

# %% [markdown]
# ## The claims
#
# Each sentence of the article that can be measured, with the verdict on this encoder. Intervals over heads draw the heads
# of each layer anew; those of accuracies are the intervals of their tables, over sentences or documents, and the rule
# that a head is compared with is taken as known; those of probes come from their seeds.

# %%
frames = measures({name: results.load_table(f"clark_{name}") for name in TABLES})
claims = claim_table(CLAIMS, frames, drawn="heads of each layer").assign(encoder=encoder_note(encoder))
results.save_table(claims, "claims-clark2019")
results.save_figure(claim_strip(claims, CLAIMS), "clark-claims")

# %%
shown = ["claim", "origin", "published", "ours", "n", "verdict", "control_value"]
claims[shown].style.hide().set_properties(**{"text-align": "left", "vertical-align": "top"})

# %%
print(", ".join(f"{count} {verdict}" for verdict, count in claims["verdict"].value_counts().items()))

# %% [markdown]
# *How far to trust it.* Heads are chosen on one half of the data and scored on the other, both ways; the published ones
# are chosen on what they are scored on. The article takes `[SEP]` for the place where heads rest; where an encoder rests
# on `[CLS]`, the claims marked "this study's" ask the same of `[CLS]`. The masked-language head behind the gradients is
# trained here and guesses badly. The article does not say what its head chooses antecedents among, so both readings
# stand here. `05_clark_surface` and `05_clark_syntax` show all published values beside ours.
