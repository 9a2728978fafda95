"""`make verify`: does this machine reach the committed conclusions?

It does not if a verdict moves between supported, mixed and not supported, if more than a tenth of a paper's verdicts
move to or from inconclusive or not applicable, or if more than 1 % of a table's role labels differ (5 % for other
weights; syntactic roles are left out for another parser). Only runs that this machine has made are judged. Runs on
other data are compared, not judged, and measured times are neither.
"""

import math
from io import BytesIO

import pandas as pd

from analysis.errors import InputError
from analysis.roles import RELATIONS
from analysis.statistics.claims import INCONCLUSIVE, NOT_APPLICABLE, TIMES
from analysis.statistics.roles import LABELS
from analysis.study.profiles import command
from analysis.study.provenance import (
    committed,
    files_in,
    output_digests,
    read_outputs,
    records_in,
    weights_of,
)
from analysis.study.runs import PARSER, Folders, short


def too_many_verdicts(new: pd.DataFrame, old: pd.DataFrame) -> bool:
    """Whether more verdicts of a paper's claims differ than may; prints all that do."""
    both = old.merge(new, "left", "claim", suffixes=("", "_new")).fillna({"verdict_new": "missing"})
    changed = both[both["verdict"] != both["verdict_new"]]
    for claim in changed.itertuples():
        print(f"{claim.claim} is {claim.verdict_new}, committed: {claim.verdict}")
    unresolved = changed[["verdict", "verdict_new"]].isin([INCONCLUSIVE, NOT_APPLICABLE]).any(axis=1)
    return not unresolved.all() or len(changed) > len(both) / 10


def estimates_outside(new: pd.DataFrame, old: pd.DataFrame) -> list[str]:
    """The claims whose estimate lies outside the committed 95 % interval."""
    both = old.merge(new[["claim", "estimate"]], "left", "claim", suffixes=("", "_new"))
    return [
        f"{row.claim} is {row.estimate_new:.3g}, committed: {row.estimate:.3g} [{row.low:.3g}, {row.high:.3g}]"
        for row in both.query("estimate_new < low or estimate_new > high").itertuples()
    ]


def label_difference(new: pd.DataFrame, old: pd.DataFrame) -> float:
    """The share of a table's role labels that differ."""
    old, new = (table.astype(str).fillna("") for table in (old, new))
    both = old.merge(new, "left", ["layer", "head", "role"], suffixes=("", "_new"))
    differs = pd.DataFrame({label: both[label] != both[f"{label}_new"] for label in LABELS if label in old})
    return differs.mean().mean()


def largest_difference(new: pd.DataFrame, old: pd.DataFrame) -> float:
    """The largest |new - old| / max(|old|, 0.01) of two numbers in the same place; infinite if one is missing."""
    new, old = new.select_dtypes("number").align(old.select_dtypes("number"))
    difference = (new - old).abs() / old.abs().clip(lower=0.01)
    return float(difference.mask(new.isna() != old.isna(), math.inf).fillna(0).to_numpy().max(initial=0))


def print_differences(differences: dict[str, float]) -> None:
    """Prints the three largest differences of tables, and which tables have numbers that one side lacks."""
    by_table = pd.Series(differences)
    largest = by_table[by_table < math.inf].nlargest(3).round(5)
    print("largest differences of numbers, by table:", largest.to_dict())
    if one_sided := [*by_table[by_table == math.inf].index]:
        print(f"numbers that one side alone has, in: {', '.join(one_sided)}")


def outputs_made_here(folders: Folders) -> dict[str, dict[str, str]]:
    """The digests of the tables and the record of every run that this machine has made."""
    outputs = {path.name: read_outputs(path) for path in sorted((folders.cache / "done").glob("*"))}
    return {run: digests for run, digests in outputs.items() if digests}


def without_times(table: pd.DataFrame) -> pd.DataFrame:
    """A table of claims without those about times, which hold for one machine."""
    return table[table["interval"] != TIMES].reset_index(drop=True) if "interval" in table else table


def verify(profile: str) -> None:
    """Prints what differs from the committed results of the runs that this machine has made.

    Raises InputError if a conclusion differs, and if there is nothing to judge.
    """
    folders, make = Folders(profile), f"make reproduce PROFILE={profile}"
    made = outputs_made_here(folders)
    if not made:
        raise InputError(f"nothing of profile {profile} has run here, so nothing is verified: run {make}")
    if changed := [
        run for run, digests in made.items() if output_digests(folders.folder, digests) != digests
    ]:
        raise InputError(
            f"the results of {', '.join(changed)} are not those that were made here (after git checkout, say): "
            f"delete {short(folders.cache / 'done')}, and run {make}"
        )
    new_folder, old_folder = folders.folder, committed(profile)
    new_records, old_records = records_in(new_folder), records_in(old_folder)
    judged, not_judged = ([run for run in old_records if (run in made) == here] for here in (True, False))
    tables = {name for digests in made.values() for name in digests}
    new_weights, old_weights = weights_of(new_records), weights_of(old_records)
    problems, claims, differences, outside = [], {}, {}, []
    for path in files_in(old_folder / "tables"):
        name, new_path = path.stem, new_folder / "tables" / path.name
        if f"tables/{path.name}" not in tables:
            problems += [] if not_judged else [f"tables/{path.name} is missing"]
            continue
        new, old = pd.read_csv(new_path), pd.read_csv(BytesIO(path.read_bytes()))
        if name.startswith("claims-"):
            claims[name] = new, old
        if name.startswith("roles-"):
            new_source, old_source = new_weights.get(name, {}), old_weights.get(name, {})
            if new_source.pop(PARSER, "") != old_source.pop(PARSER, ""):
                old = old[~old["role"].isin(["syntactic", *RELATIONS])]
            if (share := label_difference(new, old)) > (0.01 if new_source == old_source else 0.05):
                problems.append(f"{name}: {share:.1%} of the role labels differ")
        if not name.endswith("_speed"):  # measured times
            differences[name] = largest_difference(*map(without_times, (new, old)))
    if not differences:
        raise InputError(f"no run with committed tables has run here, so nothing is verified: run {make}")
    for name, (new, old) in claims.items():
        outside += estimates_outside(new, without_times(old))
        if too_many_verdicts(new, old):
            problems.append(f"{name}: too many verdicts differ")
    print(*outside, sep="\n", end="\n" * bool(outside))
    print_differences(differences)
    if not_judged:
        print(
            f"judged: {', '.join(judged)}\nnot judged, since they have not run here: {', '.join(not_judged)}"
        )
    data = {run: {new_records[run].get("data"), old_records[run].get("data")} for run in judged}
    if runs := [run for run, digests in data.items() if len(digests - {None, ""}) > 1]:
        reason = f"{', '.join(runs)} read other data than for the committed results"
        raise InputError(f"profile {profile} is compared, not judged: {reason}")
    if problems:
        raise InputError(f"profile {profile} is not reproduced: {'; '.join(problems)}")
    known = sum(len(old) for _, old in claims.values())
    exceptions = f", but for {len(outside)} of {known} claims outside their committed intervals"
    part = f"{len(differences)} tables of {len(judged)} of {len(old_records)} runs of " if not_judged else ""
    print(f"{part}profile {profile} {'are' if part else 'is'} reproduced{exceptions if outside else ''}")


if __name__ == "__main__":
    command(verify)
