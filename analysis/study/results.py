"""The files of a run: scores, tables and figures under results/<profile>/."""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis.errors import InputError, check_choice
from analysis.figures import pictures
from analysis.figures.words import show
from analysis.files import READ, ROOT, replacing, versions, write_text
from analysis.roles import control_sources
from analysis.statistics.roles import LABELS
from analysis.study.runs import (
    PARSER,
    SAVED,
    STATES,
    VARIABLE,
    Folders,
    Run,
    notebook_names,
    results_folder,
    short,
)
from analysis.tables import above_zero, stacked

ATTENTION = "attention"  # the map source whose scores have no suffix in their file name
BOOLEAN = (*LABELS, "exceeds_control")  # columns with missing values
GOLD = "gold"
UNITS = "units-"  # before the name of a run: the table of what it measured for claims, and its columns
UNIT_COLUMNS = (
    "claim unit value low high runs between control control_low control_high token released reason".split()
)


def seeds_of(state: str, seeds: Sequence, checkpoint: str | None = None) -> list[int | None]:
    """The fine-tuning seeds of a state; the pre-trained state has the single seed None.

    Raises InputError for an unknown state, wrong seeds, and several with a `checkpoint` whose name lacks {seed}.
    """
    check_choice(f"state is {state!r}", state, STATES)
    if not seeds or len({*seeds}) < len(seeds) or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise InputError(f"seeds is {[*seeds]}: give different whole numbers from 0 up, such as [0, 1]")
    if checkpoint and "{seed}" not in checkpoint and len(seeds) > 1:
        raise InputError(
            f"checkpoint {checkpoint!r} is one for {len(seeds)} seeds: write {{seed}} into its name"
        )
    return [None] if state == STATES[0] else [*seeds]


def current_run(profile: str) -> Run:
    """The run that `analysis.run` announces to its kernel; elsewhere that of a session in Jupyter."""
    if VARIABLE in os.environ:
        return Run(**json.loads(os.environ[VARIABLE]))
    return import_module("analysis.study.sessions").session_run(profile)  # by name: runs do without it


