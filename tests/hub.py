"""A Hugging Face Hub on the loopback address: serves a folder to the real clients, without a network.

The folder holds `models/<owner>/<name>/` and `datasets/<owner>/<name>/`. Every repository has one
commit, known as `main`. The protocol is the part of https://huggingface.co/docs/hub/api that
`from_pretrained` and `load_dataset` use: repository facts, file listings, files.
"""

import hashlib
import json
import re
import shutil
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

import pandas as pd

COMMIT = hashlib.sha1(b"main").hexdigest()

FACTS = re.compile(r"/api/(?P<kind>models|datasets)/(?P<name>[^/]+/[^/]+)(/revision/(?P<revision>[^/]+))?")
PATHS = re.compile(r"/api/(?P<kind>models|datasets)/(?P<name>[^/]+/[^/]+)/paths-info/(?P<revision>[^/]+)")
LISTING = re.compile(
    r"/api/(?P<kind>models|datasets)/(?P<name>[^/]+/[^/]+)/tree/(?P<revision>[^/]+)(/(?P<path>.*))?"
)
FILE = re.compile(r"/(?P<kind>datasets/)?(?P<name>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")


class Missing(Exception):
    """What the Hub does not hold, by the code its clients understand."""


def entry_facts(repository: Path, path: Path) -> dict:
    """One file or folder as the Hub lists it."""
    facts = {"path": path.relative_to(repository).as_posix(), "oid": COMMIT, "size": 0, "type": "directory"}
    if path.is_dir():
        return facts
    content = path.read_bytes()
    return facts | {"type": "file", "size": len(content), "oid": hashlib.sha1(content).hexdigest()}


def repository_facts(repository: Path) -> dict:
    """A repository as the Hub describes it."""
    files = sorted(path for path in repository.rglob("*") if path.is_file())
    siblings = [{"rfilename": path.relative_to(repository).as_posix()} for path in files]
    name = "/".join(repository.parts[-2:])
    flags = {"private": False, "gated": False, "disabled": False}
    return {"id": name, "sha": COMMIT, "siblings": siblings, "tags": [], "downloads": 0, "likes": 0} | flags


class HubRequest(BaseHTTPRequestHandler):
    """Answers one request out of the folder of its server."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Facts, a listing or a file."""
        try:
            self.send(*self.answer(*self.parsed()))
        except Missing as error:
            self.send(b"{}", {"X-Error-Code": str(error), "X-Error-Message": f"no {self.path}"}, status=404)

    do_HEAD = do_GET
    do_POST = do_GET

    def parsed(self) -> tuple[str, dict]:
        """The path and the parameters of the address and of the posted JSON."""
        address = urlsplit(self.path)
        posted = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return unquote(address.path), parse_qs(address.query) | (json.loads(posted) if posted else {})

    def answer(self, path: str, parameters: dict) -> tuple[bytes, dict]:
        """The content and the headers for a path."""
        for pattern, reply in ((FACTS, self.facts), (PATHS, self.paths), (LISTING, self.listing)):
            if match := pattern.fullmatch(path):
                return json.dumps(reply(match, parameters)).encode(), {"Content-Type": "application/json"}
        if match := FILE.fullmatch(path):
            return self.file(match)
        raise Missing("RepoNotFound")

    def repository(self, match: re.Match) -> Path:
        """The folder of the repository that an address names."""
        kind = (match["kind"] or "models").rstrip("/")
        folder = self.server.folder / kind / match["name"]
        if not folder.is_dir():
            raise Missing("RepoNotFound")
        if match["revision"] not in (None, "main", COMMIT):
            raise Missing("RevisionNotFound")
        return folder

    def facts(self, match: re.Match, parameters: dict) -> dict:
        """Reply: what the repository is."""
        return repository_facts(self.repository(match))

    def paths(self, match: re.Match, parameters: dict) -> list[dict]:
        """Reply: the asked paths that exist."""
        repository = self.repository(match)
        found = [repository / path for path in parameters["paths"]]
        return [entry_facts(repository, path) for path in found if path.exists()]

    def listing(self, match: re.Match, parameters: dict) -> list[dict]:
        """Reply: the entries of a folder, with those below it where asked."""
        repository = self.repository(match)
        folder = repository / (match["path"] or "")
        if not folder.is_dir():
            raise Missing("EntryNotFound")
        below = parameters.get("recursive", ["false"])[0].lower() in ("true", "1")
        return [entry_facts(repository, path) for path in sorted(folder.glob("**/*" if below else "*"))]

    def file(self, match: re.Match) -> tuple[bytes, dict]:
        """Reply: one file."""
        path = self.repository(match) / match["path"]
        if not path.is_file():
            raise Missing("EntryNotFound")
        content = path.read_bytes()
        etag = hashlib.sha1(content).hexdigest()
        return content, {"ETag": f'"{etag}"', "Content-Type": "application/octet-stream"}

    def send(self, content: bytes, headers: dict, status: int = 200) -> None:
        """Sends the headers, and the content unless only the headers were asked for."""
        self.send_response(status)
        for name, value in {"X-Repo-Commit": COMMIT, "Content-Length": len(content), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Keeps the request for the tests instead of printing it."""
        self.server.requests.append(format % arguments)


@dataclass
class HubServer:
    """Serves `folder` on a free loopback port inside a `with` block, which gives the address."""

    folder: Path
    requests: list[str] = field(default_factory=list)

    def __enter__(self) -> str:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), HubRequest)
        self.server.daemon_threads = True
        self.server.folder, self.server.requests = Path(self.folder), self.requests
        Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


