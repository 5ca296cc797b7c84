"""Regret of choices by people, pages on translations, FaithBench: known answers, real data, the command."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from uetrust.cli.cli import main
from uetrust.core.roles import role_of
from uetrust.core.settings import mirror, root
from uetrust.data import faithbench as loader
from uetrust.data.loaders import BadData
from uetrust.evaluation.cells import PRRCells
from uetrust.evaluation.pairs import auroc
from uetrust.papers.people import plots as figures
from uetrust.papers.people import tables as people_tables
from uetrust.papers.people.faithbench import disagreement_simulation, faithbench_scores, twice_auc
from uetrust.papers.people.regret import (
    document_halves,
    judge_halves,
    people_choice_regret,
    pooled_regret,
    ranking_agreement,
    with_votes,
)
from uetrust.papers.people.translations import QUALITY_FAMILIES, judged_translations
from uetrust.report.plots import save_figure

real = pytest.mark.skipif(mirror() is None, reason="UETRUST_MIRROR is not at hand")
RNG = np.random.default_rng(3)
TRUTH = RNG.normal(size=600)
DOCUMENTS = pd.Series(np.arange(600) // 6)
NOISY = pd.DataFrame({f"m{sd}": -TRUTH + sd * RNG.normal(size=600) for sd in (1, 2, 4)})
QUALITY = pd.DataFrame(dict(people=TRUTH, turned=-TRUTH, constant=1.0))


@pytest.fixture(scope="module")
def made():
    return people_choice_regret(QUALITY, NOISY, DOCUMENTS, "people", (50, None), draws=60, boots=80)


def test_regret_has_the_known_answers(made):
    "The truth turned round chooses the worst method always; with all texts people lose nothing."
    rows = made.table.set_index(["n", "metric"])
    prr = PRRCells(TRUTH[:, None], NOISY.to_numpy()).value[:, 0]
    assert rows.loc[(600, "people"), "value"] == 0 and not rows.loc[(600, "people"), "held_out"]
    assert rows.loc[(600, "turned"), ["pick", "value"]].tolist() == ["m4", pytest.approx(prr[0] - prr[2])]
    assert rows.loc[(600, "random"), "value"] == pytest.approx(prr[0] - prr.mean())
    assert (
        rows.loc[(50, "people"), "value"]
        < rows.loc[(50, "random"), "value"]
        < rows.loc[(50, "turned"), "value"]
    )


def test_a_metric_that_ranks_nothing_chooses_nothing(made):
    rows = made.table[made.table["metric"] == "constant"]
    assert rows["value"].isna().all() and (rows["studies"] == 0).all()


def test_the_same_seed_gives_the_same_regret(made):
    again = people_choice_regret(QUALITY, NOISY, DOCUMENTS, "people", (50, None), draws=60, boots=80)
    pd.testing.assert_frame_equal(again.table, made.table)


def test_no_document_is_in_both_halves():
    ids = RNG.integers(7, size=200)
    halves = document_halves(ids, 30, RNG)
    assert all(not set(ids[half]) & set(ids[~half]) for half in halves) and 0.2 < halves.mean() < 0.8


def test_intervals_of_regret_cover_and_pooling_widens(made):
    "Ninety-five per cent intervals of the regret of a fixed choice, for forty worlds with a known answer."
    pooled = pooled_regret(dict(a=made, b=made), draws=300)
    np.testing.assert_allclose(pooled["value"], made.table["value"])
    inside = []
    for k in range(40):
        rng = np.random.default_rng(k)
        truth = rng.normal(size=400)
        methods = pd.DataFrame(
            dict(good=-truth + rng.normal(size=400), bad=-truth + 2 * rng.normal(size=400))
        )
        quality = pd.DataFrame(dict(people=truth, turned=-truth))
        rows = people_choice_regret(quality, methods, pd.Series(range(400)), "people", (), 5, 100, k).table
        row = rows[rows["metric"] == "turned"].iloc[0]
        inside.append(row["lo"] <= KNOWN <= row["hi"])
    assert np.mean(inside) >= 0.85


def known_difference():
    "PRR of truth plus noise of SD 1 minus that of SD 2, in a world of 200,000 texts"
    rng = np.random.default_rng(99)
    truth = rng.normal(size=200_000)
    noise = rng.normal(size=(200_000, 2)) * [1, 2]
    value = PRRCells(truth[:, None], noise - truth[:, None]).value[:, 0]
    return value[0] - value[1]


KNOWN = known_difference()


def test_judges_of_one_mind_agree_and_random_ones_do_not():
    same = np.column_stack([TRUTH] * 4)
    noise = np.random.default_rng(0).normal(size=(600, 4))
    rho = [
        ranking_agreement(QUALITY[["people"]], NOISY, judges, (50,), 30).set_index(["n", "metric"])["value"]
        for judges in (same, noise)
    ]
    assert rho[0][600, "people_half"] == 1 and rho[1][50, "people_half"] < 0.5
    first, second = judge_halves(np.column_stack([TRUTH, TRUTH, TRUTH + 3]), 20)
    assert first.shape == second.shape == (600, 20) and np.isclose(
        (first + 2 * second).mean(), TRUTH.mean() * 3 + 3
    )


@real
def test_baselines_are_never_chosen_and_single_persons_never_choose():
    judged = judged_translations("ru-en", "test20", without=("chrf", "bleu", "ter", "rouge_l", "meteor"))
    assert {name for name in judged.uncertainty if role_of(name) == "baseline"} >= {
        "token_count",
        "source_length",
        "chance",
    }
    assert {role_of(name) for name in people_tables.methods_to_choose(judged)} == {"method"}
    assert list(people_tables.metrics_to_choose_by(judged)) == ["da_z", "hter", "embedding_spearman"]


@real
def test_the_command_prints_the_recorded_prr(oracle, capsys):
    "`uetrust people --json`: one row per method and metric, with value, lo, hi, n."
    without = ["--without", "chrf", "bleu", "ter", "rouge_l", "meteor"]
    assert main(["people", "--pair", "ru-en", "--split", "test20", "--json", *without]) == 0
    rows = {(row["method"], row["metric"]): row for row in json.loads(capsys.readouterr().out)}
    recorded = oracle("mlqe_test20.json")["pairs"]["ru-en"]["prr_mean"]
    row = rows["perplexity", "hter"]
    assert row["value"] == pytest.approx(recorded["minus_hter"]["perplexity"], abs=1e-9)
    assert row["lo"] < row["value"] < row["hi"] and row["n"] == 1000
    assert {metric for _, metric in rows} >= {"da", "da_z", "hter", "person_1", "person_3_z"}


def test_the_command_names_a_wrong_pair(capsys):
    assert main(["people", "--pair", "de-en"]) == 2
    assert "pairs ['en-de'" in capsys.readouterr().err


FAST = ["--without", "chrf", "bleu", "ter", "rouge_l", "meteor"]


@real
def test_the_command_joins_metrics_computed_elsewhere(tmp_path, monkeypatch, capsys):
    "HTER under another name, in another order and without its first ten rows, has the PRR of HTER there."
    monkeypatch.chdir(tmp_path)
    assert main(["people", "--pair", "ru-en", "--texts", "texts.parquet"]) == 0
    assert capsys.readouterr().out == "ok texts.parquet: 1000 translations\n"
    texts = pd.read_parquet("texts.parquet")
    assert list(texts) == ["sample", "source", "text", "post_edit"]
    hter = judged_translations("ru-en", "test20", without=tuple(FAST[1:])).quality["hter"]
    own = pd.DataFrame(dict(comet=hter[texts["sample"]].to_numpy(), sample=texts["sample"]))
    own["rest"] = own["comet"].where(own.index >= 10)
    other = pd.DataFrame(dict(sample=["ru-en dev 3"], comet=[0.5]))
    pd.concat([own.iloc[::-1], other]).to_csv("comet.csv", index=False)
    assert main(["people", "--pair", "ru-en", *FAST, "--scores", "comet.csv", "--json"]) == 0
    rows = {(row["method"], row["metric"]): row for row in json.loads(capsys.readouterr().out)}
    assert rows["msp", "comet"]["value"] == rows["msp", "hter"]["value"]
    assert (rows["msp", "comet"]["n"], rows["msp", "rest"]["n"]) == (1000, 990)
    assert main(["people", "--pair", "ru-en", *FAST, "--scores", "comet.csv"]) == 0
    said = capsys.readouterr().out
    best = max((row["value"], name) for (name, metric), row in rows.items() if metric == "hter")
    assert f"comet chooses {best[1]}, which has" in said and "10 translations have no score" in said


@real
def test_the_command_says_what_a_choice_by_a_given_metric_loses(tmp_path, monkeypatch, capsys):
    "People under another name lose what people lose, a metric with gaps cannot choose."
    monkeypatch.chdir(tmp_path)
    quality = judged_translations("ru-en", "test20", without=tuple(FAST[1:])).quality
    own = quality[["da_z"]].rename(columns=dict(da_z="comet"))
    own.assign(rest=own["comet"].iloc[10:]).rename_axis("sample").reset_index().to_csv(
        "comet.csv", index=False
    )
    command = ["people", "--pair", "ru-en", "--studies", "5", "--scores", "comet.csv"]
    assert main([*command, "--csv"]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out)).set_index(["metric", "n"])
    assert rows.loc["comet", "value"].equals(rows.loc["people", "value"])
    assert {"hter", "chrf", "embedding_spearman", "random", "metrics"} <= set(rows.index.get_level_values(0))
    assert (
        rows.loc[("hter", 100), "held_out"] and (rows.loc["random", "lo"] <= rows.loc["random", "hi"]).all()
    )
    assert main(command) == 0
    assert "rest cannot choose: it has gaps" in capsys.readouterr().out
    assert main([*command, "--without", "chrf"]) == 2 and "leave out --without" in capsys.readouterr().err


def test_the_headline_is_made_from_the_table_of_a_run(tmp_path, made):
    renamed = made.table.replace(dict(metric=dict(turned="hter", constant="metrics")))
    renamed.loc[renamed["metric"] == "metrics", ["value", "lo", "hi"]] = 0.25
    rows = [renamed.assign(pair=pair) for pair in ("a-b", "pooled")]
    pd.concat(rows).to_csv(tmp_path / "people_regret.csv", index=False)
    front = figures.people_headline(tmp_path / "people_regret.csv", n=50)
    value = renamed.set_index(["n", "metric"])["value"]
    assert "0.250 [0.250, 0.250] less PRR" in front.sentence
    assert f"{value[50, 'random']:.3f} [" in front.sentence
    assert "not summaries" in front.sentence and "translation" in front.limit and front.figure.axes


def test_the_readme_says_and_shows_what_people_say(tmp_path):
    front = figures.people_headline()
    readme = (root() / "README.md").read_text(encoding="utf-8")
    assert f"<!-- people -->\n{front.sentence}\n<!-- end -->" in readme
    save_figure(front.figure, tmp_path / "people")
    assert (tmp_path / "people.png").read_bytes() == (root() / "docs" / "people.png").read_bytes()


def test_every_family_has_one_vote(made):
    "Two metrics of one family weigh as much as one of another."
    voted = with_votes(made, dict(turned="a", people="b", random="b")).table.set_index(["n", "metric"])[
        "value"
    ]
    by_hand = voted[50, "turned"] / 2 + voted[50, "people"] / 4 + voted[50, "random"] / 4
    assert voted[50, "metrics"] == pytest.approx(by_hand)
    assert "da_z" not in QUALITY_FAMILIES and QUALITY_FAMILIES["hter"] == QUALITY_FAMILIES["ter"]


@real
def test_faithbench_has_the_recorded_auc():
    "2 AUC - 1 for any unwanted span, recorded with other code: .223, .124, .121 (length), .006."
    table = loader.faithbench()
    detectors = table.set_index("sample")[["hhem-2.1-english", "gpt_4o", "true_nli"]]
    scores = detectors.assign(fewer_words=-table.set_index("sample")["summary"].str.split().str.len())
    errors, documents = (table.set_index("sample")[name] for name in ("unwanted", "document"))
    found = twice_auc(errors, scores, documents, draws=200).set_index("score")
    expected = {"hhem-2.1-english": 0.223, "gpt_4o": 0.124, "fewer_words": 0.121, "true_nli": 0.006}
    for name, value in expected.items():
        assert found.at[name, "value"] == pytest.approx(value, abs=5.1e-4), name
    best = detectors["hhem-2.1-english"]
    assert found.at[best.name, "value"] == pytest.approx(
        2 * auroc(1 - errors.astype(int), -best) - 1, abs=1e-9
    )
    assert found.at[best.name, "lo"] == pytest.approx(0.141, abs=0.03)
    assert found.at[best.name, "hi"] == pytest.approx(0.303, abs=0.03)


@real
def test_metrics_of_the_source_join_the_detectors():
    scores = faithbench_scores(loader.faithbench().head(20))
    assert {"rouge_l_true", "bleu_4_true", "fewer_words", *loader.FAITHBENCH_DETECTORS} <= set(scores)


SAMPLE = dict(
    sample_id=3,
    source="s",
    summary="t",
    annotations=[dict(annotator_id="x", label=["Unwanted", "Unwanted.Intrinsic"])],
    metadata=dict(summarizer="m") | dict.fromkeys(loader.FAITHBENCH_DETECTORS, 0.5),
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(annotations=[dict(annotator_id="x", label=["Wrong"])]), "found Wrong, expected labels"),
        (
            dict(metadata=SAMPLE["metadata"] | dict(trueteacher=2)),
            "trueteacher = 2, expected scores from 0 to 1",
        ),
        (dict(metadata=dict(summarizer="m")), "expected every field"),
    ],
)
def test_a_strange_sample_is_named(tmp_path, monkeypatch, change, message):
    path = tmp_path / "batch.json"
    path.write_text(json.dumps(dict(samples=[SAMPLE | change])))
    monkeypatch.setattr(loader, "faithbench_files", lambda: ["faithbench/batch_1.json"])
    monkeypatch.setattr(loader, "fetch_file", lambda name: path)
    with pytest.raises(BadData) as e:
        loader.faithbench()
    assert message in str(e.value) and "faithbench/batch_1.json, sample 3" in str(e.value)


def test_selection_by_disagreement_pulls_detectors_down():
    made = disagreement_simulation(n=6000).pivot(index="detector", columns="share", values="value")
    assert (made[0.05] < made[1.0]).all() and (made[0.2] < made[1.0]).all()
