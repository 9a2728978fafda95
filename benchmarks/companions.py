"""The cost of the analyses of Clark et al. 2019, on trees of UD English EWT or of the bundled documents.

    python benchmarks/companions.py [--repeats 5] [--threads 2]

DATA_DIR names the folder that contains ud_english_ewt/; without it, the bundled documents are read. Scoring heads as
parsers is compared with the forward pass alone on the same batches (competitors take turns, see `timing`). Head
distances and one attention-only probe are timed once. Results go to benchmarks/results/ and, as a table, to the screen.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analysis.encoders.layout import batches, layouts  # noqa: E402
from analysis.encoders.models import load_encoder  # noqa: E402
from analysis.encoders.vectors import word_vectors  # noqa: E402
from analysis.papers.clark2019.distances import head_distances  # noqa: E402
from analysis.papers.clark2019.probes import AttentionProbe, parses, predict, train  # noqa: E402
from analysis.scores.words import attach, split_words  # noqa: E402
from analysis.texts.dependencies import Treebank, conllu_files, read_trees, uas  # noqa: E402
from analysis.texts.passages import load_passages  # noqa: E402
from benchmarks.timing import Values, medians, report  # noqa: E402


def treebank(split: str, folder: Path) -> Treebank:
    """EWT's trees if DATA_DIR is set, otherwise those of 200 bundled documents."""
    data = os.environ.get("DATA_DIR")
    given = [f"{data}/ud_english_ewt/en_ewt-ud-{split}.conllu"] if data else []
    return read_trees(conllu_files(given, folder=folder, n=200, split=split, seed=0))


def seconds(run: Callable[[], object]) -> float:
    """The duration of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def parsing(dev: Treebank, repeats: int) -> Values:
    """Every head in both directions as a parser, compared with the forward pass alone on the same batches."""
    encoder = load_encoder("minilm")
    forms = [part.tolist() for _, part in dev.words.groupby("sentence", sort=False)["form"]]
    kept = split_words(encoder.tokenizer, forms).kept
    inputs = [encoder.inputs([kept[index] for index in batch]) for batch in batches(kept)]

    def forward() -> None:
        with torch.inference_mode():
            for batch in inputs:
                encoder.model(**batch)

    taken = medians({"bare": forward, "attach": lambda: attach(encoder, dev.words, progress=False)}, repeats)
    return {"sentences": len(kept), **taken, "attach / bare, seconds": taken["attach"] / taken["bare"]}


def distances(count: int = 100) -> Values:
    """Jensen-Shannon distances between all heads over passages of up to 128 tokens."""
    encoder = load_encoder("minilm")
    passages = load_passages("bundled", count, 0, encoder.tokenizer)
    tokens = sum(map(len, layouts(encoder.tokenizer, passages)))
    taken = seconds(lambda: head_distances(encoder, passages, progress=False))
    return {"heads": encoder.layers * encoder.heads, "passages": count, "tokens": tokens, "seconds": taken}


def probe(training: Treebank, dev: Treebank) -> Values:
    """One attention-only probe: one pass over the training sentences, with features computed batch by batch."""
    encoder = load_encoder("minilm")
    vectors = word_vectors(encoder, [*training.words["form"], *dev.words["form"]]).values
    data = parses(encoder, training.words, vectors[: len(training.words)])
    test = parses(encoder, dev.words, vectors[len(training.words) :])
    probes = {"attention": AttentionProbe(2 * encoder.layers * encoder.heads, [0])}
    taken = seconds(lambda: train(probes, encoder, data, progress=False))
    [heads] = predict(probes, encoder, test)["attention"]
    return {
        "training sentences": training.words["sentence"].nunique(),
        "seconds": taken,
        "UAS without punctuation": uas(heads, test.words),
    }


def main() -> None:
    """Runs everything, prints a table and writes it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as work:
        dev, training = (treebank(split, Path(work)) for split in ("dev", "train"))
    results = {
        "heads as parsers": parsing(dev, options.repeats),
        "head distances": distances(),
        "attention-only probe": probe(training, dev),
    }
    settings = {"threads": options.threads, "trees": "EWT" if "DATA_DIR" in os.environ else "bundled"}
    report("companions", settings, results)


if __name__ == "__main__":
    main()
