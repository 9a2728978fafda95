# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 5. Surface patterns: what does the encoder look at?
#
# **Question.** How much attention goes to neighbours, to the special tokens and to punctuation, layer by layer; how
# broad is it; does attention to `[SEP]` matter to the model; and do heads of one layer behave alike?
#
# The text is running text, two paragraphs to a sequence: `[CLS] paragraph-1 [SEP] paragraph-2 [SEP]`. Every share is a
# row of the sieve bank: a sieve bias score times the marked token pairs, over $T$ and the rows.
#
# *Source: Clark et al. 2019, "What Does BERT Look At?", sections 3 and 6. The article's encoder is BERT-base on
# Wikipedia; its values stand beside ours as those of another model on another text.*

# %% tags=["parameters"]
profile = "offline"
encoder = "minilm"
passage_source = "bundled"  # or hub (Wikipedia), a CoNLL-U file with documents, a file of WikiText
unit = "paragraph"  # what passages are made of; sentence: as the released code
passages = 150
segment_ids = "zeros"  # of both paragraphs, as in the released code; pair: 0 and 1, as in pre-training
max_tokens = 128
majority = 0.5  # the share of its attention above which a head specialises
gradient_passages = 40
mask_probability = 0.15  # of the hidden tokens; 0 hides nothing and takes the loss at every token
head_epochs = 5  # of training a masked-language head, for an encoder that has none
distance_passages = 60
layer_permutations = 999
seed = 0  # of passages, masks, scaling and permutations
device = "cpu"
precision = "float32"

# %%
import numpy as np
from IPython.display import Markdown

from analysis.encoders import load_encoder
from analysis.figures import finding, style
from analysis.papers.clark2019 import (
    behaviours,
    distance_table,
    embed,
    entropy_layers,
    example_heads,
    exemplars,
    gradient_heads,
    gradient_importance,
    gradient_layers,
    gradient_table,
    head_distances,
    language_model,
    layer_test,
    layers_beside_published,
    published,
    sentences,
    specialist_counts,
    surface_layers,
    surface_patterns,
    surface_scores,
    surface_table,
    uniform_values,
)
from analysis.scores import read_attention
from analysis.study import Results
from analysis.texts import load_passages

style()
results = Results(profile)
model = load_encoder(encoder, device, precision)
results.record_weights(encoder, model.digest)
examples = load_passages(passage_source, passages, seed, model.tokenizer, max_tokens, unit)

# %% [markdown]
# ## One pass over the passages
#
# Scores of the few sieves that are needed and, beside them, the entropy of every row of attention.

# %%
scores = surface_scores(model, examples, max_tokens, segment_ids)
table, uniform = surface_table(scores), uniform_values(scores)
results.save_table(table, "clark_surface")
Markdown(
    f"{model.name} has {model.layers} layers of {model.heads} heads. It reads {len(examples)} passages of "
    f"{scores.tokens.mean().item():.0f} tokens on average, with segment ids {segment_ids}."
)

# %% [markdown]
# ## F2. Neighbours, special tokens, punctuation
#
# `[SEP]` stands twice in each passage and `[CLS]` once. The dots at the right edge show what a head that attends uniformly
# gives them. The third panel asks whether `[SEP]` is where a head rests when it finds nothing: then the `[SEP]` tokens
# themselves attend to `[SEP]` too. Dashed lines are the published means of **BERT-base, another model on another text**.

# %%
bert_base = surface_layers()
results.save_figure(surface_patterns(table, uniform, bert_base), "clark-F2-surface")

# %%
finding(sentences.most_attended(table, bert_base))

# %%
finding(sentences.neighbour_heads(table, majority, published.specialists()))

# %%
overview = specialist_counts(table, uniform, majority)
overview.style.format(precision=3).hide().set_caption(f"Heads that give one target more than {majority:.0%}")

# %% [markdown]
# The article finds that in the middle layers of BERT-base more than half of all attention goes to `[SEP]`. Its text
# counts more heads for the next token than its own figure shows.
#
# ## F1. Heads that show a pattern
#
# For each kind, the head that shows it most, on `[CLS]` and the end of the first passage. A head stands for a target
# only where it attends to no other target more; where no head does, the panel says so. Attention to the tokens that are
# left out is not drawn, and the rest is divided by its sum.

