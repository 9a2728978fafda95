"""Measures of the claims, sentences and figures on small tables with obvious answers."""

import numpy as np
import pandas as pd
import pytest
from drawing import unnamed
from matplotlib.figure import Figure

from analysis.papers.pascual2021 import figures, sentences
from analysis.papers.pascual2021.illustrations import exemplars, illustrated
from analysis.papers.pascual2021.measures import CLAIMS, measures
from analysis.papers.pascual2021.names import (
    JSD,
    MAPS,
    MEASURES,
    MIXING,
    PEARSON,
    SHARE,
    SLOPE,
    VALUES,
    WHOLE,
)
from analysis.statistics.claim_tables import claim_table

RUNS = [("mrpc", "pretrained"), ("mrpc", "finetuned")]
LAYERS, HEADS = 3, 4


def row(name: str, **tables: pd.DataFrame) -> pd.Series:
    """The row of a claim in the table of claims; tables that are not given have no rows."""
    known = {"discrepancy": discrepancy, "persistence": lambda: persistence(1, 1), "effective": survival}
    known |= {"survival": survival, "sinks": sinks}
    full = {table: tables.get(table, make().iloc[:0]) for table, make in known.items()}
    return claim_table(CLAIMS, measures(full)).set_axis([claim.id for claim in CLAIMS]).loc[name]


def verdict(name: str, **tables: pd.DataFrame) -> str:
    return row(name, **tables)["verdict"]


def interval(value: float, half: float = 0.01) -> dict[str, float]:
    return {"value": value, "low": value - half, "high": value + half}


def discrepancy(
    divergence: list[float] = (0.05, 0.3, 0.4), share: float = 0.8, slope: float = 0.1
) -> pd.DataFrame:
    """A table of discrepancy with these values in every run; without special tokens half of them."""
    rows = []
    for (task, state), (tokens, part) in (
        (run, each) for run in RUNS for each in (("all", 1), ("text", 0.5))
    ):
        run = {"task": task, "state": state, "tokens": tokens, "n": 20}
        rows.append(run | {"pair": WHOLE, "measure": SLOPE} | interval(part * slope))
        for layer, value in enumerate(divergence):
            at = run | {"layer": layer}
            rows.append(at | {"pair": WHOLE, "measure": SHARE} | interval(part * share))
            rows += [
                at | {"pair": pair, "measure": measure} | interval(part * value)
                for pair in (WHOLE, VALUES, MIXING)
                for measure in MEASURES
            ]
            rows += [
                at | {"pair": WHOLE, "measure": measure, "head": head} | interval(part * value)
                for head in range(HEADS)
                for measure in (JSD, PEARSON)
            ]
    return pd.DataFrame(rows)


def persistence(weakest: int, low: int) -> pd.DataFrame:
    """Every layer has `weakest` heads with cls; only layer 0 has heads with sep, but many."""
    best = {"pattern": "cls", "weakest": weakest, "low": low, "high": weakest + 1, "verdict": "in all layers"}
    other = {"pattern": "sep", "weakest": 0, "low": 0, "high": 5, "verdict": "lost"}
    return pd.DataFrame(
        [
            {"task": task, "state": state, "layer": layer} | each
            for task, state in RUNS
            for layer in range(LAYERS)
            for each in (other | {"attribution": 9 * (layer == 0)}, best | {"attribution": weakest})
        ]
    )


def survival(role: str = "delimiter", effective: int = 0, kappa: float = 0.9) -> pd.DataFrame:
    heads = dict.fromkeys(MAPS, 10) | {"effective": effective}
    rows = [
        {"task": task, "state": state, "role": role, "map": name, "heads": count, "heads_low": count}
        | {"heads_high": count + 1, "n": 50, "kappa": kappa, "low": kappa - 0.1, "high": kappa + 0.05}
        for task, state in RUNS
        for name, count in heads.items()
    ]
    return pd.DataFrame(rows).astype({"heads": "Int64"})


def sinks(changed: int = 1) -> pd.DataFrame:
    return pd.DataFrame(
        [{"task": task, "state": state, "map": "effective", "changed": changed} for task, state in RUNS]
    )


def patterns() -> pd.DataFrame:
    keys = [RUNS, ["offset_-1", "offset_+1", "delimiter", "cls", "block"], range(LAYERS), range(HEADS)]
    table = pd.DataFrame(
        [(*run, *rest) for run, *rest in pd.MultiIndex.from_product(keys)],
        columns=["task", "state", "pattern", "layer", "head"],
    )
    values = np.random.default_rng(0).gamma(1, 1, (len(table), len(MAPS)))
    table[list(MAPS)] = values
    table.loc[table["pattern"] == "block", list(MAPS)] = np.nan
    return table


def test_claims_say_whose_they_are():
    assert [claim.id for claim in CLAIMS] == ["P1", "P1b", "P2", "P3", "P4", "P5", "P6"]
    assert [claim.id for claim in CLAIMS if claim.origin == "the article's"] == ["P1", "P2", "P4"]
    assert all(claim.source == "abstract" for claim in CLAIMS if claim.origin == "the article's")
    assert not any(character.isdigit() for claim in CLAIMS for character in claim.published)


