"""A file server on the loopback address that can fail as servers do: gone in the middle, missing, forbidden."""

from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class FileRequest(BaseHTTPRequestHandler):
    """Answers one request from the files of its server."""

    def do_GET(self) -> None:
        """A file, half of one, or an error."""
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

    def log_message(self, format: str, *arguments: object) -> None:
        """Prints nothing."""


@dataclass
class FileServer:
    """Serves `files` inside a `with` block; `cut` names those that end in the middle once, `status` other answers."""

    files: dict[str, bytes]
    cut: set[str] = field(default_factory=set)
    status: dict[str, int] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def __enter__(self) -> "FileServer":
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), FileRequest)
        self.server.daemon_threads, self.server.owner = True, self
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    @property
    def address(self) -> str:
        """Where the files are, as the registry writes it."""
        return f"http://127.0.0.1:{self.server.server_port}/{{name}}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
