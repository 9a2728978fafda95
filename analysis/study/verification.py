"""Are the tables of this machine the committed ones? `python -m analysis.study.verification --profile P` tells.

Every table is judged, by the rule of `analysis.statistics.agreement` for the weights behind it.
"""

import io
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from analysis.errors import InputError, exit_status
from analysis.files import ROOT, git
from analysis.statistics.agreement import LABELS, LOOSE, PARSED, SAME, TRAINED, Comparison, compare
from analysis.study.folders import Folders
from analysis.study.profiles import command_line
from analysis.study.provenance import files_of, tables_of
from analysis.study.results import PARSER


def committed(profile: str, commit: str = "HEAD", root: Path = ROOT) -> tuple[dict[str, bytes], str]:
    """The committed files of a profile by their paths in its folder, and where they are from.

    Outside of git they are those that a release came with; Make keeps them before the first run. Raises InputError if
    there are no tables.
    """
    folder, top = Path("results", profile), git("rev-parse", "--show-toplevel", root=root)
    if top is not None and Path(top.decode().strip()).resolve() == root.resolve():
        source, found = f"commit {commit}", {}
        if archive := git("archive", commit, f":(glob){folder}/*/*.[cj]s*", root=root):  # .csv and .json
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                files = {Path(each.name): tar.extractfile(each).read() for each in tar if each.isfile()}
            found = {str(path.relative_to(folder)): content for path, content in files.items()}
    else:
        kept = root / folder / "released"
        found = {str(path.relative_to(kept)): path.read_bytes() for path in kept.glob("*/*.*")}
        source = str(kept)
    if not any(name.endswith(".csv") for name in found):
        raise InputError(f"profile {profile} has no committed tables in {source}: nothing to compare with")
    return found, source


def verify(profile: str, known: Mapping[str, bytes]) -> Iterator[Comparison]:
    """Compares every committed table of a profile with the table of this machine; `known` as `committed` gives it."""
    folder = Folders(profile).folder
    here, there = tables_of(files_of(folder)), tables_of(known)
    for path in (path for path in sorted(known) if path.startswith("tables/") and path.endswith(".csv")):
        name = Path(path).stem
        weights = [each.get(name, {}).get("weights") for each in (here, there)]
        parsers = {(each or {}).get(PARSER) for each in weights}
        rule = TRAINED if all(weights) and weights[0] != weights[1] else SAME
        rule = PARSED if len(parsers) > 1 else rule
        if not (folder / path).exists():
            yield Comparison(name, rule, problem=f"{folder / path} does not exist: run make reproduce")
            continue
        content = (folder / path).read_bytes()
        yield compare(name, content, known[path], rule)


def report(profile: str, commit: str = "HEAD") -> None:
    """Prints one line per table and a verdict; raises InputError if a table does not agree."""
    known, source = committed(profile, commit)
    found = []
    for comparison in verify(profile, known):
        print(comparison)
        found.append(comparison)
    failed = [each.name for each in found if each.problem]
    trained = [each for each in found if each.rule in LOOSE]
    labels, unlike = sum(each.labels for each in trained), sum(each.unlike for each in trained)
    told = f"{len(trained)} rest on weights trained here or another parser, "
    told += f"with {labels - unlike:,} of {labels:,} labels equal"
    print(f"{len(found) - len(failed)} of {len(found)} tables agree with {source}; {told}")
    if unlike > (1 - LABELS) * labels:
        failed.append("labels")
    if failed:
        raise InputError(f"profile {profile} is not reproduced: see {', '.join(failed)}")
    print(f"profile {profile} is reproduced")


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = command_line("analysis.study.verification", __doc__)
    parser.add_argument("--commit", default="HEAD", help="the commit to compare with, in a clone")
    options = parser.parse_args(arguments)
    return exit_status(lambda: report(options.profile, options.commit))


if __name__ == "__main__":
    sys.exit(main())
