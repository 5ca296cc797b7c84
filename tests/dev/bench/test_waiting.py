"""What users wait for is measured through the command, and has limits."""

import pytest

from uetrust.dev.bench.evaluation import print_targets
from uetrust.dev.bench.waiting import bench_waiting, command_cost


@pytest.mark.long
def test_a_row_beyond_its_limit_fails(capsys):
    "One call, four commands, and seconds and memory of a large file."
    table = bench_waiting(rows=2000, runs=1, log=lambda line: None)
    assert (table["measured"] > 0).all() and list(table["met"]) == list(table["measured"] <= table["limit"])
    for words in ("one call of prr", "command start", "audit of 2,000 rows"):
        assert table["target"].str.startswith(words).any()
    print_targets(table.assign(met=table["measured"] < 0))
    assert capsys.readouterr().out.count("FAIL") == len(table)


def test_a_command_that_fails_is_no_measurement(tmp_path):
    with pytest.raises(RuntimeError, match="ended with 2"):
        command_cost("uetrust audit nothing.csv", tmp_path)
