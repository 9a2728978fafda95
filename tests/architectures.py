"""Tiny random encoders of the families in docs/encoders.md, with more heads than layers, as models and as folders."""

from functools import cache
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from analysis.encoders.models import load_tokenizer

LAYERS, HEADS = 2, 3
ARCHITECTURES = ("bert", "distilbert", "roberta", "electra", "mpnet")  # on which everything works
SENTENCES = (
    "The quick brown fox didn't see the lazy dog , but the dog saw it .",
    "She says that he likes the old red car !",
    "A cat sat on the mat , and a dog barked at the cat .",
)
SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 32,
    "initializer_range": 0.3,
    "max_position_embeddings": 128,
}
FIRST_TWO = {"max_position_embeddings": 130, "pad_token_id": 1}  # positions 0 and 1 are never used
# What the families set apart from the sizes.
FAMILIES = {
    "bert": {},
    "distilbert": {"dim": 24, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 32},
    "roberta": FIRST_TWO | {"type_vocab_size": 1},
    "electra": {"embedding_size": 16},
    "camembert": FIRST_TWO | {"type_vocab_size": 1},
    "xlm-roberta": FIRST_TWO | {"type_vocab_size": 1},
    "mpnet": FIRST_TWO,
    "albert": {"embedding_size": 16},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "modernbert": {"local_attention": 8, "global_attn_every_n_layers": 2, "pad_token_id": 1}
    | dict.fromkeys(("bos_token_id", "cls_token_id"), 0)
    | dict.fromkeys(("eos_token_id", "sep_token_id"), 2),
}
SENTENCE_PIECES = {  # their special tokens stand in the vocabulary, in this order
    "camembert": (transformers.CamembertTokenizer, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]),
    "xlm-roberta": (transformers.XLMRobertaTokenizer, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]),
    "albert": (transformers.AlbertTokenizer, ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]),
    "deberta-v2": (transformers.DebertaV2Tokenizer, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]),
}
BYTE_LEVEL = ("roberta", "mpnet", "modernbert")


def config(architecture: str, vocabulary: int):
    return transformers.AutoConfig.for_model(
        architecture, vocab_size=vocabulary, **SIZES | FAMILIES[architecture]
    )


def build(architecture: str, vocabulary: int = 50) -> PreTrainedModel:
    """A tiny encoder with random weights, the same at every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return transformers.AutoModel.from_config(config(architecture, vocabulary)).eval()


def projections(model: PreTrainedModel) -> list[torch.nn.Linear]:
    """Every layer's output projection of attention, whose input columns are the heads side by side."""
    names = ("attention.output.dense", "attention.out_lin", "attention.attn.o")
    return [module for name, module in model.named_modules() if name.endswith(names)]


@cache
def byte_level_tokenizer() -> PreTrainedTokenizerBase:
    """A small byte-level vocabulary that marks texts as RoBERTa does: <s> a </s></s> b </s>."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    options = {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet(), "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, **options)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {"bos_token": "<s>", "cls_token": "<s>", "sep_token": "</s>", "eos_token": "</s>"}
    names |= {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=128, **names)


@cache
def tokenizer_of(architecture: str) -> PreTrainedTokenizerBase:
    """A small tokenizer of the kind that the family has: WordPiece, byte-level or SentencePiece."""
    if architecture in BYTE_LEVEL:
        return byte_level_tokenizer()
    if architecture not in SENTENCE_PIECES:
        return load_tokenizer("tiny")
    kind, special = SENTENCE_PIECES[architecture]
    unknown = next(name for name in special if "unk" in name.lower())
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    options = {"special_tokens": special, "unk_token": unknown, "show_progress": False}
    tokenizer.train_from_iterator(SENTENCES, trainers.UnigramTrainer(vocab_size=90, **options))
    vocabulary = tokenizer.get_vocab()
    pieces = [(piece, 0.0 if piece in special else -2.0) for piece in sorted(vocabulary, key=vocabulary.get)]
    return kind(vocab=pieces, model_max_length=128)


def save(architecture: str, folder: Path) -> Path:
    """A checkpoint folder of an architecture, as save_pretrained writes it."""
    tokenizer = tokenizer_of(architecture)
    build(architecture, len(tokenizer)).save_pretrained(folder / architecture)
    tokenizer.save_pretrained(folder / architecture)
    return folder / architecture
