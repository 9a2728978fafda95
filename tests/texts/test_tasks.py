from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from studies import error_of

from analysis.encoders.measures import match_class
from analysis.texts.examples import Example, sample
from analysis.texts.glue import load_examples, toy_examples
from analysis.texts.tasks import TASKS, TOY_TASKS, Task, original, toy

# Files as GLUE ships them, and their examples: quotes, names of classes, no header (CoLA), numbers, many columns.
FILES = {
    "mrpc": (
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
        "1\t11\t12\tA cat sat .\tA cat was sitting .\n0\t13\t14\tNone .\tNA\n",
        [("A cat sat .", "A cat was sitting .", 1), ("None .", "NA", 0)],
    ),
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        '5\t1\t2\t"""Why"" me?"\tWhy me?\t1\n6\t3\t4\tWho?\tHow?\t0\n',
        [('"""Why"" me?"', "Why me?", 1), ("Who?", "How?", 0)],
    ),
    "sst-2": ('sentence\tlabel\nso "good \t1\nbad \t0\n', [('so "good', None, 1), ("bad", None, 0)]),
    "qnli": (
        "index\tquestion\tsentence\tlabel\n"
        "0\tWho?\tBob did .\tentailment\n1\tWhen?\tIt rained .\tnot_entailment\n",
        [("Who?", "Bob did .", 0), ("When?", "It rained .", 1)],
    ),
    "cola": (
        "gj04\t1\t\tThey saw it.\ngj04\t0\t*\tThey it saw.\n",
        [("They saw it.", None, 1), ("They it saw.", None, 0)],
    ),
    "sts-b": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
        "0\tmain\tfile\t2012\t1\tnone\tnone\tA man runs.\tA man is running.\t5.000\n",
        [("A man runs.", "A man is running.", 5.0)],
    ),
    "mnli": (
        "index\tpairID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n"
        "0\t1c\ttravel\tBob ran .\tBob sat .\tneutral\tcontradiction\n1\t2n\tfiction\tA\tB\tx\tneutral\n",
        [("Bob ran .", "Bob sat .", 2), ("A", "B", 1)],
    ),
}
# Rows per class of the files under DATA_DIR, as its README counts them.
COUNTS = {
    ("mrpc", "train"): {0: 1194, 1: 2474},
    ("mrpc", "test"): {None: 1725},
    ("sst-2", "dev"): {0: 428, 1: 444},
    ("qnli", "dev"): {0: 2702, 1: 2761},
    ("qqp", "train"): {0: 14750, 1: 8747},
    ("rte", "dev"): {0: 146, 1: 131},
    ("cola", "dev"): {0: 322, 1: 721},
}


def write(folder: Path, task: str, content: str, split: str = "dev") -> Path:
    path = folder / TASKS[task].folder / f"{TASKS[task].splits[split].file}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("utf-8"))
    return path


@pytest.mark.parametrize("task", FILES)
def test_texts_labels_and_ids_of_a_folder(tmp_path: Path, task: str) -> None:
    content, examples = FILES[task]
    write(tmp_path, task, content)
    expected = [Example(f"{task}-dev-{row}", *fields) for row, fields in enumerate(examples)]
    assert load_examples(task, tmp_path) == expected
    assert load_examples(task, tmp_path, n=1, seed=3) == sample(expected, 1, 3)


def test_mismatched_genres_are_splits_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, "mnli", FILES["mnli"][0], "dev_mismatched")
    assert load_examples("mnli", tmp_path, "dev_mismatched")[0].id == "mnli-dev_mismatched-0"
    assert write(tmp_path, "mnli", FILES["mnli"][0]).name == "dev_matched.tsv"
    write(tmp_path, "mnli", "index\tsentence1\tsentence2\n0\tA\tB\n", "test_mismatched")
    assert load_examples("mnli", tmp_path, "test_mismatched")[0].label is None


def test_byte_order_mark_windows_lines_and_blank_last_line(tmp_path: Path) -> None:
    write(tmp_path, "mrpc", "\ufeff" + FILES["mrpc"][0].replace("\n", "\r\n") + "\r\n")
    assert [example.text_b for example in load_examples("mrpc", tmp_path)] == ["A cat was sitting .", "NA"]


