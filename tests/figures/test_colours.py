"""Colours of the roles: they show on white, and are written out in one module."""

import re
from pathlib import Path

import matplotlib as mpl
import pytest
from drawing import ROLES

from analysis.figures import colours
from analysis.files import ROOT


def test_lines_of_every_role_show_on_white():
    for role in ROLES:
        red, green, blue = colours.ink(role)
        assert 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.7
    assert colours.ink("local") == pytest.approx(mpl.colors.to_rgb(colours.ROLE_COLOURS["local"]))


def test_colours_are_written_out_in_one_module():
    modules = [path for path in (ROOT / "analysis").rglob("*.py") if path != Path(colours.__file__)]
    written = {
        path.name: re.findall(r'"#[0-9A-Fa-f]{6}"', path.read_text(encoding="utf-8")) for path in modules
    }
    assert {name: colours for name, colours in written.items() if colours} == {}