# %%
chosen = exemplars(table)
layout, attention = read_attention(model, examples[0], max_tokens, segment_ids)
maps = {
    f"{kind}\nlayer {place[0]}, head {place[1]}" if place else kind: attention[place] if place else None
    for kind, place in chosen.items()
}
results.save_figure(example_heads(maps, layout.tokens), "clark-F1-heads")

# %%
finding(sentences.missing_kinds(chosen))

# %% [markdown]
# *How far to trust it.* One passage is an illustration. The table above says how strong the heads are.
#
# ## F4. How broad is attention?
#
# The entropy of a row of attention, mean over rows and passages. The dotted line is attention that is spread evenly; the
# dashed one shows the published means of BERT-base.

# %%
results.save_figure(entropy_layers(table, uniform, bert_base), "clark-F4-entropy")

# %%
finding(sentences.broadest_layer(table, uniform["entropy"]))

# %% [markdown]
# ## Beside the published values
#
# Layer means that the article's figures show for **BERT-base, another model on another text**, and those of this
# encoder. Layers of encoders of different depth do not correspond; only the course over the layers can be compared.

# %%
compared = layers_beside_published(table)
results.save_table(compared, "clark_surface_layers")
wide = compared.pivot(index="layer", columns="statistic", values=["bert_base_published", "this_encoder"])
names = {"bert_base_published": "BERT-base (published)", "this_encoder": model.name}
wide = wide.reindex(columns=compared["statistic"].unique(), level=1)
wide.rename(columns=names, level=0).style.format(precision=2, na_rep="")

# %% [markdown]
# ## F3. Does attention to `[SEP]` matter?
#
# The absolute gradient of the loss of guessing hidden tokens with respect to every attention weight: how much the loss
# would change if the head attended a little more there. Every passage has a gradient of its own, and special tokens are
# never hidden. An encoder without a masked-language head gets one, trained on these passages while the encoder stays
# as it is.

# %%
guesser = language_model(encoder, examples, head_epochs, max_tokens, segment_ids, seed, device)
importance = gradient_importance(
    guesser,
    examples[:gradient_passages],
    mask_probability,
    max_tokens=max_tokens,
    segment_ids=segment_ids,
    seed=seed,
)
results.save_table(gradient_table(importance), "clark_gradients")
results.save_table(gradient_heads(importance), "clark_gradients_heads")
results.save_figure(gradient_layers(gradient_heads(importance), guesser.origin), "clark-F3-gradients")

# %%
finding(sentences.gradient_ratios(gradient_table(importance)))

# %%
Markdown(
    f"The masked-language head: {guesser.origin}. Over {importance.sizes['sequence']} passages its loss is "
    f"{importance.loss.mean().item():.2f} nats, and it guesses {importance.accuracy.mean().item():.0%} of the tokens."
)

# %% [markdown]
# In the article the gradients for `[SEP]` fall where attention to `[SEP]` rises. An encoder that rests on `[CLS]`
# instead (figure F2) should show the same for `[CLS]`.
#
# *How far to trust it.* A gradient is a slope, not an ablation, and its size is that of one loss. Values of different
# layers can be compared, those of different models cannot. A head that was trained briefly guesses badly; what it says
# about the encoder is a hint.
#
# ## Do heads of one layer behave alike?
#
# The Jensen-Shannon distance between every two heads, summed over all tokens, compared within and between layers. The
# notebook `05_clark_syntax` shows a map of the heads in the plane (figure F6).

# %%
distances = head_distances(model, examples[:distance_passages], max_tokens, segment_ids)
results.save_table(distance_table(distances), "clark_distances")
places, stress = embed(distances, seed)
results.save_table(places.assign(behaviour=behaviours(table), stress=stress), "clark_clusters")

# %%
tested = layer_test(distances, layer_permutations, seed)
most = np.log(2) * distances.attrs["tokens"]
finding(sentences.layers_alike(tested.within / most, tested.between / most, tested.p))

# %% [markdown]
# *How far to trust it.* The test permutes the layers. It says whether heads of a layer are more alike than others, not
# why.
