"""A server on the loopback address, and one for files that fails as servers do: gone in the middle, or refusing."""

from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Self


class Request(BaseHTTPRequestHandler):
    """Answers one request; `self.server.owner` is the server to which it belongs."""

    def log_message(self, format: str, *arguments: object) -> None:
        """Prints nothing."""


class Server:
    """Answers requests on a free loopback port inside a `with` block."""

    request: type[Request]

    def __enter__(self) -> Self:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.request)
        self.server.daemon_threads, self.server.owner = True, self
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class FileRequest(Request):
    """Answers with a file, half of one, or an error."""

    def do_GET(self) -> None:
        owner, path = self.server.owner, self.path.lstrip("/")
        owner.requests.append(path)
        status = owner.status.get(path, 200 if path in owner.files else 404)
        content = owner.files[path] if status == 200 else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if path in owner.cut:
            owner.cut.remove(path)
            content = content[: len(content) // 2]
        self.wfile.write(content)


@dataclass
class FileServer(Server):
    """Serves `files`; `cut` names those that end in the middle once, `status` other answers."""

    request = FileRequest
    files: dict[str, bytes]
    cut: set[str] = field(default_factory=set)
    status: dict[str, int] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Where the files are, as the registry writes it."""
        return f"{self.endpoint}/{{name}}"