def test_without_tables_every_claim_is_untestable():
    assert {verdict(claim.id) for claim in CLAIMS} == {"untestable"}


def test_discrepancy():
    table = discrepancy()
    assert [verdict(name, discrepancy=table) for name in ("P1", "P1b", "P2", "P3")] == ["holds"] * 4
    found = row("P1", discrepancy=table)
    assert (found["estimate"], found["pooled"], found["unit_count"]) == pytest.approx(
        (0.3, 0.35, 4)
    )  # no layer 0
    assert "without special tokens 0.15 to 0.20" in found["ours"]
    assert row("P1b", discrepancy=table)["estimate"] == pytest.approx(0.15)
    assert row("P2", discrepancy=table)["estimate"] == pytest.approx(0.8)
    assert row("P3", discrepancy=discrepancy(slope=0.3))["estimate"] == pytest.approx(0.3)
    assert verdict("P1", discrepancy=discrepancy([0.5, 0.105, 0.4])) == "undecided"
    assert verdict("P1", discrepancy=discrepancy([0.5, 0.3, 0.02])) == "does not hold"
    assert verdict("P1b", discrepancy=discrepancy([0.5, 0.3, 0.15])) == "does not hold"
    assert verdict("P2", discrepancy=discrepancy(share=0.4)) == "does not hold"
    assert verdict("P3", discrepancy=discrepancy(slope=-0.1)) == "does not hold"


def test_persistence_of_patterns():
    assert verdict("P4", persistence=persistence(3, 2)) == "holds"
    assert verdict("P4", persistence=persistence(2, 0)) == "undecided"
    assert verdict("P4", persistence=persistence(0, 0).assign(high=0)) == "does not hold"
    assert "cls in 2 of 2; most layers of 3: cls 3, cls 3" in row("P4", persistence=persistence(3, 2))["ours"]


def test_the_best_pattern_covers_the_most_layers():
    table = persistence(0, 0)
    table.loc[(table["pattern"] == "sep") & (table["layer"] == 1), "attribution"] = 1
    table.loc[table["pattern"] == "cls", "low"] = 1  # the weakest layer alone would prefer cls
    assert "most layers of 3: sep 2, sep 2" in row("P4", persistence=table)["ours"]


def test_delimiters():
    gone = survival(effective=0)
    assert verdict("P5", effective=gone) == "holds"  # the interval ends at the bound
    found = row("P5", effective=gone)
    assert "mrpc, finetuned 0 of 10; mrpc, pretrained 0 of 10" in found["ours"]
    assert found["control_value"] == "rows that keep their sums: mrpc, finetuned 100%, mrpc, pretrained 100%"
    assert row("P5", effective=survival(effective=5))["estimate"] == 0.5
    assert verdict("P5", effective=survival(effective=5)) == "does not hold"
    assert verdict("P5", effective=survival().assign(heads=0)) == "untestable"
    few = row("P5", effective=gone.assign(n=19))
    assert few["ours"].endswith("effective attention is attention")


def test_one_task_with_long_sequences_decides():
    table = survival(effective=0)
    table.loc[table["state"] == "finetuned", "n"] = 3
    assert row("P5", effective=table)["unit_count"] == 1


def test_syntactic_roles():
    for kappa, expected in (
        (0.9, "holds"),
        (0.62, "undecided"),
        (0.3, "does not hold"),
        (np.nan, "untestable"),
    ):
        assert verdict("P6", survival=survival("syntactic", 9, kappa), sinks=sinks()) == expected
    table = survival("syntactic", 9, 0.3)
    table.loc[table["map"] == "attribution", ["kappa", "low", "high"]] = 0.9
    found = row("P6", survival=table, sinks=sinks())
    assert (found["pooled"], found["holding"], found["unit_count"]) == (pytest.approx(0.6), 2, 4)
    assert "median on effective 0.30, median on attribution 0.90" in found["ours"]
    assert verdict("P6", survival=table, sinks=sinks(0)) == "holds"  # effective attention tells nothing


def test_sentences():
    text = sentences.discrepancy(discrepancy())
    assert "With all tokens attention and attribution differ least in layer 0 (0.05 bits)" in text
    assert "most in layer 2 (0.40 bits)" in text
    text = sentences.persistence(persistence(1, 1))
    assert text.startswith(
        "In every layer some head shows cls on attribution. Heads show sep on attention alone."
    )
    assert text.endswith("is the most frequent over tasks and states.")
    assert "next token on attention" in sentences.strongest_patterns(patterns())
    masses = [
        {"map": name, "target": target, "layer": np.nan, "mass": mass}
        for name, mass in (("attention", 0.3), ("effective", 0.02), ("effective_sum", 0.2))
        for target in ("[CLS]", "[SEP]")
    ]
    assert sentences.sinks(pd.DataFrame(masses)).startswith(
        "Over tasks and states [CLS] has 0.300 to 0.300 of the"
    )


