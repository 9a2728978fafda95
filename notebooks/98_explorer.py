# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # The head explorer
#
# The chapters answer for all heads at once which heads have a role and what happens when they are ablated. What does **one** head
# do? This notebook builds `explorer.html`, a single file that works without a network. Point at a head, and the page shows its
# mean score for every role with the interval and the threshold, its ablation effect and importance, and its attention on a
# few sentences. It opens on the head with the largest match score, coloured by the ablation effect; on pairs of texts, a slider
# turns the matching heads to the other text and says how the answer moves ([11_matching](11_matching_all.ipynb)).
#
# The idea is that of BertViz (Vig 2019) and exBERT (Hoover et al. 2020), which show attention; this page adds the statistics of
# the head. The sentences are those of the toy tasks, whatever data the scores come from: task data are not reprinted.

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp", "toy-sst-2", "toy-qnli"]  # tasks whose heads can be browsed
sentences: int = 3  # for each task
threshold: float = 5.0  # match score of a matching head, as in 11_matching

# seldom changed
encoder: str = "minilm"
checkpoint: str | None = None  # fine-tuned checkpoints to read instead, {task} and {seed} are filled in
seeds: list[int] = [0, 1]  # of the fine-tuning runs: the first one's attention is shown
seed: int = 0  # of the sentences of the toy tasks
max_tokens: int = 128
device: str = "cpu"
tau: float = 3.0
alpha: float = 0.05
relations: list[str] = ["nsubj", "dobj", "amod", "advmod"]

# %%
from IPython.display import Image

from analysis.encoders.classifiers import load_classifier
from analysis.encoders.measures import match_class
from analysis.encoders.models import load_encoder
from analysis.explorer.packing import dials, illustrative, pack
from analysis.explorer.view import explorer, head_view
from analysis.files import ROOT
from analysis.statistics.roles import ROLES
from analysis.study.results import STATES, Results
from analysis.synthesis.matching import matching_heads
from analysis.texts.glue import PAIR, load_examples
from analysis.texts.syntax import parse
from analysis.texts.tasks import TASKS, toy

results = Results(profile)
names = results.table_names()
scored_tasks = [task for task in tasks if f"roles-{task}-finetuned" in names]
roles = results.role_tables(scored_tasks) if scored_tasks else None
print(f"{len(scored_tasks)} of {len(tasks)} tasks have role tables in this profile")

# %% [markdown]
# ## Which numbers stand on the card of a head?
#
# Besides its scores, any table with the columns layer and head can add a line to the card: give it a name, the table, a query
# that selects one row per head and run, and the column. The page shows the median over fine-tuning runs, and can colour the grid
# by it; on opening, it does so by the first one.

# %%
NUMBERS = {
    "ablation effect (fall in AUC)": ("matching_effects", "metric == 'auc'", "effect"),
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
# **Try it.** Add `"match score": ("matching_heads", "state == 'pretrained'", "match")` to the numbers, and colour the grid by it.
#
# <details><summary>What happens</summary>
#
# In the grid of every pair task the same few cells stand out, since these scores are taken before fine-tuning.
#
# </details>
#
# ## Which sentences are shown?
#
# Of each task's sentences we take short ones with many syntactic relations, so that most roles occur. Attention before
# fine-tuning is that of one encoder; attention after it is read wherever the weights of a task are at hand, and the page says
# where they are not.

# %%
examples = {task: load_examples(toy(task), split="dev", n=50, seed=seed) for task in tasks}
illustrations = {
    task: illustrative(examples[task], parse(examples[task]), relations, sentences) for task in tasks
}
tuned_tasks = [task for task in tasks if checkpoint or results.checkpoint(task, seeds[0]).exists()]
packed = []
for task, run in [*((task, None) for task in tasks), *((task, seeds[0]) for task in tuned_tasks)]:
    model = load_encoder(results.weights(task, run, encoder, checkpoint), device)
    pairs, state = parse(illustrations[task]), STATES[run is not None]
    packed += pack(model, illustrations[task], pairs, ROLES, state, task, max_tokens)

# %% [markdown]
# ## What does the classifier answer when its matching heads look elsewhere?
#
# The matching heads are those of [11_matching](11_matching_all.ipynb), chosen before fine-tuning. In the rows of words without a counterpart
# in the other text, a *dose* of their attention goes to the words of the other text, or of the own one. The page has the
# log odds of the class of matching pairs for six doses, of the first fine-tuned classifier of each pair task.

# %%
pair_tasks = [task for task in scored_tasks if TASKS[task].pair]
before = [results.load_table(f"roles-{task}-pretrained") for task in pair_tasks]
heads = matching_heads(before, threshold) if before else []
turned = {}
for task in (task for task in pair_tasks if task in tuned_tasks):
    classifier = load_classifier(results.weights(task, seeds[0], encoder, checkpoint), task, device)
    turned |= dials(classifier, illustrations[task], heads, match_class(task), max_tokens)
print(f"{len(heads)} matching heads; {len(turned)} pairs have a dial")

# %% [markdown]
# **Try it.** Take a pair that does not match and move the slider to 1.
#
# <details><summary>What happens</summary>
#
# The log odds rise, as if the texts shared more words, unless the classifier is sure of a match already. The dashed line, the same heads
# turned to their own text, rises less in profile glue-minilm, and on some pairs more in glue-mpnet: at this dose its heads vote for a match
# when they look at a text at all.
#
# </details>
#
# ## The page

# %%
pretrained = load_encoder(encoder, device)
origin = f"{pretrained.name}, results/{profile}"
page = explorer(
    roles, packed, values=values, dials=turned, tau=tau, alpha=alpha, title="Head explorer", provenance=origin
)
page.save(results.folder / "explorer.html")
print(
    f"{page.summary}; {len(page.page) / 1e6:.1f} MB; attention after fine-tuning for {len(tuned_tasks)} tasks"
)

# %% [markdown]
# Open `explorer.html` in a browser. Every view has a link of its own, and `?` lists the keys. A picture of the page of glue-minilm:

# %%
Image(ROOT / "docs" / "explorer.png")

# %% [markdown]
# ## A text of your own
#
# `head_view` shows the same page in a cell, for any one or two texts and any registered sieve. Without role tables it has the
# scores on this text alone.

# %%
head_view(pretrained, PAIR[0], max_tokens=max_tokens)

# %% [markdown]
# **Try it.** Give it two texts and the sieve of matching heads,
# `head_view(pretrained, *PAIR, roles=["match", "block"])`, the pair of [02_score](02_score.ipynb).
#
# <details><summary>What happens</summary>
#
# The cells of *match* are the pairs of equal words in different texts. The matching heads of [11_matching](11_matching_all.ipynb) score
# highest: in the committed run of glue-minilm, heads 1-1 and 2-9.
#
# </details>
#
# **How far to trust it.** One sentence is an illustration and no evidence. The card says what the head does on all sequences, and
# how sure that is.
