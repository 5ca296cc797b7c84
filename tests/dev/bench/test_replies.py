"""Times of scores of replies and claims: the numbers that both sides get, and the limits."""

import json

import numpy as np
import pandas as pd
import pytest

from uetrust.dev.bench import replies
from uetrust.statistics.scores import load_scores


def test_both_sides_get_the_same_numbers(tmp_path):
    texts, claims = replies.reply_statistics(10, claims=3)
    replies._write_replies(tmp_path, texts, claims)
    given = json.loads((tmp_path / "replies.json").read_text())
    assert given["texts"] == texts["greedy_text"] and given["logp"][3] == texts["greedy_logp"][3].tolist()
    entails = np.load(tmp_path / "claims.npz")["entails"]
    assert entails.shape == (2, 3, 6)
    odds = np.exp(claims["claim_nli"][4][2])
    assert entails[1, 1, 2] == pytest.approx(odds[2] / odds.sum())


def test_every_score_that_is_timed_exists():
    assert {name for scores in replies.REPLY_SCORES.values() for name in scores} <= set(
        load_scores().of("ue")
    )


@pytest.mark.parametrize("ratio, apart, said", [(2.0, 0.0, ["pass", "pass"]), (0.5, 1.0, ["FAIL", "FAIL"])])
def test_a_slower_score_or_another_value_fails(capsys, tmp_path, ratio, apart, said):
    row = dict(what=["margin"], n=5, ours=1.0, peer=ratio, ratio=ratio, apart=apart)
    replies.print_reply_bench(pd.DataFrame(row), tmp_path / "times.csv")
    lines = capsys.readouterr().out.splitlines()
    assert [line[:4] for line in lines if line.startswith(("pass", "FAIL"))] == said
    assert pd.read_csv(tmp_path / "times.csv")["ratio"].tolist() == [ratio]
