"""The committed tables, with which `make verify` compares: from git or from a packed copy.

The packed copy, results/<profile>/reference.tar.xz, is for downloaded archives, in which a run replaces the tables.
"""

import io
import tarfile
from pathlib import Path

from analysis.errors import InputError
from analysis.files import ROOT, git, replacing
from analysis.study.provenance import PROVENANCE, TIMES

PACK = "reference.tar.xz"
SPEED = "_speed.csv"  # how tables of measured times end


def is_table(name: str) -> bool:
    """Whether a file of tables/ is compared; times differ with every run and are not."""
    return name.endswith(".csv") and not name.startswith(TIMES) and not name.endswith(SPEED)


def committed(profile: str, commit: str = "HEAD", root: Path = ROOT) -> tuple[dict[str, bytes], str]:
    """The committed tables of a profile and their provenance by file name, and where they are from.

    Raises InputError if there are none, neither in git nor in a packed copy.
    """
    path = f"results/{profile}/tables"
    tree = git("archive", commit, path, root=root) if _is_clone(root) else None
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
    """Writes the packed copy of a profile's tables, the same bytes for the same tables; returns its path."""
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
    """Whether the root is a clone, not a folder inside the clone of another project."""
    found = git("rev-parse", "--show-toplevel", root=root)
    return found is not None and Path(found.decode().strip()).resolve() == root.resolve()
