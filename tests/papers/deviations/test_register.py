"""The register of deviations: what it refuses, and which printed numbers a row touches."""

import pytest

from uetrust.papers.deviations import register as r
from uetrust.papers.he2024.published import printed_tables
from uetrust.papers.ledger.cells import PAPER_PREFIXES, printed_numbers

PAPERS = dict(zip(r.PRESET_PROFILES, PAPER_PREFIXES))


def test_every_row_says_what_is_done_and_a_deviation_says_how():
    rows = r.deviations()
    assert set(rows["state"]) == set(r.DEVIATION_STATES) and not rows.duplicated(["preset", "field"]).any()
    assert (rows[["paper", "code"]] != "").all(axis=None)
    other = rows[rows["state"] == "named deviation"]
    assert (other["ours"] != "").all(), list(other.loc[other["ours"] == "", "field"])
    assert r.deviation_counts().to_numpy().sum() == len(rows)


@pytest.mark.parametrize("preset", r.PRESET_PROFILES)
def test_tables_and_names_of_a_row_are_printed_ones(preset):
    printed = printed_numbers().query("paper == @PAPERS[@preset]")
    for row in r.deviations(preset).itertuples():
        numbers = [int(number) for number in row.tables.split() if number != "all"]
        assert set(numbers) <= set(printed["table"]), row.field
        of_tables = printed[printed["table"].isin(numbers)] if numbers else printed
        rows = of_tables["row"].str.rpartition(": ")[2]
        names = {*of_tables["row"], *rows, *of_tables["column"], *of_tables["group"]}
        for pattern in filter(None, f"{row.metrics}; {row.methods}".split("; ")):
            assert any(r._names(pattern, name) for name in names), (row.field, pattern)


def test_a_cell_is_touched_by_what_names_its_table_metric_and_method():
    def fields(table, metric, method):
        return set(r.touching("he2024", table, metric, method)["field"])

    assert "generator.llama-2-7b-chat.p_true" in fields(4, "ROUGE-L", "P(True)")
    assert "generator.llama-2-7b-chat.p_true" not in fields(4, "ROUGE-L", "MSP")
    assert "texts.tofueval" in fields(9, "ROUGE-L", "LexSim")
    assert "texts.tofueval" not in fields(3, "ROUGE-L", "LexSim")
    assert "judge.model" in fields(3, "wi-gt-GPT-3.5 (Overall)", "MSP")
    assert "judge.model" not in fields(3, "BARTScore", "MSP")
    whole = set(r.touching("he2024")["field"])
    each = [fields(int(name[1:]), *cell) for name, t in printed_tables().items() for cell in t.stack().index]
    assert set().union(*each) <= whole
    assert not (r.touching("he2024")["state"] == "same").any()


def test_an_unknown_set_up_lists_what_there_is():
    with pytest.raises(LookupError, match="Did you mean 'fflm'.*There are he2024, ice, fflm"):
        r.deviations("flfm")


@pytest.mark.parametrize(
    "profile, preset", [("paper", "he2024"), ("ice-50", "ice"), ("demo-8", ""), ("x", "")]
)
def test_a_profile_has_the_register_of_its_paper(profile, preset):
    assert r.preset_of_profile(profile) == preset


def test_a_sentence_counts_and_names_the_deviations():
    line = r.deviation_line(r.touching("ice", 1, "ICE (Uniform Sampling)"))
    assert "profile.ice_judge" in line and line.endswith(".") and "  " not in line
    assert "0 deviations" in r.deviation_line(r.touching("ice").iloc[:0])
