# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 7c. What agrees with Kovaleva et al. 2019?
#
# **Question.** What `07_kovaleva_patterns` and `07_kovaleva_disable` found, beside what Kovaleva et al. published. **Their
# encoder is BERT-base: another model, but for the profile `paper`.** What can be compared is which of two things is
# larger, and where in the encoder.
#
# *Source: Kovaleva et al. 2019, section 4 and Table 1; values of the article, of the authors' notebook, and of later work
# of the same laboratory.*

# %% tags=["parameters"]
profile: str = "offline"
encoder: str = "minilm"

# %%
from IPython.display import Markdown

from analysis.encoders import load_encoder
from analysis.figures import finding, forest_plot, style
from analysis.papers.kovaleva2019.measures import CLAIMS, TABLES, measures
from analysis.scores.sink import sink
from analysis.statistics.claim_pages import claims_markdown
from analysis.statistics.claims import claim_table
from analysis.statistics.training import trained_runs
from analysis.study import Results
from analysis.texts import TASKS as TASK_NAMES

style()
results = Results(profile)

# %% [markdown]
# ## The claims
#
# Each claim of the article that can be measured, with the verdict on this encoder. Runs that did not train successfully are left
# out. Intervals are over ten blocks of sequences, and over runs too where there are three; those of starts are over seeds. Where
# a claim says that some head exists, the head is chosen on one half of the sequences and read on the other.

# %%
finetune = results.join_parts("finetune", [*TASK_NAMES], every=False)
trained, runs = trained_runs(finetune), finetune[["task", "seed"]].drop_duplicates()
finding(f"{len(trained)} of {len(runs)} fine-tuning runs trained successfully.")

# %%
tables = {name: results.load_table(f"kovaleva_{name}") for name in TABLES}
accuracy = finetune[finetune["metric"] == "accuracy"].groupby("task")["constant"].first()
frames = measures(tables, trained, accuracy.to_dict(), sink(load_encoder(encoder)))
claims = claim_table(CLAIMS, frames)
results.save_table(claims, "claims-kovaleva2019")
results.save_figure(forest_plot(claims, CLAIMS), "kovaleva-claims")

# %%
Markdown(claims_markdown(claims, CLAIMS))

# %% [markdown]
# *How far to trust it.* The patterns are those of a labeller whose quality `07_kovaleva_patterns` shows. The heterogeneous
# share depends on the length of the inputs as much as on the task. Where a claim is inconclusive, the sample is too small for
# its interval to leave the threshold; `07_kovaleva_disable` says what it could have shown.
