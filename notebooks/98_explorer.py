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
# `explorer.html` in the folder of the results: one file without a network, made of every table of heads and of claims
# that the study has written, and of the attention of every head on a few sentences.
#
# The sentences are those of the bundled corpus, whatever data the scores come from: task data are not reprinted.

# %% tags=["parameters"]
profile = "offline"
tasks = ["mrpc", "qqp", "sst-2", "qnli"]
encoder = "minilm"
checkpoint = None  # fine-tuned checkpoints to read instead, {task} and {seed} are filled in
seeds = [0, 1]  # of the fine-tuning runs: the first one's attention is shown
seed = 0  # of the bundled sentences
sentences = 3  # for each task
max_tokens = 128
device = "cpu"
tau = 3.0
alpha = 0.05
relations = ["nsubj", "dobj", "amod", "advmod"]
limit = 6000000  # bytes of the page: over it, the longest sentences are left out

# %%
from analysis.encoders import load_encoder
from analysis.explorer import explorer, head_view, illustrative, pack, role_tables
from analysis.statistics import ROLES
from analysis.study import STATES, Results, paper_titles
from analysis.texts import load_examples, parse

results = Results(profile)
tables = {name: results.load_table(name) for name in results.table_names()}
roles = role_tables(tables, tasks, STATES)
print(f"{len(tables)} tables; scores: {'none' if roles is None else roles.task.nunique()} tasks")

# %% [markdown]
# ## Sentences that show relations
#
# Of each task's sentences, the short ones with many grammatical relations. A pre-trained encoder attends alike in all
# tasks; a fine-tuned one is read where its weights are at hand, and the page says where they are not.

# %%
found = {task: load_examples(task, "bundled", "dev", 50, seed) for task in tasks}
chosen = {task: illustrative(found[task], parse(found[task]), relations, sentences) for task in tasks}

# %%
trained = [task for task in tasks if checkpoint or results.checkpoint(task, seeds[0]).exists()]
packed = []
for task, run in [*((task, None) for task in tasks), *((task, seeds[0]) for task in trained)]:
    packed += pack(
        load_encoder(results.weights(task, run, encoder, checkpoint), device),
        *(chosen[task], parse(chosen[task]), ROLES, STATES[run is not None], task, max_tokens),
    )

# %% [markdown]
# ## The page

# %%
model = load_encoder(encoder, device)
origin = f"{model.name}, results/{profile}"
about = {"title": "Head explorer", "provenance": origin, "papers": paper_titles()}
page = explorer(roles, packed, others=tables, tau=tau, alpha=alpha, limit=limit, **about)
saved = page.save(results.folder / "explorer.html")
print(
    f"{page.described}; {len(page.page) / 1e6:.1f} MB; attention of fine-tuned encoders: {', '.join(trained) or 'none'}"
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
# *What to look at.* One sentence is an illustration, not evidence: the cards of the page above say what a head does over all
# sequences, and how sure that is.
