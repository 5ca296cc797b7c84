"""Benchmark of methods: the peer gets the numbers of our run; independent of any clock and of the peer."""

import json

import numpy as np
import pandas as pd
import pytest

from uetrust.core.run import ScoreRun, compute_score
from uetrust.dev.bench import methods as bench
from uetrust.scoring.methods import score_generations

N, K = 6, 4


@pytest.fixture(scope="module")
def inputs():
    return bench._with_given_statistics(
        bench._stored_statistics([bench.simulated_item(i, K) for i in range(N)])
    ), bench._training_statistics(n=120)


@pytest.fixture(scope="module")
def peer(inputs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("peer")
    bench._write_peer_statistics(folder, *inputs)
    with np.load(folder / "statistics.npz") as arrays:
        return json.loads((folder / "statistics.json").read_text())["lists"], {k: arrays[k] for k in arrays}


def values(inputs, name):
    return compute_score(ScoreRun(range(N), bench.reg, dict(inputs[1]), **inputs[0]), name)[
        "value"
    ].to_numpy()


@pytest.mark.parametrize("name", bench.GIVEN_STATISTICS_PAIRS)
def test_made_up_statistics_give_every_score_a_value_that_varies(inputs, name):
    found = values(inputs, name)
    assert np.isfinite(found).all() and len(set(found.round(9))) > 1


def test_an_item_does_not_depend_on_how_many_are_drawn_before_it():
    first, again = bench.simulated_item(3, K), bench.simulated_item(3, K)
    assert (
        first["texts"] == again["texts"]
        and (first["logits"] == again["logits"]).all()
        and bench.simulated_item(4, K)["texts"] != first["texts"]
    )
    assert len(first["texts"]) == 1 + K and len(bench.simulated_item(3, 9)["at"]) == 10


def test_equal_texts_have_equal_logits_and_embeddings():
    repeated = [item for item in (bench.simulated_item(i) for i in range(5)) if len(set(item["texts"])) < 11]
    assert repeated
    for item in repeated:
        assert [item["texts"].index(text) for text in item["texts"]] == [
            item["at"].tolist().index(j) for j in item["at"]
        ]


# Restated from the definitions, on the dictionary that the peer is handed
def sar(pairs, tau=0.001):
    return [
        -np.mean(
            [
                np.log(
                    probability[i] + sum(probability[j] * similarity[i, j] for j in range(K) if j != i) / tau
                )
                for i in range(K)
            ]
        )
        for probability, similarity in pairs
    ]


def test_the_peer_is_handed_our_numbers(inputs, peer):
    lists, arrays = peer

    def mean(logp):
        return [np.mean(found) for found in logp]

    def weighed(logp_, sim):
        return np.average(logp_, weights=1 - np.array(sim))

    contra, entail = arrays["semantic_matrix_contra"], arrays["semantic_matrix_entail"]
    drawn = zip(lists["sample_log_likelihoods"], lists["sample_token_similarity"])
    want = dict(
        msp=[-sum(logp) for logp in lists["greedy_log_likelihoods"]],
        mte=mean(lists["entropy"]),
        mcse=[-np.mean(logp) for logp in lists["sample_log_probs"]],
        mcnse_lmp=[
            -np.mean([total / len(tokens) for total, tokens in zip(totals, samples)])
            for totals, samples in zip(lists["sample_log_probs"], lists["sample_tokens"])
        ],
        p_true=[-logp for logp in lists["p_true"]],
        pmi=[
            -(np.sum(logp) - np.sum(alone[1:])) / len(logp)
            for logp, alone in zip(lists["greedy_log_likelihoods"], lists["greedy_lm_log_likelihoods"])
        ],
        deg_mat=1 - entail.mean((1, 2)),
        deg_mat_contra=contra.mean((1, 2)),
        token_sar=[
            -weighed(logp, relevance)
            for logp, relevance in zip(lists["greedy_log_likelihoods"], lists["token_similarity"])
        ],
        cocoa_ppl=[
            -np.mean(logp) * np.mean(1 - similarity)
            for logp, similarity in zip(lists["greedy_log_likelihoods"], arrays["greedy_sentence_similarity"])
        ],
        sentence_sar=sar(zip(np.exp(lists["sample_log_probs"]), arrays["sample_sentence_similarity"])),
        sar=sar(
            zip(
                [
                    np.exp([weighed(logp, relevance) for logp, relevance in zip(logps, relevances)])
                    for logps, relevances in drawn
                ],
                arrays["sample_sentence_similarity"],
            )
        ),
    )
    assert {n: pytest.approx(found, rel=1e-9) for n, found in want.items()} == {
        n: values(inputs, n) for n in want
    }


def test_logits_classes_and_probabilities_of_the_peer_belong_together(peer):
    arrays = peer[1]
    entail, contra = arrays["semantic_matrix_entail"], arrays["semantic_matrix_contra"]
    assert np.log(entail / contra) == pytest.approx(
        arrays["semantic_matrix_entail_logits"] - arrays["semantic_matrix_contra_logits"], rel=1e-9, abs=1e-9
    )
    assert (
        ((arrays["semantic_matrix_classes"] == 2) <= (entail >= contra)).all()
        and ((arrays["semantic_matrix_classes"] == 0) <= (contra >= entail)).all()
        and len(np.unique(arrays["semantic_matrix_classes"])) == 3
    )


def test_alternatives_of_the_peer_begin_with_the_word_that_was_written(inputs, peer):
    for ids, steps, likely in zip(
        peer[0]["greedy_tokens"], peer[0]["greedy_tokens_alternatives"], peer[0]["greedy_log_likelihoods"]
    ):
        assert ids == [step[0][0] for step in steps] and likely == [step[1][0] for step in steps]


def test_a_bank_on_disk_holds_the_same_statistics_and_can_grow(tmp_path):
    n = 66  # Two shards
    bench._write_simulated_bank(tmp_path, 64, 2)
    scores = score_generations(
        bench._write_simulated_bank(tmp_path, n, 2), bench.STORED_METHODS, progress=False
    )
    table = scores.table
    run = ScoreRun(
        range(n), bench.reg, **bench._stored_statistics([bench.simulated_item(i, 2) for i in range(n)])
    )
    for name, rows in table.groupby("name"):
        assert rows["value"].to_numpy() == pytest.approx(
            compute_score(run, name)["value"].to_numpy(), rel=1e-9, nan_ok=True
        )
    assert set(table["name"]) == set(bench.STORED_METHODS) and not scores.missing


def test_a_pair_is_timed_once_and_what_is_left_out_says_why():
    seen = [
        (pair["peer"], tuple(pair["options"].items()))
        for pair in (bench.GIVEN_STATISTICS_PAIRS | bench.END_TO_END_PAIRS).values()
    ]
    assert len(seen) == len(set(seen)) and all(bench.NOT_COMPARED.values())
    every, whole = (
        {pair["peer"] for pair in pairs.values()}
        for pairs in (bench.GIVEN_STATISTICS_PAIRS | bench.END_TO_END_PAIRS, bench.END_TO_END_PAIRS)
    )
    assert every - whole <= set(bench.NOT_COMPARED)  # What is missing from sources to scores
    referred = {
        why.split()[1].removesuffix(";") for why in bench.NOT_COMPARED.values() if why.startswith("as ")
    }
    assert referred <= set(bench.NOT_COMPARED)


def report():
    values_ = {n: [0.0, 1.0] for n in bench.GIVEN_STATISTICS_PAIRS}
    own = dict(
        alone=dict.fromkeys(bench.GIVEN_STATISTICS_PAIRS, 0.01),
        fit=dict.fromkeys(bench.FITTED_STATISTICS, 0.1),
        together=0.1,
        without=0.05,
        stored=0.2,
        values=values_,
    )
    given = bench._timing_table(
        100,
        own,
        dict(
            seconds=dict.fromkeys(bench.GIVEN_STATISTICS_PAIRS, 0.3),
            fit=dict.fromkeys(bench.GIVEN_STATISTICS_PAIRS, 0.2),
            values=values_,
        ),
    )
    run = dict(texts=["a"], values=values_, seconds=dict.fromkeys(bench.END_TO_END_STEPS, 1.0))
    memory = pd.DataFrame(
        [
            dict(part="memory", what="bank", n=n, ours=1.0, gb=gb, before=0.2)
            for n, gb in ((512, 0.5), (8192, 0.6))
        ]
    )
    return pd.concat(
        [
            given,
            bench._end_to_end_table(4, run, run | dict(seconds=dict.fromkeys(bench.END_TO_END_STEPS, 6.0))),
            memory,
        ],
        ignore_index=True,
    )


def test_the_report_is_complete(capsys, tmp_path):
    df = report()
    assert [what.split(" = ")[0] for what in df.what[df.part == "score"]] == list(
        bench.GIVEN_STATISTICS_PAIRS
    )
    # Each .3/.01 and together 41*.3/.1; difference of values 0; 6 from sources; memory .6/.5
    assert bench._method_targets(df)["met"].tolist() == [True, True, True, True, True, False]
    slow = df.assign(ratio=df.ratio.where(~df.what.str.startswith("msp = "), 0.9))
    found = bench._method_targets(slow).set_index("target")["met"]
    assert not found["slowest score on given statistics (msp = MaximumSequenceProbability), times as fast"]
    bench.print_method_bench(df, tmp_path / "methods.csv")
    output = capsys.readouterr().out
    assert (
        "FAIL  memory for 8,192 items over that for 512: 1.2" in output
        and "| of which nli | 4 | 250,000 | 1,500,000 | 6 |" in output
    )
    assert len(pd.read_csv(tmp_path / "methods.csv")) == len(df)


def test_a_figure_shows_the_ratio_of_every_score():
    ax = bench._plot_ratios(report())
    assert len(ax.get_yticklabels()) == len(bench.GIVEN_STATISTICS_PAIRS)
    assert list(ax.lines[0].get_xdata()) == pytest.approx([30] * len(bench.GIVEN_STATISTICS_PAIRS))


def test_a_value_that_only_one_side_has_is_no_agreement():
    assert (
        bench.largest_difference([1, np.nan, 3], [1, 2, 3]) == np.inf
        and bench.largest_difference([1, np.nan, 4], [1, np.nan, 3]) == 1
    )


def test_without_its_environment_the_peer_is_requested(tmp_path):
    with pytest.raises(FileNotFoundError, match="`make bench` makes it, from scripts/bench_requirements.txt"):
        bench.peer_python(tmp_path / "python")
