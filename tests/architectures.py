"""Tiny random encoders of four architectures, with more heads than layers, as models and as folders."""

from functools import cache
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

from analysis.encoders.models import load_tokenizer

LAYERS, HEADS = 2, 3
ARCHITECTURES = ("bert", "distilbert", "roberta", "electra")
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
}


def config(architecture: str, vocabulary: int):
    """The configuration of a tiny encoder."""
    if architecture == "bert":
        return BertConfig(vocab_size=vocabulary, max_position_embeddings=128, **SIZES)
    if architecture == "electra":
        return ElectraConfig(vocab_size=vocabulary, max_position_embeddings=128, embedding_size=16, **SIZES)
    if architecture == "roberta":
        positions = {"max_position_embeddings": 130, "pad_token_id": 1, "type_vocab_size": 1}
        return RobertaConfig(vocab_size=vocabulary, **positions, **SIZES)
    return DistilBertConfig(
        vocab_size=vocabulary,
        max_position_embeddings=128,
        dim=24,
        n_layers=LAYERS,
        n_heads=HEADS,
        hidden_dim=32,
        initializer_range=0.3,
    )


CLASSES = {"bert": BertModel, "electra": ElectraModel, "roberta": RobertaModel, "distilbert": DistilBertModel}


def build(architecture: str, vocabulary: int = 50) -> PreTrainedModel:
    """A tiny encoder with random weights, the same at every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return CLASSES[architecture](config(architecture, vocabulary)).eval()


def projections(model: PreTrainedModel) -> list[torch.nn.Linear]:
    """Every layer's output projection of attention, whose input columns are the heads side by side."""
    names = ("attention.output.dense", "attention.out_lin")
    return [module for name, module in model.named_modules() if name.endswith(names)]


@cache
def byte_level_tokenizer() -> PreTrainedTokenizerBase:
    """A small byte-level vocabulary that marks texts as RoBERTa does: <s> a </s></s> b </s>."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {"bos_token": "<s>", "cls_token": "<s>", "sep_token": "</s>", "eos_token": "</s>"}
    names |= {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=128, **names)


def save(architecture: str, folder: Path) -> Path:
    """A checkpoint folder of an architecture, as save_pretrained writes it."""
    tokenizer = byte_level_tokenizer() if architecture == "roberta" else load_tokenizer("tiny")
    build(architecture, len(tokenizer)).save_pretrained(folder / architecture)
    tokenizer.save_pretrained(folder / architecture)
    return folder / architecture