def test_sentence_of_survival():
    table = pd.concat([survival("cls"), survival("sep", kappa=0.2)])
    table.loc[table["map"] == "effective_sum", "kappa"] = 0.5
    text = sentences.survival(table)
    assert "on local attribution: highest cls (0.90), lowest sep (0.20);" in text
    assert "on effective attention with rows' sums kept: all roles alike (0.50)" in text


def test_sentence_of_validation():
    rows = [("sampled", 8.0, 0.1), ("input before normalisation", np.nan, 0.2)]
    table = pd.DataFrame(rows, columns=["compared", "probes", "total_variation"])
    table = table.assign(spearman=0.9, score_error=0.01)
    assert "8 probes against all: total variation of rows 0.100" in sentences.validation(table, 8)
    text = sentences.validation(table, None)
    assert text.startswith("input before normalisation against after: total variation of rows 0.200")
    assert "nan" not in text


def dependencies() -> pd.DataFrame:
    table = pd.DataFrame({"relation": ["det", "obj"], "n": [90, 40], "offset_accuracy": [0.5, 0.3]})
    values = {"attention": 0.8, "attribution_same_head": 0.6, "attribution": 0.7, "change": -0.2}
    for name, value in values.items():
        table[name], table[f"{name}_low"], table[f"{name}_high"] = value, value - 0.1, value + 0.1
    return table


def test_sentence_of_dependencies():
    more = dependencies()
    names = ["all", "all but punct", "compound+flat", "det+det:predet"]
    more = pd.concat(
        [more, *(more.iloc[[0]].assign(relation=name, change=-0.5) for name in names)], ignore_index=True
    )
    # Without compound in the table, compound+flat is the relation itself.
    assert sentences.dependencies(more).startswith("Of 3 relations the")
    assert sentences.dependencies(dependencies()).startswith(
        "Of 2 relations the best head on attention finds fewer arcs on attribution in 2, more in 0"
    )


@pytest.fixture(scope="module")
def drawn(request) -> dict[str, Figure]:
    offsets = pd.DataFrame(
        [(name, layer, offset, 0.1) for name in MAPS for layer in range(LAYERS) for offset in range(-10, 11)],
        columns=["map", "layer", "offset", "mass"],
    )
    both = pd.concat([survival("cls"), survival("sep", kappa=0.2)])
    return {
        "discrepancy": figures.discrepancy_by_layer(discrepancy()),
        "heads": figures.discrepancy_heads(discrepancy()),
        "patterns": figures.pattern_layers(patterns(), 3.0),
        "scatter": figures.pattern_scatter(patterns(), 3.0),
        "offsets": figures.offset_strips(offsets),
        "kappa": figures.kappa_by_role(both),
        "dependencies": figures.dependency_changes(dependencies()),
    }


def test_axes_have_names(drawn):
    assert {name: unnamed(figure) for name, figure in drawn.items()} == dict.fromkeys(drawn, [])


def test_figures_show_the_tables(drawn):
    titles = [axes.get_title() for axes in drawn["patterns"].axes if axes.get_title()]
    assert titles == ["delimiter", "cls", "offset_-1", "offset_+1"]  # block has no scores
    line = drawn["discrepancy"].axes[0].lines[1]
    np.testing.assert_allclose(line.get_ydata(), [0.05, 0.3, 0.4])
    names = [label.get_text() for label in drawn["kappa"].axes[0].get_yticklabels()]
    assert names == ["cls", "sep"]
    assert len([axes for axes in drawn["kappa"].axes if axes.get_title()]) == len(MAPS) - 1
    rows = [label.get_text() for label in drawn["dependencies"].axes[0].get_yticklabels()]
    assert rows == ["det (90)", "obj (40)"]


def test_illustration():
    from analysis.encoders.models import load_encoder
    from analysis.texts.examples import Example

    table = patterns()[lambda each: each["state"] == "pretrained"]
    heads = exemplars(table)
    assert [layer for layer, _ in heads.values()] == [0, 1, 2]
    first = table[(table["pattern"] == "offset_+1") & (table["layer"] == 0)]
    assert heads["next token"][1] == first.set_index("head")["attention"].idxmax()
    tiny = load_encoder("tiny")
    examples = [Example("short", "She ran ."), Example("long", "She ran and ran .")]
    # A value vector of this encoder has 12 entries.
    suitable = [*examples, Example("suitable", "She ran" + " and ran" * 6), Example("longest", "ran " * 40)]
    assert illustrated(tiny, suitable, 2)[0].id == "suitable"
    layout, maps = illustrated(tiny, examples, 2)
    assert layout.id == "long"
    assert {found.shape for found in maps.values()} == {(3, 4, len(layout), len(layout))}
    figure = figures.example_maps(maps, layout.tokens, heads)
    assert [axes.get_title() for axes in figure.axes][:4] == [*maps]
    assert unnamed(figure) == []
