import runpy

from analysis.encoders.models import load_encoder
from analysis.files import ROOT


def test_every_panel_of_the_architecture_is_drawn():
    figure = runpy.run_path(str(ROOT / "tools" / "pictures.py"))["architecture"](load_encoder("tiny"))
    assert [axes.get_title("left")[0] for axes in figure.axes] == [*"12345678"]
