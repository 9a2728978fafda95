"""Writes requirements.lock from an environment, and checks that every pin has a wheel on all supported systems.

`python tools/lock.py write` pins the installed packages, and those that other systems and Pythons also need; `python
tools/lock.py check` asks pip for every system and Python. pip evaluates conditions ("; sys_platform == ...") for the
Python that runs it, so this script evaluates them itself.
"""

import argparse
import importlib.metadata
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).resolve().parents[1] / "requirements.lock"
HEADER = """\
# Every package of the study, pinned by `make lock`, which checks that each has a wheel on Linux (x86-64, aarch64),
# macOS (arm64) and Windows for every Python from 3.11 to 3.14. Torch has no hash: its CPU and CUDA builds share the
# version. Packages of CUDA are not listed: torch names their versions itself.
"""
LEFT_OUT = {"heads-hypothesis-study", "pip"}
CUDA = re.compile(r"(nvidia|cuda|triton)\b.*")

PYTHONS = ("3.11", "3.12", "3.13", "3.14")  # the lowest is checked as its first release, 3.11.0
MANYLINUX = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_26", "manylinux_2_17", "manylinux2014")
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
DARWIN = {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"}
WINDOWS = {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"}
SYSTEMS = {
    "Linux x86-64": (LINUX | {"platform_machine": "x86_64"}, [f"{tag}_x86_64" for tag in MANYLINUX]),
    "Linux aarch64": (LINUX | {"platform_machine": "aarch64"}, [f"{tag}_aarch64" for tag in MANYLINUX]),
    "macOS 14 arm64": (DARWIN | {"platform_machine": "arm64"}, ["macosx_14_0_arm64"]),
    "Windows x86-64": (WINDOWS | {"platform_machine": "AMD64"}, ["win_amd64"]),
}
PLACES = [*itertools.product(SYSTEMS, PYTHONS)]
Place = tuple[str, str]  # a system and a Python


def applies(requirement: Requirement, place: Place) -> bool:
    """Whether a requirement applies to a system with a Python."""
    system, python = place
    versions = {"python_version": python, "python_full_version": f"{python}.0"}
    names = {"implementation_name": "cpython", "platform_python_implementation": "CPython", "extra": ""}
    return requirement.marker is None or requirement.marker.evaluate(SYSTEMS[system][0] | versions | names)


def condition(places: Iterable[Place]) -> str:
    """The marker that holds for exactly these systems and Pythons; raises ValueError if there is no simple one."""
    systems, pythons = ({*names} for names in zip(*places, strict=True))
    if {*itertools.product(systems, pythons)} != {*places}:
        raise ValueError(f"no simple condition holds for exactly {sorted(places)}: pin it by hand")
    platforms = {SYSTEMS[system][0]["sys_platform"] for system in systems}
    meant = {system for system, (names, _) in SYSTEMS.items() if names["sys_platform"] in platforms}
    if meant != systems:
        raise ValueError(f"no condition on sys_platform holds for exactly {sorted(systems)}: pin it by hand")
    parts = [("sys_platform", platforms, 3), ("python_version", pythons, len(PYTHONS))]
    chosen = [
        " or ".join(f"{name} == '{value}'" for value in sorted(values))
        for name, values, every in parts
        if len(values) < every
    ]
    return " and ".join(f"({part})" if " or " in part and len(chosen) > 1 else part for part in chosen)


def installed() -> dict[str, str]:
    """Name and version of every pinned package of this environment, without the suffix of a local build."""
    found = {canonicalize_name(d.metadata["Name"]): d.version for d in importlib.metadata.distributions()}
    return {
        name: version.partition("+")[0]
        for name, version in sorted(found.items())
        if name not in LEFT_OUT and not CUDA.fullmatch(name)
    }


def elsewhere(known: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Name, version and condition of packages that only other systems or Pythons need."""
    missing: dict[str, set[Place]] = {}
    for text in itertools.chain.from_iterable(importlib.metadata.requires(name) or [] for name in known):
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if requirement.marker and name not in known and not CUDA.fullmatch(name):
            places = {place for place in PLACES if applies(requirement, place)}
            if places:
                missing.setdefault(name, set()).update(places)
    pins: dict[tuple[str, str], set[Place]] = {}
    for name, places in missing.items():
        for place in places:
            for pin in resolved(name, place):
                if pin[0] not in known:
                    pins.setdefault(pin, set()).update(places)
            break
    yield from ((name, version, condition(places)) for (name, version), places in sorted(pins.items()))


def resolved(name: str, place: Place) -> list[tuple[str, str]]:
    """Name and version of a package and of everything that it needs on a system with a Python."""
    done = pip([name], place, "--quiet", "--report", "-")
    done.check_returncode()
    found = [entry["metadata"] for entry in json.loads(done.stdout)["install"]]
    return [(canonicalize_name(entry["name"]), entry["version"]) for entry in found]


def pip(requirements: Iterable[str], place: Place, *options: str) -> subprocess.CompletedProcess:
    """The answer of pip for a system with a Python, with wheels only; installs nothing."""
    system, python = place
    full = f"{python}.0" if python == PYTHONS[0] else python
    platforms = itertools.chain.from_iterable(("--platform", tag) for tag in SYSTEMS[system][1])
    with TemporaryDirectory() as folder:
        command = [
            *(sys.executable, "-m", "pip", "install", "--dry-run", "--disable-pip-version-check", *options),
            *("--only-binary=:all:", "--target", folder, "--python-version", full, *platforms, *requirements),
        ]
        return subprocess.run(command, capture_output=True, text=True)


def write() -> None:
    """Pins the packages installed in this environment, and those that other systems also need."""
    known = installed()
    lines = [f"{name}=={version}" for name, version in known.items()]
    lines += [f"{name}=={version} ; {marker}" for name, version, marker in elsewhere(known)]
    LOCK.write_text(
        HEADER + "\n".join(sorted(lines, key=lambda line: line.partition("==")[0])) + "\n",
        encoding="utf-8",
        newline="\n",
    )


def pinned() -> list[Requirement]:
    """The lines of requirements.lock."""
    lines = (line.split("#")[0].strip() for line in LOCK.read_text(encoding="utf-8").splitlines())
    return [Requirement(line) for line in lines if line]


def check() -> bool:
    """Prints one line for every system and Python; returns whether all pins have wheels everywhere."""
    answers = []
    for place in PLACES:
        pins = [f"{pin.name}{pin.specifier}" for pin in pinned() if applies(pin, place)]
        done = pip(pins, place, "--no-deps")
        reasons = (
            re.findall(r"No matching distribution found for (\S+)", done.stderr)
            or done.stderr.splitlines()[-1:]
        )
        verdict = f"{len(pins)} wheels" if done.returncode == 0 else f"fails: {', '.join(reasons)}"
        print(f"{place[0]:<14}  Python {place[1]:<4}  {verdict}", flush=True)
        answers.append(done.returncode == 0)
    return all(answers)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["write", "check"])
    if parser.parse_args().task == "write":
        write()
        return 0
    return 0 if check() else 1


if __name__ == "__main__":
    sys.exit(main())
