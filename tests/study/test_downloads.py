"""`make data` against a file server and a Hub on the loopback address, and what it does when they fail."""

import hashlib
import io
import zipfile
from pathlib import Path

import pytest
import yaml
from server import Server
from studies import error_of

from analysis.errors import InputError
from analysis.files import DATA, data_folder, expand
from analysis.study import downloads

TEXT = bytes(range(256)) * 600
SHA = hashlib.sha256(TEXT).hexdigest()


def zip_archive(members: dict[str, str], link: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, text in members.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o120777 if name == link else 0o100644) << 16
            file.writestr(entry, text)
    return buffer.getvalue()


INSIDE = "pipeline/pipeline-1.0/"
MEMBERS = {f"{INSIDE}meta.json": "{}", f"{INSIDE}parser/model": "weights", "elsewhere/readme": "not this"}


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    for name, content in {"a.txt": TEXT, "b.txt": b"second", "pipeline.whl": zip_archive(MEMBERS)}.items():
        (folder / name).write_bytes(content)
    with Server(folder) as running:
        yield running


@pytest.fixture
def sources(tmp_path, server):
    def write(**fields) -> Path:
        source = {"terms": "free", "url": f"{server.endpoint}/{{name}}", "files": {"a.txt": SHA}} | fields
        path = tmp_path / "sources.yaml"
        path.write_text(yaml.safe_dump({"texts": source}))
        return path

    return write


def test_files_come_once_with_their_terms(sources, server, tmp_path, capsys):
    listed = sources(files={"a.txt": SHA, "b.txt": None})
    for _ in range(2):
        downloads.bring(listed, tmp_path / "data")
        assert capsys.readouterr().out == f"texts: free\nthe data are in {tmp_path / 'data'}\n"
    assert (tmp_path / "data/texts/a.txt").read_bytes() == TEXT
    assert len(server.requests) == 2
    assert {path.name for path in (tmp_path / "data/texts").iterdir()} == {"a.txt", "b.txt"}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (lambda server: server.cut.add("a.txt"), ""),  # in the middle
        (lambda server: server.status.update({"a.txt": 403}), "403 Client Error"),
        (lambda server: (server.folder / "a.txt").write_bytes(b"changed"), "does not match the known hash"),
    ],
)
def test_a_fault_of_the_server_is_one_line_and_the_next_call_brings_the_file(
    sources, server, tmp_path, fault, reason
):
    fault(server)
    message = error_of(downloads.bring, sources(), tmp_path / "data")
    assert message.startswith("texts: ")
    assert reason in message
    assert message.endswith("; run make data again: it downloads what is not there yet")
    assert [*(tmp_path / "data/texts").iterdir()] == []
    server.status.clear()
    (server.folder / "a.txt").write_bytes(TEXT)
    downloads.bring(sources(), tmp_path / "data")
    assert (tmp_path / "data/texts/a.txt").read_bytes() == TEXT


@pytest.mark.parametrize(
    ("changed", "reason"),
    [({"url": "nowhere/{name}"}, "nowhere/a"), (None, "is missing"), ("", "lists nothing to download")],
)
def test_a_wrong_list_of_sources_is_one_line(sources, tmp_path, changed, reason):
    listed = sources(**changed) if changed else tmp_path / "none.yaml"
    if changed == "":
        listed.touch()
    assert reason in error_of(downloads.bring, listed, tmp_path / "data")


PACKED = {"files": {"pipeline.whl": None}, "unpack": INSIDE}


def test_a_folder_of_an_archive_comes_once(sources, tmp_path, server):
    for _ in range(2):
        downloads.bring(sources(**PACKED), tmp_path / "data")
    folder = tmp_path / "data/texts"
    contents = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert contents == {"meta.json", "parser/model"}
    assert [*folder.parent.iterdir()] == [folder]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (b"a page about an error", "not a zip file"),
        (zip_archive(MEMBERS)[:-40], "not a zip file"),
        (zip_archive({"elsewhere/readme": "not this"}), "has no folder pipeline/pipeline-1.0/"),
    ],
)
def test_of_another_archive_nothing_is_kept(sources, server, tmp_path, archive, message):
    (server.folder / "pipeline.whl").write_bytes(archive)
    assert message in error_of(downloads.bring, sources(**PACKED), tmp_path / "data")
    assert [*(tmp_path / "data").iterdir()] == []


@pytest.mark.parametrize(
    "name", ["../outside", f"{INSIDE}../../../outside", "{tmp_path}/outside", f"{INSIDE}link"]
)
def test_no_member_leaves_the_folder(sources, server, tmp_path, name):
    members = MEMBERS | {name.format(tmp_path=tmp_path): "../.."}
    (server.folder / "pipeline.whl").write_bytes(zip_archive(members, link=f"{INSIDE}link"))
    downloads.bring(sources(**PACKED), tmp_path / "data")
    assert [*tmp_path.rglob("outside")] == [*(tmp_path / "data/texts").rglob("outside")]
    assert not [path for path in tmp_path.rglob("*") if path.is_symlink()]


def test_paths_name_what_was_brought_unless_variables_are_set(tmp_path, monkeypatch):
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.delenv("PARSER", raising=False)
    monkeypatch.setenv("HOME", "/home/of/tests")
    assert expand("${DATA_DIR}/glue") == tmp_path / "glue"
    assert expand("$PARSER") == tmp_path / "en_core_web_sm"
    assert expand("~/file") == Path("/home/of/tests/file")
    monkeypatch.setenv("DATA_DIR", "~/data")
    assert expand("$DATA_DIR/glue") == data_folder() / "glue" == Path("/home/of/tests/data/glue")
    monkeypatch.setenv("PARSER", "another")
    assert expand("$PARSER") == Path("another")
    monkeypatch.delenv("DATA_DIR")
    assert data_folder() == DATA
    monkeypatch.setattr("analysis.files.DATA", tmp_path / "empty")
    with pytest.raises(InputError, match="run make data"):
        expand("$DATA_DIR/glue")
