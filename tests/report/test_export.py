"""Export of a run: scores of which more is better, figures next to the printed ones, and what is missing."""

import numpy as np
import pandas as pd
import pytest

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.scores import score_table
from uetrust.papers.he2024.published import correlation_figures, figure_table, printed_tables
from uetrust.report import export
from uetrust.report.export import _compare_with_print, _data_card, _exported_scores, _own_figure, export_run

BANK = "bulletin--tiny-bart"


@pytest.fixture
def run(tmp_path, monkeypatch):
    "A folder of a run with three texts, one method and two metrics, of which one is better when it is lower"
    monkeypatch.setattr(export, "out_dir", lambda profile: tmp_path)
    (tmp_path / "scores").mkdir()
    lower = next(name for name in reg.of("nlg") if reg[name].sign == -1)

    def write(ending, **columns):
        rows = [
            dict(sample=f"s{i}", name=name, value=value, note="")
            for name, values in columns.items()
            for i, value in enumerate(values)
        ]
        table = pd.DataFrame(rows)[list(score_table())]
        table.to_parquet(tmp_path / "scores" / f"{BANK}{ending}.parquet")

    write("", msp=[1.0, 2.0, np.nan])
    write("_quality", rouge_1=[0.5, 0.25, 0.125], **{lower: [3.0, 1.0, 2.0]})
    return lower


def test_a_score_that_is_better_when_lower_leaves_with_its_sign_turned(run):
    table = _exported_scores("smoke", BANK).set_index("sample")
    assert table["rouge_1"].tolist() == [0.5, 0.25, 0.125] and table[run].tolist() == [-3, -1, -2]
    assert table["msp"].tolist()[:2] == [1, 2] and np.isnan(table["msp"].iloc[2])
    assert list(table)[-1] == "msp", "quality first"


def test_a_bank_that_was_not_run_says_what_writes_it(run, tmp_path):
    (tmp_path / "scores" / f"{BANK}_quality.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"_quality.* is not there; `make reproduce PROFILE=smoke`"):
        _exported_scores("smoke", BANK)


def test_a_profile_without_banks_has_nothing_to_export(tmp_path):
    with pytest.raises(ValueError, match="'ice' has no banks"):
        export_run("ice", tmp_path / "out")


def test_a_card_counts_what_is_exported(run):
    card = _data_card("smoke", {BANK: _exported_scores("smoke", BANK)})
    assert f"| scores/{BANK}.parquet | bulletin | tiny-bart | 3 | 2 | 1 |" in card
    assert "**These are stand-ins, not the models of the paper**" in card
    assert f"uetrust prr scores/{BANK}.parquet --id sample --quality" in card and "--uncertainty msp" in card


def test_a_difference_of_correlations_is_in_units_of_its_error():
    columns = dict(label_a=["a", "a"], label_b=["b", "c"], n=[9, 3])
    own, printed = (pd.DataFrame(columns | dict(rho=rho)) for rho in ([0.5, 0.1], [0.8, 0.1]))
    table = _compare_with_print(own, printed)
    assert table["difference"].tolist() == pytest.approx([-0.3, 0]) and table["n"].tolist() == [9, 3]
    expected = (np.arctanh(0.5) - np.arctanh(0.8)) / np.sqrt(2 * 1.06 / 6)
    assert table["z"][0] == pytest.approx(expected) and np.isnan(table["z"][1]), "three columns have no error"


def test_a_figure_of_own_numbers_has_the_rows_and_columns_that_both_have():
    number = correlation_figures().index[0]
    source = f"T{correlation_figures().loc[number, 'source_table']}"
    whole = figure_table(number).table
    own = printed_tables()[source].copy()
    own.loc[whole.index[0]] = np.nan
    figure, printed = _own_figure(number, {source: own})
    assert list(figure.table.index) == list(whole.index[1:]) == list(printed.index)
    assert np.allclose(figure.table, whole.loc[printed.index, printed.columns])
    with pytest.raises(Undefined, match=f"no own numbers of table {source[1:]}"):
        _own_figure(number, {})
    with pytest.raises(Undefined, match="rows and .* columns have own numbers"):
        _own_figure(number, {source: own.iloc[:, :0]})
