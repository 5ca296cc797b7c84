"""The bench of methods compares equal things: what the peer is handed holds the numbers of our run. Nothing here depends on a clock or on the peer."""

import json

import numpy as np
import pandas as pd
import pytest

from uetrust.bench import methods as b
from uetrust.core.run import Run, score
from uetrust.scoring.methods import score_bank

N, K = 6, 4


@pytest.fixture(scope="module")
def inputs():
    return b.given(b.leaves([b.item(i, K) for i in range(N)])), b.training(n=120)


@pytest.fixture(scope="module")
def peer(inputs, tmp_path_factory):
    at = tmp_path_factory.mktemp("peer")
    b.for_peer(at, *inputs)
    with np.load(at / "statistics.npz") as z:
        return json.loads((at / "statistics.json").read_text())["lists"], {k: z[k] for k in z}


def values(inputs, name):
    return score(Run(range(N), b.reg, dict(inputs[1]), **inputs[0]), name)["value"].to_numpy()


@pytest.mark.parametrize("name", b.PAIRS)
def test_made_up_statistics_give_every_score_a_value_that_varies(inputs, name):
    v = values(inputs, name)
    assert np.isfinite(v).all() and len(set(v.round(9))) > 1


def test_an_item_does_not_depend_on_how_many_are_drawn_before_it():
    a, c = b.item(3, K), b.item(3, K)
    assert (
        a["texts"] == c["texts"]
        and (a["logits"] == c["logits"]).all()
        and b.item(4, K)["texts"] != a["texts"]
    )
    assert len(a["texts"]) == 1 + K and len(b.item(3, 9)["at"]) == 10


def test_equal_texts_have_equal_logits_and_embeddings():
    repeated = [x for x in (b.item(i) for i in range(5)) if len(set(x["texts"])) < 11]
    assert repeated
    for x in repeated:
        assert [x["texts"].index(t) for t in x["texts"]] == [x["at"].tolist().index(j) for j in x["at"]]


# Restated from the definitions, on the dictionary that the peer is handed
def sar(p, tau=0.001):
    return [
        -np.mean([np.log(q[i] + sum(q[j] * g[i, j] for j in range(K) if j != i) / tau) for i in range(K)])
        for q, g in p
    ]


def test_the_peer_is_handed_our_numbers(inputs, peer):
    l, a = peer

    def mean(x):
        return [np.mean(v) for v in x]

    def weighed(ll, sim):
        return np.average(ll, weights=1 - np.array(sim))

    contra, entail = a["semantic_matrix_contra"], a["semantic_matrix_entail"]
    drawn = zip(l["sample_log_likelihoods"], l["sample_token_similarity"])
    want = dict(
        msp=[-sum(x) for x in l["greedy_log_likelihoods"]],
        mte=mean(l["entropy"]),
        mcse=[-np.mean(x) for x in l["sample_log_probs"]],
        mcnse_lmp=[
            -np.mean([p / len(t) for p, t in zip(ps, ts)])
            for ps, ts in zip(l["sample_log_probs"], l["sample_tokens"])
        ],
        p_true=[-x for x in l["p_true"]],
        pmi=[
            -(np.sum(x) - np.sum(y[1:])) / len(x)
            for x, y in zip(l["greedy_log_likelihoods"], l["greedy_lm_log_likelihoods"])
        ],
        deg_mat=1 - entail.mean((1, 2)),
        deg_mat_contra=contra.mean((1, 2)),
        token_sar=[-weighed(x, r) for x, r in zip(l["greedy_log_likelihoods"], l["token_similarity"])],
        cocoa_ppl=[
            -np.mean(x) * np.mean(1 - g)
            for x, g in zip(l["greedy_log_likelihoods"], a["greedy_sentence_similarity"])
        ],
        sentence_sar=sar(zip(np.exp(l["sample_log_probs"]), a["sample_sentence_similarity"])),
        sar=sar(
            zip(
                [np.exp([weighed(x, r) for x, r in zip(xs, rs)]) for xs, rs in drawn],
                a["sample_sentence_similarity"],
            )
        ),
    )
    assert {n: pytest.approx(v, rel=1e-9) for n, v in want.items()} == {n: values(inputs, n) for n in want}


