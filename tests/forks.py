"""Make whose notebooks run in forked children of one process that has imported everything once.

`python tests/forks.py reproduce PROFILE=smoke RESULTS_DIR=...` is `make reproduce ...` in a quarter of its CPU time.
The rules, `analysis.run` and papermill are those of the study. Cells run in a child process instead of in a kernel.
"""

import ast
import asyncio
import gc
import json
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO
from unittest.mock import patch
from weakref import WeakKeyDictionary

ROOT = Path(__file__).parents[1]
PIXELS_PER_INCH = 40
CAN_FORK = sys.platform == "linux"  # libraries of macOS do not survive a fork
# In the place of Python: it sends a run, with its own output, to the server on standard input; it runs all else itself.
CLIENT = """#!/bin/sh
[ "$2" = analysis.run ] || exec "{python}" "$@"
exec "{python}" -S -I -c '
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect("{address}")
socket.send_fds(server, [b"run"], [1, 2])
server.sendall(json.dumps([sys.argv[3:], dict(os.environ)]).encode())
server.shutdown(socket.SHUT_WR)
sys.exit((server.recv(1) or b"\\x89")[0])  # 137: it was killed
' "$@"
"""


@contextmanager
def forking(repository: Path = ROOT) -> Iterator[str]:
    """The path of a Python for Make in this checkout that forks its notebooks; Python itself where it cannot fork."""
    if not CAN_FORK:
        yield sys.executable
        return
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        address, python = f"{folder}/socket", Path(folder, "python")
        python.write_text(CLIENT.format(python=sys.executable, address=address))
        python.chmod(0o755)
        listener.bind(address)
        listener.listen(64)
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(repository)}
        # No thread of the linear algebra libraries may exist when it forks.
        server = subprocess.Popen(
            [sys.executable, __file__, "--serve"], cwd=repository, env=environment, stdin=listener
        )
        listener.close()
        try:
            yield str(python)
        finally:
            server.terminate()
            server.wait()


def serve(listener: socket.socket) -> None:
    """Imports what notebooks import, and runs each request in a child."""
    import_everything()
    gc.freeze()
    while True:
        connection, _ = listener.accept()
        with connection:
            if os.fork() == 0:
                listener.close()
                answer(connection)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def import_everything() -> None:
    """The runner, and the imports of all notebooks with the parts that libraries load late."""
    statements = []
    for path in sorted(Path("notebooks").glob("[0-9]*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        statements += [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    for statement in dict.fromkeys(["import jupytext, nbformat, papermill", *statements]):
        exec(statement, {})


def answer(connection: socket.socket) -> None:
    """One run, as `python -m analysis.run` does it, in this process, which ends."""
    status = 1
    try:
        _, outputs, _, _ = socket.recv_fds(connection, 3, 2)
        for number, descriptor in enumerate(outputs, start=1):
            os.dup2(descriptor, number)
            os.close(descriptor)
        with connection.makefile() as request:
            arguments, environment = json.load(request)
        os.environ.clear()
        os.environ.update(environment)
        from papermill.engines import papermill_engines

        from analysis import run

        papermill_engines.register(None, engine())
        status = run.main(arguments)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(bytes([status]))
    os._exit(status)


def engine() -> type:
    """An engine of papermill that runs cells in this process, with the environment that their kernel would get."""
    from jupyter_client.manager import AsyncKernelManager
    from papermill.engines import Engine

    class Here(Engine):
        @classmethod
        def execute_managed_notebook(cls, nb_man, kernel_name, kernel_manager_class, stdout_file, **_):
            async def start_kernel(manager, env, **_):
                os.environ.update(env)

            with patch.object(AsyncKernelManager, "start_kernel", start_kernel):
                asyncio.run(kernel_manager_class().start_kernel())
            with redirected(stdout_file):
                shell = new_shell(stdout_file)
                for index, cell in enumerate(nb_man.nb.cells):
                    nb_man.cell_start(cell, index)
                    failed = cell.cell_type == "code" and run_cell(shell, cell)
                    nb_man.cell_complete(cell, cell_index=index)
                    if failed:
                        break

    return Here


@contextmanager
def redirected(log: TextIO) -> Iterator[None]:
    """What the process itself writes goes to the log."""
    streams = sys.stdout, sys.stderr
    saved = [os.dup(number) for number in (1, 2)]
    for number in (1, 2):
        os.dup2(log.fileno(), number)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        for number, descriptor in enumerate(saved, start=1):
            os.dup2(descriptor, number)


def new_shell(log: TextIO):
    """IPython in this process, whose outputs are those of the cell that runs, as in a notebook."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from nbformat.v4 import new_output
    from traitlets.config import Config

    def add(kind: str, **fields) -> None:
        InteractiveShell.instance().outputs.append(new_output(kind, **fields))

    class Publisher(DisplayPublisher):
        def publish(self, data, metadata=None, **_):
            add("display_data", data=data, metadata=metadata or {})

    class Hook(DisplayHook):
        def write_format_data(self, data, metadata=None):
            add("execute_result", data=data, metadata=metadata or {}, execution_count=self.prompt_count)

        write_output_prompt = finish_displayhook = lambda self: None

    class Stream:
        encoding, closed = "utf-8", False

        def __init__(self, name):
            self.name = name

        def write(self, text):
            log.write(text)
            outputs = InteractiveShell.instance().outputs
            if outputs and outputs[-1].get("name") == self.name:
                outputs[-1].text += text
            else:
                add("stream", name=self.name, text=text)
            return len(text)

        def flush(self):
            log.flush()

        def isatty(self):
            return False

    class Shell(InteractiveShell):
        outputs = []

        def enable_gui(self, gui=None):
            """Needs nothing: pictures are outputs."""

        def _showtraceback(self, etype, evalue, stb):
            add("error", ename=etype.__name__, evalue=str(evalue), traceback=stb)

    config = Config()
    config.HistoryManager.enabled = False  # it starts a thread
    shell = Shell.instance(config=config, display_pub_class=Publisher, displayhook_class=Hook)
    InteractiveShell._instance = shell
    sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")
    shell.enable_matplotlib("inline")
    draw_plainly()
    return shell


def draw_plainly() -> None:
    """Figures are drawn once, small and without a layout, and cells show their files.

    Layouts, margins and sharp pictures take most of the time of a small study. The paper that runs in kernels has them.
    """
    from IPython.core import pylabtools
    from matplotlib.figure import Figure

    from analysis.figures import pictures

    draw, saved = pylabtools.print_figure, WeakKeyDictionary()

    def save_figure(figure, path):
        figure.set_layout_engine(None)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=PIXELS_PER_INCH)
        saved[figure] = path.read_bytes()

    def print_figure(figure, *arguments, **options):
        return saved.get(figure) or draw(figure, *arguments, **options)

    pictures.save_figure, pylabtools.print_figure = save_figure, print_figure
    Figure.tight_layout = lambda *arguments, **options: None


def run_cell(shell, cell) -> bool:
    """Fills the outputs of a cell; gives whether it failed."""
    shell.outputs = cell.outputs = []
    result = shell.run_cell(cell.source, store_history=True)
    cell.execution_count = result.execution_count
    cell.outputs = shell.outputs
    return not result.success


def main() -> int:
    """Make with the arguments of the command line, here."""
    with forking() as python:
        return subprocess.call(["make", *sys.argv[1:], f"PYTHON={python}"], cwd=ROOT)


if __name__ == "__main__":
    sys.path.pop(0)  # tests/, some of whose modules are named like parts of libraries
    if sys.argv[1:] == ["--serve"]:
        serve(socket.socket(fileno=0))
    sys.exit(main())
