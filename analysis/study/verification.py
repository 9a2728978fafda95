"""Are the conclusions of this machine the committed ones? `python -m analysis.study.verification --profile P`.

Not if a verdict moves between supported, mixed and not supported, more than a tenth of a paper's verdicts move to or
from inconclusive or not applicable, or more than 1 % of a table's role labels differ (5 % for other weights; syntactic
roles do not count for another parser). The largest differences of numbers are printed. Other data are not judged.
"""

import sys
from io import BytesIO

import pandas as pd

from analysis.errors import InputError, exit_status
from analysis.statistics.judge import INCONCLUSIVE, NOT_APPLICABLE
from analysis.statistics.roles import LABELS
from analysis.study.folders import Folders
from analysis.study.profiles import command_line
from analysis.study.provenance import PARSER, committed, data_of, files_of, weights_of
from analysis.texts.syntax import RELATIONS


def too_many_verdicts(made: pd.DataFrame, known: pd.DataFrame) -> bool:
    """Whether more verdicts of a paper's claims differ than may; prints all that do."""
    both = known.merge(made, "left", "claim", suffixes=("", "_made")).fillna({"verdict_made": "missing"})
    changed = both[both["verdict"] != both["verdict_made"]]
    for claim in changed.itertuples():
        print(f"{claim.claim} is {claim.verdict_made}, committed: {claim.verdict}")
    undecided = changed[["verdict", "verdict_made"]].isin([INCONCLUSIVE, NOT_APPLICABLE]).any(axis=1)
    return not undecided.all() or len(changed) > len(both) / 10


def label_difference(made: pd.DataFrame, known: pd.DataFrame) -> float:
    """The share of a table's role labels that differ."""
    known, made = (table.astype(str).fillna("") for table in (known, made))
    both = known.merge(made, "left", ["layer", "head", "role"], suffixes=("", "_made"))
    labels = [label for label in LABELS if label in known]
    return sum((both[label] != both[f"{label}_made"]).mean() for label in labels) / len(labels)


def largest_difference(made: pd.DataFrame, known: pd.DataFrame) -> float:
    """The largest |made - known| / max(|known|, 0.01) of two numbers in the same place; infinite if one is missing."""
    here, there = made.select_dtypes("number").align(known.select_dtypes("number"))
    apart = (here - there).abs() / there.abs().clip(lower=0.01)
    return float(apart.mask(here.isna() != there.isna(), float("inf")).fillna(0).to_numpy().max(initial=0))


def verify(profile: str) -> None:
    """Prints what differs from the committed results; raises InputError if a conclusion does."""
    here, there = files_of(Folders(profile).folder), committed(profile)
    weights = [weights_of(files) for files in (here, there)]
    claims, numbers, problems = {}, {}, [f"{path} is missing" for path in there if path not in here]
    for path in [path for path in there if path in here and path.startswith("tables/")]:
        name = path.removeprefix("tables/").removesuffix(".csv")
        made, known = (pd.read_csv(BytesIO(files[path])) for files in (here, there))
        if name.startswith("claims-"):
            claims.setdefault(name.replace("matching", "synthesis"), []).append((made, known))
        if name.startswith("roles-"):
            made_from, known_from = (tables.get(name, {}) for tables in weights)
            if made_from.pop(PARSER, "") != known_from.pop(PARSER, ""):
                known = known[~known["role"].isin(["syntactic", *RELATIONS])]
            if (share := label_difference(made, known)) > (0.01 if made_from == known_from else 0.05):
                problems.append(f"{name}: {share:.1%} of the role labels differ")
        if not name.endswith("_speed"):  # measured times
            numbers[name] = largest_difference(made, known)
    for name, tables in claims.items():
        if too_many_verdicts(*map(pd.concat, zip(*tables, strict=True))):
            problems.append(f"{name}: too many verdicts differ")
    print("largest differences of numbers, by table:", pd.Series(numbers).nlargest(3).round(5).to_dict())
    data = data_of(here)
    if runs := [run for run, digest in data_of(there).items() if data.get(run, digest) != digest]:
        print(f"compared, not judged: {', '.join(runs)} read other data than for the committed results")
    elif problems:
        raise InputError(f"profile {profile} is not reproduced: {'; '.join(problems)}")
    else:
        print(f"profile {profile} is reproduced")


if __name__ == "__main__":
    name = command_line("analysis.study.verification", __doc__).parse_args().profile
    sys.exit(exit_status(lambda: verify(name)))
