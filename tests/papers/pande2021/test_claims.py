"""The claims chapter, run on few sequences."""

import jupytext
import matplotlib.pyplot as plt

from analysis.encoders.models import load_encoder
from analysis.files import ROOT
from analysis.scores.extraction import scored_with_controls
from analysis.study import results
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse


def test_claims_of_an_encoder_in_a_folder(monkeypatch, tmp_path):
    """Its name in the scores is the last part of its path, which finds no encoder."""
    folder = tmp_path / "an encoder"
    tiny = load_encoder("tiny")
    tiny.model.save_pretrained(folder)
    tiny.tokenizer.save_pretrained(folder)
    examples = load_examples("toy-mrpc", split="dev", n=12)
    scores, control = scored_with_controls(load_encoder(folder), examples, parse(examples))
    assert scores.attrs["encoder"] == folder.name
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    saved = results.Results("offline")
    monkeypatch.setattr(saved, "load_scores", lambda task, run: scores)
    monkeypatch.setattr(saved, "load_controls", lambda task, run, second=False: control)
    monkeypatch.setattr(saved, "save_figure", lambda figure, name: figure.canvas.draw())
    monkeypatch.setattr(results, "Results", lambda profile: plt.switch_backend("agg") or saved)
    script = jupytext.read(ROOT / "notebooks/04_claims.py")
    parameters, *cells = (cell.source for cell in script.cells if cell.cell_type == "code")
    fewer = f"tasks, replicates, encoder = ['toy-mrpc'], 99, {str(folder)!r}"
    exec(compile("\n".join([parameters, fewer, *cells]), "04_claims", "exec"), {})
    claims = saved.load_table("claims-pande2021").set_index("claim")
    assert claims.loc["C9b", "token"] in ("[CLS]", "[SEP]")
