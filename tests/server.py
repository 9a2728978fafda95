"""A server on the loopback address: files that may fail as servers do, and a Hugging Face Hub, both from one folder.

The Hub is below `models/<owner>/<name>/` and `datasets/<owner>/<name>/`. Every repository has one commit, `main`.
The protocol is the part of https://huggingface.co/docs/hub/api that `from_pretrained` and `load_dataset` use.
"""

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = hashlib.sha1(b"main").hexdigest()
CLIENT_SETTINGS = ("hf_", "hugging", "transformers_", "http_proxy", "https_proxy", "all_proxy")
NAME, REVISION = r"(?P<name>[^/]+/[^/]+)", f"(main|{COMMIT})"
FACTS = re.compile(rf"/api/(?P<kind>models|datasets)/{NAME}(/revision/{REVISION})?")
LISTING = re.compile(rf"/api/(?P<kind>models|datasets)/{NAME}/tree/{REVISION}(/(?P<path>.*))?")
FILE = re.compile(rf"/((?P<kind>datasets)/)?{NAME}/resolve/{REVISION}/(?P<path>.+)")
MISSING = {
    "X-Error-Code": "EntryNotFound",
    "X-Error-Message": "not here",
}  # as the clients of the Hub understand


class Request(BaseHTTPRequestHandler):
    """Answers one request with a file, half of one, facts of the Hub, or an error."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        """Prints nothing."""

    def do_GET(self) -> None:
        server, path = self.server.owner, unquote(urlsplit(self.path).path)
        server.requests.append(path)
        content, status = self.content(server.folder, path), server.status.get(path[1:], 200)
        found = content is not None and status == 200
        self.send_response(200 if found else 404 if status == 200 else status)
        content = content if found else b"{}"
        headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"'} if found else MISSING
        for name, value in {"X-Repo-Commit": COMMIT, "Content-Length": len(content), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if path[1:] in server.cut:
            server.cut.remove(path[1:])
            content, self.close_connection = content[: len(content) // 2], True
        if self.command != "HEAD":
            self.wfile.write(content)

    do_HEAD = do_GET

    def content(self, folder: Path, path: str) -> bytes | None:
        """What a path names: a file, or something of the Hub as JSON."""
        if match := FILE.fullmatch(path):
            path = f"/{match['kind'] or 'models'}/{match['name']}/{match['path']}"
        elif match := LISTING.fullmatch(path) or FACTS.fullmatch(path):
            repository = folder / match["kind"] / match["name"]
            place = repository / (match.groupdict().get("path") or "")
            if not place.is_dir():
                return None
            if FACTS.fullmatch(path):
                return json.dumps(repository_facts(repository)).encode()
            below = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() in (
                "true",
                "1",
            )
            entries = sorted(place.glob("**/*" if below else "*"))
            return json.dumps([entry_facts(repository, entry) for entry in entries]).encode()
        file = folder / path[1:]
        return file.read_bytes() if file.is_file() else None


def entry_facts(repository: Path, path: Path) -> dict:
    facts = {"path": path.relative_to(repository).as_posix(), "oid": COMMIT, "size": 0, "type": "directory"}
    if path.is_dir():
        return facts
    content = path.read_bytes()
    return facts | {"type": "file", "size": len(content), "oid": hashlib.sha1(content).hexdigest()}


def repository_facts(repository: Path) -> dict:
    files = sorted(path for path in repository.rglob("*") if path.is_file())
    siblings = [{"rfilename": path.relative_to(repository).as_posix()} for path in files]
    name = "/".join(repository.parts[-2:])
    flags = {"private": False, "gated": False, "disabled": False}
    return {"id": name, "sha": COMMIT, "siblings": siblings, "tags": [], "downloads": 0, "likes": 0} | flags


@dataclass
class Server:
    """Serves a folder on a free port inside a `with` block; `cut` names files that end in the middle once."""

    folder: Path
    cut: set[str] = field(default_factory=set)
    status: dict[str, int] = field(default_factory=dict)  # of a file, if it is another one than 200
    requests: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Request)
        self.server.daemon_threads, self.server.owner = True, self
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


def client_environment(endpoint: str, home: Path) -> dict[str, str]:
    """The environment for a process whose Hub is `endpoint` and whose cache is `home`.

    The clients read it when they are imported, so a running process cannot change over.
    """
    others = {name: os.environ[name] for name in os.environ if not name.lower().startswith(CLIENT_SETTINGS)}
    return others | {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
