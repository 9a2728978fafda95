"""The claims chapter, run on few sequences."""

from chapters import opened_results, run_cells

from analysis.encoders.models import load_encoder
from analysis.papers.pande2021.measures import CLAIMS
from analysis.scores.extraction import extract, extract_controls
from analysis.study.claims import judged
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse


def test_claims_of_an_encoder_in_a_folder(tiny, monkeypatch, tmp_path):
    """Its name in the scores is the last part of its path, which finds no encoder."""
    folder = tmp_path / "an encoder"
    tiny.model.save_pretrained(folder)
    tiny.tokenizer.save_pretrained(folder)
    examples = load_examples("toy-mrpc", split="dev", n=12)
    arguments = load_encoder(folder), examples, parse(examples)
    scores = extract(*arguments)
    assert scores.attrs["encoder"] == folder.name
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    saved = opened_results(monkeypatch, scores, extract_controls(*arguments))
    run_cells("04_claims", f"tasks, replicates, encoder = ['toy-mrpc'], 99, {str(folder)!r}")
    claims = judged(saved, CLAIMS).set_index("claim")
    assert claims.loc["C9b", "token"] in ("[CLS]", "[SEP]")
