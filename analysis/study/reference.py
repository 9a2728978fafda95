"""The tables that were committed: what `make verify` compares with, from git or from a packed copy.

The packed copy, results/<profile>/reference.tar.xz, serves a downloaded archive, where a run replaces the tables.
"""

import io
import subprocess
import tarfile
from pathlib import Path

from analysis.errors import InputError
from analysis.files import ROOT, replacing
from analysis.study.provenance import PROVENANCE, TIMES

PACK = "reference.tar.xz"


def is_table(name: str) -> bool:
    """Whether a file of tables/ is compared: not one of times, which differ with every run."""
    return name.endswith(".csv") and not name.startswith(TIMES)


def committed(profile: str, commit: str = "HEAD", root: Path = ROOT) -> tuple[dict[str, bytes], str]:
    """The committed tables of a profile with their provenance by file name, and where they are from.

    Raises InputError where neither git nor the packed copy knows any.
    """
    path = f"results/{profile}/tables"
    tree = _git(root, "archive", commit, path) if _is_clone(root) else None
    pack = root / "results" / profile / PACK
    if tree is not None:
        found, source = _unpacked(tree), f"commit {commit}"
    elif pack.exists():
        found, source = _unpacked(pack.read_bytes()), str(pack)
    else:
        found, source = {}, ""
    if not any(map(is_table, found)):
        raise InputError(
            f"profile {profile} has no committed tables, neither {path} in {commit} nor {pack}: nothing to compare with"
        )
    return found, source


def pack(profile: str, root: Path = ROOT) -> Path:
    """Packs the tables of a profile into its packed copy, the same bytes for the same tables; returns its path."""
    folder = root / "results" / profile
    names = sorted(path.name for path in (folder / "tables").glob("*.csv") if is_table(path.name))
    if not names:
        raise InputError(f"{folder / 'tables'} has no tables: run make reproduce for profile {profile}")
    known = [PROVENANCE] if (folder / "tables" / PROVENANCE).exists() else []
    with replacing(folder / PACK) as temporary, tarfile.open(temporary, "w:xz", preset=9) as archive:
        for name in [*names, *known]:
            content = (folder / "tables" / name).read_bytes()
            entry = tarfile.TarInfo(name)  # without date and owner
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return folder / PACK


def _unpacked(archive: bytes) -> dict[str, bytes]:
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            return {Path(entry.name).name: tar.extractfile(entry).read() for entry in tar if entry.isfile()}
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError("the packed copy of the committed tables is damaged: download it again") from error


def _is_clone(root: Path) -> bool:
    """Whether the root is a working tree of its own, not a folder in that of another project."""
    found = _git(root, "rev-parse", "--show-toplevel")
    return found is not None and Path(found.decode().strip()).resolve() == root.resolve()


def _git(root: Path, *arguments: str) -> bytes | None:
    try:
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
