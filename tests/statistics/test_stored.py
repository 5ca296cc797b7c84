"""Runs of stored statistics: hypotheses are a list for each source."""

from tests.helpers.prompted import THREE, D
from uetrust.statistics.beams import compute_beams
from uetrust.statistics.stored import score_runs
from uetrust.statistics.table import read_statistics


def test_hypotheses_are_a_list_per_source(bart, tmp_path):
    model, bank = bart
    compute_beams(bank.parent / "beams", bank, THREE, model, D, beams=2, members=2, progress=False)
    (run,) = score_runs(bank.parent)
    rows = read_statistics(bank.parent / "beams")
    for i, source in enumerate(run.samples):
        mine = rows[rows["sample"] == source]
        assert (
            run["beam_score"][i] == mine["score"].tolist()
            and run["beam_length"][i] == mine["length"].tolist()
        )
        assert all(
            logp.shape == (2, n - 1) and len(terms) == n - 1
            for logp, terms, n in zip(run["beam_member_logp"][i], run["beam_pe_tu"][i], run["beam_length"][i])
        )
