"""PRR under every definition that public code has: equal to the sources' values, and found from a print."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers.paths import ROOT
from uetrust import prr, prr_table
from uetrust.cli.cli import main
from uetrust.evaluation.atlas import prr_atlas, which_prr
from uetrust.evaluation.definitions import PRR_DEFINITIONS

STORED = json.loads((ROOT / "data" / "prr_atlas.json").read_text())
CASES = STORED["cases"]


def scores(case):
    return tuple(np.array(CASES[case][key], float) for key in ("quality", "uncertainty"))


@pytest.mark.parametrize("name", sorted(PRR_DEFINITIONS))
def test_a_definition_equals_its_source_on_every_stored_case(name):
    stored = {case: one["values"][name] for case, one in CASES.items() if name in one["values"]}
    assert len(stored) >= (2 if PRR_DEFINITIONS[name].labels_only else 4)
    for case, value in stored.items():
        assert prr(*scores(case), compat=name).value == pytest.approx(value, abs=1e-9, rel=0)


def test_the_atlas_has_every_definition_with_its_source():
    table = prr_atlas(*scores("labels_200")).set_index("definition")
    assert set(table.index) == {"uetrust", *PRR_DEFINITIONS} and len(PRR_DEFINITIONS) >= 8
    assert set(CASES["labels_200"]["values"]) == set(PRR_DEFINITIONS)
    assert (table["source"].drop("uetrust") != "").all() and table["value"].notna().all()
    shares = prr_atlas(*scores("shares_57")).set_index("definition")
    assert shares.loc["query_level", "note"].startswith("query_level is defined for labels 0 and 1 only")
    assert np.isnan(shares.loc["query_level", "value"])


@pytest.mark.parametrize("case", ["labels_40", "shares_57"])
def test_a_printed_number_leads_back_to_its_definition(case):
    for name, value in CASES[case]["values"].items():
        printed = round(value, 1 if PRR_DEFINITIONS[name].percent else 3)
        found = which_prr(printed, *scores(case), decimals=1 if PRR_DEFINITIONS[name].percent else 3)
        assert name in set(found.loc[found["fits"], "definition"]), name
    assert not which_prr(0.123, *scores("shares_57"))["fits"].any()


def test_errors_stand_only_with_values_that_they_belong_to():
    quality, uncertainty = scores("shares_300")
    half, ours = (
        prr(quality, uncertainty, compat="lm_polygraph_50"),
        prr(quality, uncertainty, max_rejection=0.5),
    )
    assert half.se == ours.se and half.value != ours.value and abs(half.value - ours.value) < 0.01
    other = prr(quality, uncertainty, compat="median_gain")
    assert np.isnan([other.se, other.lo, other.hi, other.p, other.null_sd]).all() and other.n == 300
    with pytest.raises(ValueError, match="has its own area"):
        prr(quality, uncertainty, compat="median_gain", area="sum")
    with pytest.raises(ValueError, match="one of .*lm_polygraph_50.* got 'polygraph'"):
        prr_table(pd.DataFrame(), pd.DataFrame(), compat="polygraph")


def test_three_texts_are_enough_for_another_definition():
    quality, uncertainty = [1.0, 0.2, 0.6], [0.3, 0.2, 0.1]
    ours, theirs = prr(quality, uncertainty), prr(quality, uncertainty, compat="lm_polygraph_raw")
    assert theirs.value == pytest.approx((0.5 + 0.25 + 0.5) / 3) != ours.value  # Means of 0.5, 0, 1
    assert "as defined by lm_polygraph_raw" in theirs.note


def test_forced_truth_is_the_cumulative_sum():
    "What rejected items are replaced by cancels: only the ends of the trapezoids differ, by order 1/n."
    quality, uncertainty = scores("shares_300")
    forced = prr(quality, uncertainty, compat="structured_uncertainty").value / 100
    assert forced == pytest.approx(prr(quality, uncertainty, area="sum").value, abs=2 / 300)


def test_the_command_prints_prr_by_another_definition(tmp_path, capsys):
    quality, uncertainty = scores("labels_40")
    file = tmp_path / "s.csv"
    pd.DataFrame(dict(right=quality, msp=uncertainty)).to_csv(file, index=False)
    ask = ["prr", str(file), "--quality", "right", "--uncertainty", "msp", "--json", "--compat"]
    assert main([*ask, "lm_polygraph_50"]) == 0
    found = json.loads(capsys.readouterr().out)
    row = found[0] if isinstance(found, list) else found["rows"][0]
    assert row["value"] == pytest.approx(CASES["labels_40"]["values"]["lm_polygraph_50"], abs=1e-9)
    assert main([*ask, "polygraph"]) == 2 and "lm_polygraph_50" in capsys.readouterr().err
