"""All sources of real data on the loopback address, small and in their true formats, and profile `paper` at their size.

A Hub serves GLUE, WikiText and a small BERT; a file server serves treebanks, arguments, FrameNet and a spaCy pipeline.
Their texts are those of the bundled corpus, or made up.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import conllu
import hub
import pandas as pd
import spacy
import yaml
from fileserver import FileServer
from framenet import write_framenet
from spacy.tokens import Doc
from spacy.training import Example as TrainingExample

from analysis.files import ROOT
from analysis.papers.niven2019.arguments import bundled_arguments
from analysis.study.downloads import SOURCES
from analysis.texts.glue import load_examples
from analysis.texts.passages import bundled_documents
from analysis.texts.tasks import toy

ENCODER = "test/tiny-bert"
LAYERS = HEADS = 12  # as in BERT-base; 8 dimensions a head
ROWS = 40  # of every split of GLUE
# The tasks of profile `paper` that stay, a regression and the two dev sets of MNLI among them.
SHORT = {
    "common": {
        "tasks": ["mrpc", "sst-2"],
        "pair_tasks": ["mrpc"],
        "single_tasks": ["sst-2"],
    },
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
    hub.write_tiny_bert(folder / "served" / "models" / ENCODER, LAYERS, HEADS)
    datasets = folder / "served" / "datasets"
    hub.write_dataset(datasets / "nyu-mll" / "glue", glue())
    hub.write_dataset(datasets / "Salesforce" / "wikitext", {"wikitext-2-raw-v1": {"test": running_text()}})
    with hub.HubServer(folder / "served") as endpoint, FileServer(files()) as server:
        path = folder / "sources.yaml"
        path.write_text(yaml.safe_dump(listed(server)))
        yield path, hub.client_environment(endpoint, folder / "home")


def listed(server: FileServer) -> dict:
    """The study's own list of sources, with the addresses of the server and without hashes of other files."""
    sources = yaml.safe_load(SOURCES.read_text())
    sources[ENCODER] = {"terms": "none", "encoder": ENCODER}
    del sources["bert-base-uncased"]
    for source in sources.values():
        if "url" in source:
            source["url"] = server.address
            source["files"] = {file: None for file in source["files"] if file in server.files}
    return sources


def glue() -> dict[str, dict[str, pd.DataFrame]]:
    """GLUE in the columns of the Hub: the texts of a toy task like it, with labels by row."""
    tables = {}
    for config, columns in hub.GLUE_COLUMNS.items():
        like = config if config in ("mrpc", "qqp", "qnli") else "mrpc" if len(columns) == 2 else "sst-2"
        tables[config] = {}
        for split in hub.glue_splits(config):
            kind = {"validation": "dev"}.get(split.split("_")[0], split.split("_")[0])
            examples = load_examples(toy(like), split=kind, n=ROWS, seed=len(config))
            parts = zip(*(example.texts[: len(columns)] for example in examples), strict=True)
            texts = {column: [*part] for column, part in zip(columns, parts, strict=True)}
            tables[config][split] = hub.glue_rows(config, split, ROWS).assign(**texts)
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


def files() -> dict[str, bytes]:
    treebanks = [("train", "en_ewt-ud-train"), ("dev", "en_ewt-ud-dev")]
    treebanks += [("dev", "GUM_academic_exposure"), ("test", "GUM_academic_discrimination")]
    contents = {f"{name}.conllu": bundled_documents(6, split).encode() for split, name in treebanks}
    for split, rows in (("train", 1210), ("dev", 316), ("test", 444)):
        table = bundled_arguments(rows, 0, split, productivity=0.6, coverage=0.65).iloc[:, :8]
        contents[f"{split}-full.txt"] = table.to_csv(sep="\t", index=False).encode()
    archives = {"framenet_v17.zip": "framenet_v17", "en_core_web_sm-3.8.0-py3-none-any.whl": "en_core_web_sm"}
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_framenet(folder / "framenet_v17")
        (folder / "en_core_web_sm").mkdir()
        write_pipeline(folder / "en_core_web_sm" / "en_core_web_sm-3.8.0")
        for file, inside in archives.items():
            archive = shutil.make_archive(f"{folder}/archive", "zip", folder, inside)
            contents[file] = Path(archive).read_bytes()
    return contents


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