def test_logits_classes_and_probabilities_of_the_peer_belong_together(peer):
    a = peer[1]
    e, c = a["semantic_matrix_entail"], a["semantic_matrix_contra"]
    assert np.log(e / c) == pytest.approx(
        a["semantic_matrix_entail_logits"] - a["semantic_matrix_contra_logits"], rel=1e-9, abs=1e-9
    )
    assert (
        ((a["semantic_matrix_classes"] == 2) <= (e >= c)).all()
        and ((a["semantic_matrix_classes"] == 0) <= (c >= e)).all()
        and len(np.unique(a["semantic_matrix_classes"])) == 3
    )


def test_alternatives_of_the_peer_begin_with_the_word_that_was_written(inputs, peer):
    for ids, steps, likely in zip(
        peer[0]["greedy_tokens"], peer[0]["greedy_tokens_alternatives"], peer[0]["greedy_log_likelihoods"]
    ):
        assert ids == [s[0][0] for s in steps] and likely == [s[1][0] for s in steps]


def test_a_bank_on_disk_holds_the_same_statistics_and_can_grow(tmp_path):
    n = 66  # Two shards
    b.on_disk(tmp_path, 64, 2)
    t = score_bank(b.on_disk(tmp_path, n, 2), b.STORED, progress=False)
    run = Run(range(n), b.reg, **b.leaves([b.item(i, 2) for i in range(n)]))
    for name, g in t.groupby("name"):
        assert g["value"].to_numpy() == pytest.approx(
            score(run, name)["value"].to_numpy(), rel=1e-9, nan_ok=True
        )
    assert set(t["name"]) == set(b.STORED) and not t.attrs["missing"]


def test_a_pair_is_timed_once_and_what_is_left_out_says_why():
    seen = [(p["peer"], tuple(p["options"].items())) for p in (b.PAIRS | b.WHOLE).values()]
    assert len(seen) == len(set(seen)) and all(b.LEFT_OUT.values())
    assert {p["peer"] for p in (b.PAIRS | b.WHOLE).values()} - {p["peer"] for p in b.WHOLE.values()} <= set(
        b.LEFT_OUT
    )  # What is missing from sources to scores
    assert (
        not {w.split()[1] for w in b.LEFT_OUT.values() if w.startswith("as ")}
        - {w for w in b.LEFT_OUT}
        - {f"{w};" for w in b.LEFT_OUT}
    )


def report():
    v = {n: [0.0, 1.0] for n in b.PAIRS}
    a = dict(
        alone=dict.fromkeys(b.PAIRS, 0.01),
        fit=dict.fromkeys(b.FITS, 0.1),
        together=0.1,
        without=0.05,
        stored=0.2,
        values=v,
    )
    given = b.table(
        100, a, dict(seconds=dict.fromkeys(b.PAIRS, 0.3), fit=dict.fromkeys(b.PAIRS, 0.2), values=v)
    )
    w = dict(texts=["a"], values=v, seconds=dict.fromkeys(b.STEPS, 1.0))
    memory = pd.DataFrame(
        [
            dict(part="memory", what="bank", n=n, ours=1.0, gb=gb, before=0.2)
            for n, gb in ((512, 0.5), (8192, 0.6))
        ]
    )
    return pd.concat(
        [given, b.whole_table(4, w, w | dict(seconds=dict.fromkeys(b.STEPS, 6.0))), memory], ignore_index=True
    )


def test_the_report_is_complete(capsys, tmp_path):
    df = report()
    assert [w.split(" = ")[0] for w in df.what[df.part == "score"]] == list(b.PAIRS)
    assert b.targets(df)["met"].tolist() == [True, True, False, True]  # 41*.3/.1, 6, .6/.5, 0
    b.show(df, tmp_path / "methods.csv")
    said = capsys.readouterr().out
    assert (
        "FAIL  memory for 8,192 items over that for 512: 1.2" in said
        and "| of which nli | 4 | 250,000 | 1,500,000 | 6 |" in said
    )
    assert len(pd.read_csv(tmp_path / "methods.csv")) == len(df)


def test_a_value_that_only_one_side_has_is_no_agreement():
    assert b.apart([1, np.nan, 3], [1, 2, 3]) == np.inf and b.apart([1, np.nan, 4], [1, np.nan, 3]) == 1


def test_without_its_environment_the_peer_is_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError, match="`make bench` makes it, from scripts/bench_requirements.txt"):
        b.peer_python(tmp_path / "python")