class Results(Folders):
    """The scores, tables and figures that a notebook reads and writes.

    A run with other values than the profile's, and every run in Jupyter, writes to a folder under results/scratch/. A
    run reads what it has written itself, and all else in the profile's folder.
    """

    def __init__(self, profile: str, home: Path | None = None):
        self.run = current_run(profile)
        super().__init__(profile, self.run)
        self.profile = Folders(profile, home=home)
        # Files are named after their content, so all runs share them.
        self.parses, self.logits = (self.profile.cache / name for name in ("parses", "logits"))
        self._written: set[Path] = set()
        self._weights: dict[str, str] = {}
        self._saved: dict[str, dict[str, dict]] = {"tables": {}, "figures": {}}
        self._units: dict[str, pd.DataFrame] = {}  # by claim
        if VARIABLE not in os.environ and "ipykernel" in sys.modules:
            print(f"what this session saves goes to {self.folder}/")

    def _to_write(self, path: Path) -> Path:
        self._written.add(path)
        return path

    def _to_read(self, path: Path) -> Path:
        """The path itself if this run wrote the file, else the path in the profile's folder."""
        if path in self._written:
            return path
        inside = self.folder if path.is_relative_to(self.folder) else self.home
        return self.profile.folder / path.relative_to(inside)

    def _missing(self, path: Path) -> InputError:
        """What a run says of a file that it cannot read."""
        goal = self.run.name if self.run.notebook in notebook_names() else "reproduce"
        command, stamps = f"make {goal} PROFILE={self.profile.home.name}", short(self.profile.cache / "done")
        if path.exists():  # the run that made it counts as done
            return InputError(f"{short(path)} is damaged: delete {stamps}, and run {command}")
        released = ROOT / "results" / os.path.relpath(path, results_folder())
        hint = f"; {short(released)} is there: unset RESULTS_DIR to read it" if released.exists() else ""
        return InputError(f"{short(path)} is missing: {command} makes all that this notebook reads{hint}")

    def _read_csv(self, path: Path) -> pd.DataFrame:
        """The rows of a file; raises InputError if it is missing or damaged."""
        try:
            # "null" is a word
            return pd.read_csv(path, keep_default_na=False, na_values=[""], float_precision="round_trip")
        except (OSError, ValueError) as error:
            raise self._missing(path) from error

    def checkpoint(self, task: str, seed: int, new: bool = False) -> Path:
        """The folder of the encoder fine-tuned on a task with a seed; `new`: the folder in which to save it."""
        path = self.cache / "checkpoints" / f"{task}-{seed}"
        return self._to_write(path) if new else self._to_read(path)

    def weights(
        self, task: str, seed: int | None, encoder: str, checkpoint: str | None = None, new: bool = False
    ) -> str | Path:
        """The weights to load: the encoder fine-tuned on the task with a seed; without a seed, the encoder itself.

        A `checkpoint`, with {task} and {seed} in its name, is another fine-tuned encoder; `new` as in `checkpoint`.
        """
        if seed is None:
            return encoder
        return checkpoint.format(task=task, seed=seed) if checkpoint else self.checkpoint(task, seed, new)

    def record_weights(self, name: str, digest: str) -> None:
        """Adds weights to the provenance of the tables that this run saves."""
        self._weights[name] = digest

    def record_parser(self, name: str) -> None:
        """Adds the parser behind the tables of this run to their provenance, unless parses are gold."""
        if name != GOLD:
            self.record_weights(PARSER, name)

    def _scores(self, task: str, seed: int | None, maps: str) -> Path:
        run = STATES[0] if seed is None else f"{STATES[1]}-{seed}"
        suffix = "" if maps == ATTENTION else f"-{maps}"
        return self.cache / "scores" / f"{task}-{run}{suffix}.nc"

    def save_scores(self, scores: xr.DataArray, task: str, seed: int | None, maps: str = ATTENTION) -> Path:
        """Writes the scores of a task, a seed (None: pre-trained) and a map source as NetCDF; returns the path."""
        path = self._to_write(self._scores(task, seed, maps))
        run = {"state": STATES[0]} if seed is None else {"state": STATES[1], "finetuning_seed": seed}
        labelled = scores.assign_attrs(task=task, **run, versions=versions()).rename("score")
        with replacing(path) as temporary:
            # From memory, since HDF5 crashes when the disk is full; compression would take four times as long.
            temporary.write_bytes(labelled.to_netcdf(engine="h5netcdf"))
        self._write_saved()
        return path

    def scored(self, task: str, seed: int | None) -> bool:
        """Whether there are scores of a task and a seed (None: pre-trained)."""
        return self._to_read(self._scores(task, seed, ATTENTION)).exists()

    def load_scores(self, task: str, seed: int | None, maps: str = ATTENTION) -> xr.DataArray:
        """The scores of a task, a seed (None: pre-trained) and a map source; raises InputError without them."""
        path = self._to_read(self._scores(task, seed, maps))
        try:
            scores = xr.load_dataarray(path, engine="h5netcdf")
        except (OSError, ValueError, KeyError) as error:
            raise self._missing(path) from error
        self._weights[path.stem] = scores.attrs.get("weights_sha256", "")
        self.record_parser(scores.attrs.get(PARSER, GOLD))
        return scores

    def load_controls(self, task: str, seed: int | None) -> dict[str, xr.DataArray]:
        """The scores of a task and a seed on the control maps of roles, by source; raises InputError without them."""
        sources = control_sources(self.load_scores(task, seed)["role"].values)
        return {source: self.load_scores(task, seed, maps=source) for source in sources}

    def save_table(self, table: pd.DataFrame, name: str, digits: int | None = 6) -> Path:
        """Writes a table as CSV and its provenance, with `digits` significant digits (None: all) and no p of 0."""
        path = self._to_write(self.tables / f"{name}.csv")
        number = f"%.{digits}g" if digits else None
        text = above_zero(table).to_csv(index=False, float_format=number, lineterminator="\n")
        write_text(path, text)
        self._note("tables", name)
        return path

    def _note(self, kind: str, name: str) -> None:
        """Adds a saved table or figure to what the run has saved, with the digests of the weights behind it."""
        self._saved[kind][name] = {"weights": dict(self._weights)}
        self._write_saved()

    def _write_saved(self) -> None:
        """Writes what the record of a run needs: its outputs, and a digest of all text files that it has read."""
        if self.run.running:
            cache = self.profile.cache.resolve()
            digests = sorted(READ[path] for path in READ if not path.resolve().is_relative_to(cache))
            data = hashlib.sha256("".join(digests).encode()).hexdigest() if digests else ""
            write_text(self.folder / SAVED, json.dumps(self._saved | {"data": data}))

    @cached_property
    def _known_weights(self) -> dict[str, dict[str, str]]:
        """The digests of the weights behind the tables of the profile."""
        records = [json.loads(path.read_bytes()) for path in sorted(self.profile.provenance.glob("*.json"))]
        tables = [table for record in records for table in record.get("tables", {}).items()]
        return {name: entry["weights"] for name, entry in tables}

    def load_table(self, name: str) -> pd.DataFrame:
        """A saved table; raises InputError if it is missing or damaged."""
        path = self._to_read(self.tables / f"{name}.csv")
        table = self._read_csv(path)
        if path not in self._written:
            self._weights |= self._known_weights.get(name, {})
        return table.astype({label: "boolean" for label in BOOLEAN if label in table})

    def save_claim(self, claim: str, units: pd.DataFrame) -> None:
        """Saves the units of a claim (see `statistics.claims`), by its id, in this run's table of them."""
        self._units[claim] = units.assign(claim=claim)
        table = pd.concat(self._units.values()).reindex(columns=UNIT_COLUMNS)
        self.save_table(table, UNITS + self.run.name, digits=None)

    def table_names(self) -> list[str]:
        """The names of the tables that can be loaded, without tables of measured times."""
        paths = [*self.profile.tables.glob("*.csv"), *self._written]
        names = {path.stem for path in paths if path.parent.name == "tables"}
        return sorted(name for name in names if not name.endswith("_speed"))

    def save_part(self, table: pd.DataFrame, name: str, task: str) -> Path:
        """Writes the rows of one task for a table that `join_parts` joins later; returns the path."""
        path = self._to_write(self.cache / "parts" / f"{name}-{task}.csv")
        write_text(path.with_suffix(".json"), json.dumps(self._weights))
        write_text(path, above_zero(table).to_csv(index=False, lineterminator="\n"))
        self._write_saved()
        return path

    def join_parts(self, name: str, tasks: Iterable[str], every: bool = True) -> pd.DataFrame:
        """The rows of `save_part` in the order of the tasks; raises InputError if one of `every` task is missing."""
        parts = []
        for task in tasks:
            path = self._to_read(self.cache / "parts" / f"{name}-{task}.csv")
            if every or path.exists():
                parts.append(self._read_csv(path))
                self._weights |= json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def load_if_saved(self, name: str) -> pd.DataFrame:
        """A saved table; without rows if its notebook has not run."""
        path = self._to_read(self.tables / f"{name}.csv")
        return self.load_table(name) if path.exists() else pd.DataFrame(columns=["claim", "verdict"])

    def join_tables(self, name: str, parts: Iterable[str]) -> pd.DataFrame:
        """The tables `name` of several tasks one below the other; raises InputError if one is missing."""
        tables = [self.load_table(f"{name}-{part}") for part in parts]
        return pd.concat([table for table in tables if len(table)] or tables[:1], ignore_index=True)

    def role_tables(self, tasks: Sequence[str]) -> pd.DataFrame:
        """The role tables of all tasks, pre-trained and fine-tuned, with leading columns task and state."""
        runs = [(task, state) for task in tasks for state in STATES]
        return stacked({run: self.load_table(f"roles-{'-'.join(run)}") for run in runs}, "task", "state")

    def save_figure(self, figure: Figure, name: str, caption: str) -> None:
        """Writes a figure as PNG, the same bytes for the same figure, and shows it above its caption."""
        pictures.save_figure(figure, self.figures / f"{name}.png")
        self._note("figures", name)
        show(figure, caption)


def results_to_read(profile: str) -> Results:
    """The results of another profile: in the folder of results if claims are there, else those of the checkout."""
    made = any((results_folder() / profile / "tables").glob("claims-*.csv"))
    return Results(profile, None if made else ROOT / "results" / profile)
