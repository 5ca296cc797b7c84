"""Claims are given by a user: what a bank or a file says that has none."""

from uetrust.core.run import required_inputs
from uetrust.scoring.methods import bank_methods
from uetrust.statistics.entry import STATISTICS
from uetrust.statistics.scores import load_scores

reg = load_scores()
OF_CLAIMS = {name for name in reg.of("ue") if "claim" in " ".join(required_inputs(name, reg))}


def test_methods_of_claims_need_what_the_entry_names_and_no_bank_has_it():
    assert len(OF_CLAIMS) == 20 and {"claim_luq", "claim_page_rank", "selfcheck_unigram"} <= OF_CLAIMS
    given = set(STATISTICS["claims"].gives)
    assert set().union(*(required_inputs(name, reg) for name in OF_CLAIMS)) == given
    assert not OF_CLAIMS & set(bank_methods(reg))
    assert not STATISTICS["claims"].stored and "ScoreRun" in STATISTICS["claims"].remedy


def test_its_example_goes_from_sure_to_doubtful():
    sure, doubtful = (STATISTICS["claims"].toy(doubt) for doubt in (0, 1))
    assert (sure["claim_nli"].argmax(1) == 2).all()
    assert (doubtful["claim_nli"].argmax(1)[1:] == 0).all()
