"""The claims of a profile: the units that its notebooks have saved, the verdicts on them, and its encoder."""

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pandas as pd

import analysis
from analysis.errors import InputError
from analysis.statistics.claims import CLAIM_COLUMNS, Claim, claim_table, read_claims
from analysis.statistics.encoders import units_of_claims
from analysis.study.profiles import made_up, parameters, profile_names
from analysis.study.results import UNITS, Results, results_to_read

# The folders of the papers and the synthesis, in the order of their notebooks; the Makefile has the same list.
PAPERS = ("pande2021", "clark2019", "michel2019", "kovaleva2019", "pascual2021", "niven2019", "synthesis")
# What "pre-trained" means in the tables of an encoder.
ENCODERS = {
    "minilm": "MiniLM (all-MiniLM-L6-v2), a sentence encoder trained on a billion text pairs. It is not a masked "
    "language model",
    "mpnet": "MPNet (all-mpnet-base-v2), of BERT-base's size, a sentence encoder trained on a billion text pairs",
    "tiny": "tiny, with random weights: its heads have learnt nothing",
    "bert-base-uncased": "BERT-base, a masked language model",
}


def paper_titles() -> dict[str, str]:
    """The title of every paper, the first sentence of its package, by the name of its folder."""
    homes = {name: "analysis" if name == "synthesis" else "analysis.papers" for name in PAPERS}
    texts = {name: import_module(f"{home}.{name}").__doc__ for name, home in homes.items()}
    return {name: text.split("\n")[0].rstrip(".") for name, text in texts.items()}


def known_claims() -> dict[str, list[Claim]]:
    """The claims of every paper as they stand in its claims.yaml."""
    paths = {path.parent.name: path for path in Path(analysis.__file__).parent.rglob("claims.yaml")}
    return {name: read_claims(paths[name]) for name in PAPERS}


def judged(results: Results, known: Sequence[Claim]) -> pd.DataFrame:
    """`claim_table` of the units that notebooks have saved; of claims that none has saved the reason is "not run".

    Its numbers have the six digits of a saved table, so that a chapter and the summary, which reads it, round alike.
    """
    units = {claim: rows for table in unit_tables(results) for claim, rows in table.groupby("claim")}
    claims = claim_table(known, units, made_up(results.profile.home.name))
    numbers = claims.select_dtypes("float").columns
    return claims.assign(**claims[numbers].map(lambda number: float(f"{number:.6g}")))


def unit_tables(results: Results) -> list[pd.DataFrame]:
    """The units of claims that notebooks have saved; "" is the name of a single one."""
    tables = (results.load_table(name) for name in results.table_names() if name.startswith(UNITS))
    return [table.fillna({"unit": ""}).astype({"unit": str}) for table in tables]


def saved_claims(results: Results) -> dict[str, pd.DataFrame]:
    """The verdicts of a profile by paper; those in an earlier form must be made again."""
    tables = {paper: results.load_if_saved(f"claims-{paper}") for paper in PAPERS}
    return {
        paper: table for paper, table in tables.items() if len(table) and [*table.columns] == CLAIM_COLUMNS
    }


def has_claims(profile: str) -> bool:
    """Whether a profile has claims, in the folder of results or in the checkout."""
    return bool(saved_claims(results_to_read(profile)))


def by_encoder(profiles: Sequence[str]) -> dict[str, str]:
    """Profiles by the names of their encoders; encoders of one name have that of the profile too."""
    names = [encoder_name(profile) for profile in profiles]
    repeated = {name for name in names if names.count(name) > 1}
    labels = [
        f"{name} ({profile})" if name in repeated else name
        for name, profile in zip(names, profiles, strict=True)
    ]
    if len({*labels}) < len(labels):  # a profile beside itself
        labels = [f"{label}, {number}" for number, label in enumerate(labels, 1)]
    return dict(zip(labels, profiles, strict=True))


def claims_by_encoder(*profiles: str) -> dict[str, pd.DataFrame]:
    """The claims of all papers by the name of the encoder; raises InputError for a profile without any."""
    claims = {}
    for name, profile in by_encoder(profiles).items():
        if not (tables := saved_claims(results_to_read(profile))):
            raise InputError(f"profile {profile} has no claims yet: run make reproduce PROFILE={profile}")
        claims[name] = pd.concat(tables.values(), ignore_index=True)
    return claims


def units_by_encoder(*profiles: str) -> dict[str, pd.DataFrame]:
    """The units of all claims by the name of the encoder; raises InputError for a profile without claims."""
    claims = claims_by_encoder(*profiles)
    return {
        name: saved_units(results_to_read(profile), claims[name])
        for name, profile in by_encoder(profiles).items()
    }


def saved_units(results: Results, claims: pd.DataFrame) -> pd.DataFrame:
    """The units of claims that notebooks saved; a claim whose units were not saved has one, its mean."""
    if not (tables := unit_tables(results)):
        return units_of_claims(claims)
    saved = pd.concat(tables, ignore_index=True).fillna({"reason": ""})
    rest = units_of_claims(claims[~claims["claim"].isin(saved["claim"])])
    return pd.concat([saved, rest], ignore_index=True) if len(rest) else saved


def papers_without_claims(profile: str) -> list[str]:
    """The papers of which a profile has no table of claims, so that its run is not complete."""
    tables = saved_claims(results_to_read(profile))
    return [name for name in PAPERS if name not in tables]


def other_encoders(profile: str) -> dict[str, pd.DataFrame]:
    """The claims of other profiles on real texts that have any, by the name of the encoder; none beside toy texts."""
    others = [name for name in profile_names() if name != profile and not made_up(name)]
    return {} if made_up(profile) else claims_by_encoder(*filter(has_claims, others))


def encoder_of(profile: str) -> str:
    """The encoder of a profile, and how it was trained before the study."""
    name = parameters("01_extract", profile)["encoder"]
    return ENCODERS.get(name, f"{name}, as loaded")


def encoder_name(profile: str) -> str:
    """The name of the encoder of a profile, as prose writes it."""
    name = parameters("01_extract", profile)["encoder"]
    return re.split(r"[,:]| \(", ENCODERS.get(name, name))[0]
