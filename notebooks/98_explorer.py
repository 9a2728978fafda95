# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # The head explorer: browse every head
#
# **Question.** Which heads have a role, how sure is that, and what do they do on a sentence? The tables answer the first
# two for all heads at once; a page answers all three for the head you point at. This notebook builds that page,
# `explorer.html` in the folder of the results: one file without a network, made of the role tables, of the effect of
# ablating each head, and of the attention of every head on a few sentences.
#
# The sentences are those of the toy tasks, whatever data the scores come from: task data are not reprinted.

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp", "toy-sst-2", "toy-qnli"]
encoder: str = "minilm"
checkpoint: str | None = None  # fine-tuned checkpoints to read instead, {task} and {seed} are filled in
seeds: list[int] = [0, 1]  # of the fine-tuning runs: the first one's attention is shown
seed: int = 0  # of the sentences of the toy tasks
sentences: int = 3  # for each task
max_tokens: int = 128
device: str = "cpu"
tau: float = 3.0
alpha: float = 0.05
relations: list[str] = ["nsubj", "dobj", "amod", "advmod"]

# %%
from analysis.encoders import load_encoder
from analysis.explorer import explorer, head_view, illustrative, pack
from analysis.statistics import ROLES
from analysis.study.results import STATES, Results
from analysis.texts import load_examples, parse
from analysis.texts.tasks import toy

results = Results(profile)
names = results.table_names()
scored = [task for task in tasks if f"roles-{task}-{STATES[-1]}" in names]
roles = results.role_tables(scored) if scored else None
print(f"scores of {', '.join(scored) or 'no task'}")

# %% [markdown]
# ## Other numbers of heads
#
# Each name has a line on the card, as the median over fine-tuning runs, and can colour the grid. Any table with layer and
# head will do.

# %%
NUMBERS = {  # table, its rows, and the column
    "ablation effect (loss)": ("michel_ablation", "metric == 'loss'", "change"),
    "effect of uniform attention (loss)": (
        "kovaleva_disable",
        "unit == 'head' and metric == 'loss'",
        "change",
    ),
    "importance by gradient": ("michel_importance", "granularity == 'example' and normalised", "importance"),
}
values = {
    name: results.load_table(table).query(rows).rename(columns={column: "value"})
    for name, (table, rows, column) in NUMBERS.items()
    if table in names
}

# %% [markdown]
# ## Sentences that show relations
#
# Of each task's sentences, the short ones with many grammatical relations. A pre-trained encoder attends equally in all
# tasks; a fine-tuned one is read where its weights are at hand, and the page says where they are not.

# %%
examples = {task: load_examples(toy(task), split="dev", n=50, seed=seed) for task in tasks}
illustrations = {
    task: illustrative(examples[task], parse(examples[task]), relations, sentences) for task in tasks
}

# %%
trained = [task for task in tasks if checkpoint or results.checkpoint(task, seeds[0]).exists()]
packed = []
for task, run in [*((task, None) for task in tasks), *((task, seeds[0]) for task in trained)]:
    packed += pack(
        load_encoder(results.weights(task, run, encoder, checkpoint), device),
        *(illustrations[task], parse(illustrations[task]), ROLES, STATES[run is not None], task, max_tokens),
    )

# %% [markdown]
# ## The page

# %%
model = load_encoder(encoder, device)
origin = f"{model.name}, results/{profile}"
page = explorer(roles, packed, values=values, tau=tau, alpha=alpha, title="Head explorer", provenance=origin)
saved = page.save(results.folder / "explorer.html")
print(
    f"{page.summary}; {len(page.page) / 1e6:.1f} MB; attention of fine-tuned encoders: {', '.join(trained) or 'none'}"
)

# %% [markdown]
# Open the file in a browser. Every view has a link of its own, and `?` lists the keys.
#
# ## A text of your own
#
# `head_view` shows the same in a cell, for any one or two texts; a sieve of your own works as a role. Without role
# tables the page has the scores on this text alone.

# %%
head_view(model, "The cat saw the old dog.", max_tokens=max_tokens)

# %% [markdown]
# *How far to trust it.* One sentence is an illustration, not evidence: the cards of the page above say what a head does over all
# sequences, and how sure that is.
