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
profile = "offline"
encoder = "minilm"

# %%
from analysis.encoders import encoder_note
from analysis.figures import claim_strip, finding, style
from analysis.papers.kovaleva2019.measures import CLAIMS, TABLES, measures
from analysis.statistics.claim_tables import claim_table
from analysis.statistics.training import trained_runs
from analysis.study import Results
from analysis.texts import TASKS as TASK_NAMES

style()
results = Results(profile)

# %% [markdown]
# ## The claims
#
# Each claim of the article that can be measured, with the verdict on this encoder and what a control gives. A claim about
# all tasks is judged by its least favourable one. A run that did not train successfully is
# at chance and no evidence. Intervals over heads draw the heads of each layer anew; those of shares,
# of changes and of links are over sequences; those of starts are over seeds.

# %%
finetune = results.join_parts("finetune", [*TASK_NAMES], every=False)
trained, drawn = trained_runs(finetune), finetune[["task", "seed"]].drop_duplicates()
failed = [f"{row.task}, run {row.seed}" for row in drawn.itertuples() if (row.task, row.seed) not in trained]
finding(
    f"{len(trained)} of {len(drawn)} fine-tuning runs trained successfully; left out are "
    f"{'; '.join(failed) or 'none'}."
)

# %%
known = {
    name: results.load_table(f"kovaleva_{name}")
    for name in TABLES
    if f"kovaleva_{name}" in results.table_names()
}
accuracy = finetune[finetune["metric"] == "accuracy"].groupby("task")["constant"].first()
frames = measures(known, trained, accuracy.to_dict())
claims = claim_table(CLAIMS, frames, drawn="heads of each layer").assign(encoder=encoder_note(encoder))
results.save_table(claims, "claims-kovaleva2019")
results.save_figure(claim_strip(claims, CLAIMS), "kovaleva-claims")

# %%
columns = ["claim", "published", "ours", "n", "verdict", "control_value"]
claims[columns].style.hide().set_properties(**{"text-align": "left", "vertical-align": "top"})

# %%
print(", ".join(f"{count} {verdict}" for verdict, count in claims["verdict"].value_counts().items()))

# %% [markdown]
# *How far to trust it.* The patterns are those of a labeller whose quality `07_kovaleva_patterns` shows. The heterogeneous
# share depends on the length of the inputs as much as on the task. Where a claim is undecided, the sample is too small for
# its interval to leave the bound; `07_kovaleva_disable` says what it could have shown.