def test_lines_that_glue_ships_broken_are_skipped_and_counted(tmp_path: Path) -> None:
    """Rows keep their numbers and lines; too many such lines, and too many fields, are errors."""
    broken = "7\t5\t6\tIn two\nlines?\tNo?\t0\n8\t7\t8\tA blank?\tfor a tab? 1\n"
    whole = "".join(f"{row}\t{row}\t{row}\tWhat is {row}?\tIs it {row}?\t1\n" for row in range(4))
    write(tmp_path, "qqp", FILES["qqp"][0] + broken + whole, "train")
    message = r"train.tsv: 3 of 9 lines have too few fields .* the first is line 4$"
    with pytest.warns(UserWarning, match=message):
        examples = load_examples("qqp", tmp_path, "train")
    assert [example.id for example in examples] == [f"qqp-train-{row}" for row in (0, 1, 5, 6, 7, 8)]
    write(tmp_path, "qqp", FILES["qqp"][0] + broken, "train")
    message = error_of(load_examples, "qqp", tmp_path, "train")
    assert "train.tsv, line 4: number of fields is 4, not 6" in message
    write(tmp_path, "qqp", FILES["qqp"][0] + broken + whole.replace("\t1\n", "\t7\n"), "train")
    with pytest.warns(UserWarning, match="skipped"):
        message = error_of(load_examples, "qqp", tmp_path, "train")
    assert "train.tsv, line 7: label '7'" in message


def test_samples_nest_and_draw_every_row_equally_often() -> None:
    examples = [Example(str(row), "text") for row in range(10)]
    counts = Counter()
    for seed in range(2000):
        smaller = sample(examples, 3, seed)
        counts.update(example.id for example in smaller)
        larger = sample(examples, 5, seed)
        assert smaller == [example for example in examples if example in smaller and example in larger]
    # 2000 samples of 3 out of 10: 600 per row, standard deviation sqrt(2000 * .3 * .7) = 20.5
    assert all(abs(counts[str(row)] - 600) < 5 * 20.5 for row in range(10))


def test_hub_rows_keep_numbers_and_lose_the_label_of_unlabelled_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame({"sentence": ["good ", "bad"], "label": [1, -1], "idx": [7, 9]})
    monkeypatch.setattr("analysis.texts.hub.hub_table", lambda dataset, config, split: table)
    examples = load_examples("sst-2", "hub", "test")
    assert examples == [Example("sst-2-test-0", "good", None, 1), Example("sst-2-test-1", "bad", None, None)]


@pytest.mark.parametrize(("task", "split"), list(COUNTS))
def test_real_files_have_the_documented_rows(data_dir: Path, task: str, split: str) -> None:
    examples = load_examples(task, data_dir / "glue", split)
    assert Counter(example.label for example in examples) == COUNTS[task, split]


def test_a_pair_task_of_ones_own_has_a_match_label(tmp_path: Path, monkeypatch):
    """A file like SNLI's: further columns, three labels; two of them do not match."""
    labels, columns = ("entailment", "neutral", "contradiction"), ("sentence1", "sentence2")
    snli = Task(
        "snli", ("accuracy",), labels, folder="SNLI", columns=columns, label_column="gold_label", match="entailment"
    )  # fmt: skip
    monkeypatch.setitem(TASKS, "snli", snli)
    rows = [f"{label}\t( A dog )\tA dog runs .\tAn animal moves .\n" for label in labels]
    write(tmp_path, "snli", "gold_label\tsentence1_binary_parse\tsentence1\tsentence2\n" + "".join(rows))
    label = match_class("snli")
    assert [example.label == label for example in load_examples("snli", tmp_path)] == [True, False, False]
    assert [match_class(name) for name in ("mrpc", "qqp", "qnli", "rte", "mnli")] == [1, 1, 0, 0, 0]


def test_toy_tasks_imitate_tasks_of_glue() -> None:
    assert [original(name) for name in ("toy-qqp", "qqp", "rte", "snli")] == ["qqp", "qqp", "rte", "snli"]
    assert toy("sst-2") == toy("toy-sst-2") == "toy-sst-2"


@pytest.mark.parametrize("task", TOY_TASKS)
def test_splits_share_no_example_and_labels_are_balanced(task):
    splits = {split: toy_examples(task, None, split=split) for split in ("train", "dev", "test")}
    texts = ["\n".join(example.texts) for examples in splits.values() for example in examples]
    assert len(texts) == len(set(texts))
    for examples in splits.values():
        assert sum(example.label for example in examples) == len(examples) // 2
        assert len({example.id for example in examples}) == len(examples)
