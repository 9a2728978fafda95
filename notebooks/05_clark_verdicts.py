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
profile: str = "offline"
encoder: str = "minilm"

# %%
from IPython.display import Markdown

from analysis.encoders import load_encoder
from analysis.figures import forest_plot, style
from analysis.papers.clark2019.measures import CLAIMS, TABLES, measures
from analysis.scores.sink import sink
from analysis.statistics.claim_pages import claims_markdown
from analysis.statistics.claims import claim_table
from analysis.study import Results

style()
results = Results(profile)

# %% [markdown]
# ## The claims
#
# Each sentence of the article that can be measured, with the verdict on this encoder. The article takes `[SEP]` for the token
# where heads rest; the claims ask the same of this encoder's own sink. Intervals of surface patterns are t intervals over ten
# blocks of passages, those of accuracies are over sentences or documents, those of probes over seeds.

# %%
frames = measures({name: results.load_table(f"clark_{name}") for name in TABLES}, sink(load_encoder(encoder)))
claims = claim_table(CLAIMS, frames)
results.save_table(claims, "claims-clark2019")
results.save_figure(forest_plot(claims, CLAIMS), "clark-claims")

# %%
Markdown(claims_markdown(claims, CLAIMS))

# %% [markdown]
# *How far to trust it.* Heads are chosen on one half of the data and scored on the other, both ways; the published ones
# are chosen on what they are scored on. The masked-language head behind the gradients is trained here and guesses badly.
# The article does not say what its head chooses antecedents among: here it chooses among preceding mentions, as the rules do;
# `05_clark_syntax` shows the head that may choose any word. It and `05_clark_surface` show all published values beside ours.
