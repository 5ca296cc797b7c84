"""Texts that a language model reads though it did not write them: PRR within systems, and what is stored."""

import numpy as np
import pandas as pd
import pytest

from uetrust.core.settings import resolve_checkpoint, root
from uetrust.evaluation.prr import prr
from uetrust.models.gguf import converted_folder
from uetrust.models.load import load_model
from uetrust.nlg.judge import DIMENSION_DEFINITIONS, expected_score
from uetrust.papers.people import stand_in as study
from uetrust.papers.people.read_back import given_texts
from uetrust.papers.people.summeval import rated_summaries, texts_to_grade
from uetrust.statistics.judges import local_judge_statistics

TINY = str(root() / "data" / "models" / "tiny-llama")


@pytest.fixture
def texts():
    "Forty documents and three systems; the score follows the quality within systems and not between them."
    rng = np.random.default_rng(3)
    about = pd.DataFrame([dict(document=d, system=s) for d in range(40) for s in "abc"])
    quality = pd.DataFrame(dict(people=rng.normal(size=120)))
    related = -quality["people"] + rng.normal(size=120) + about["system"].map(dict(a=0, b=9, c=18))
    return quality, pd.DataFrame(dict(related=related, other=rng.normal(size=120))), about


def test_prr_within_systems_is_the_mean_of_the_prr_of_each(texts):
    quality, scores, about = texts
    found = study.prr_within_systems(quality, scores, about, draws=200).set_index("method")
    for method in scores:
        each = [
            prr(quality.loc[rows.index, "people"], scores.loc[rows.index, method]).value
            for _, rows in about.groupby("system")
        ]
        assert found.at[method, "value"] == pytest.approx(np.mean(each), abs=1e-12)
    assert found.at["related", "p"] == pytest.approx(1 / 201) and found.at["other", "p"] > 0.05
    assert found.at["related", "lo"] < found.at["related", "value"] < found.at["related", "hi"]
    assert found["n"].eq(120).all() and found["documents"].eq(40).all()


def test_a_document_that_a_system_has_no_text_about_is_left_out_within_systems(texts):
    quality, scores, about = texts
    kept = about.index != 5
    found = study.prr_within_systems(quality[kept], scores[kept], about[kept], draws=20)
    whole = about["document"] != about["document"][5]
    same = study.prr_within_systems(quality[whole], scores[whole], about[whole], draws=20)
    pd.testing.assert_frame_equal(found, same)
    assert found["documents"].eq(39).all() and found["n"].eq(117).all()


def test_the_null_within_systems_moves_whole_documents():
    "Three systems with the same texts are one text three times: p must not believe that there are three."
    rng, values = np.random.default_rng(0), []
    for _ in range(60):
        quality, score = rng.normal(size=(2, 30))
        about = pd.DataFrame([dict(document=d, system=s) for s in "abc" for d in range(30)])
        frames = pd.DataFrame(dict(people=np.tile(quality, 3))), pd.DataFrame(dict(score=np.tile(score, 3)))
        values.append(study.prr_within_systems(*frames, about, draws=99)["p"].iloc[0])
    assert np.mean(np.array(values) < 0.05) < 0.15 and 0.3 < np.mean(values) < 0.7


def test_the_share_of_copied_bigrams_is_counted_against_the_source():
    frame = pd.DataFrame(
        dict(id=["a"], source=["The council met on Friday."], text=["The council met early."])
    )
    assert study.copied_bigrams(frame)["a"] == pytest.approx(2 / 3)


def test_a_checkpoint_reads_a_set_and_every_score_has_a_column(tmp_path, monkeypatch):
    def bulletins(name, items):  # Short enough for the 256 positions of the tiny model
        given = given_texts("bulletin", items=items)
        return given._replace(texts=given.texts.assign(system="a"))

    monkeypatch.setattr(study, "given_texts", bulletins)
    how = dict(items=6, longest=80, max_prompt=150, progress=False)
    found = study.reader_scores("factscore", checkpoint=TINY, runs=tmp_path, **how)
    assert list(found.columns[:2]) == ["document", "system"] and len(found) == 6
    assert {"perplexity", "msp", "mte", "renyi", "output_length", "copied_bigrams"} <= set(found)
    assert (found.drop(columns=["document", "system"]).dtypes == np.float32).all()
    again = study.reader_scores("factscore", checkpoint=TINY, runs=tmp_path, **how)
    pd.testing.assert_frame_equal(found, again)


def test_the_judged_summaries_are_one_of_each_article_by_every_kind_of_system():
    drawn = study.judged_texts()
    assert len(drawn) == drawn["doc"].nunique() == 100 and drawn["system"].nunique() == 16


@pytest.fixture
def smollm2():
    if converted_folder("smollm2") is None:
        pytest.skip("smollm2 was not fetched: `make smollm2` fetches it")


def test_smollm2_judges_one_summary_of_each_article(smollm2, tmp_path, monkeypatch):
    short = rated_summaries(2).groupby("doc", sort=False).head(1)
    short = short.assign(source=short["source"].str[:60])
    monkeypatch.setattr(study, "judged_texts", lambda: short)
    found = study.judged_scores(runs=tmp_path, progress=False)
    assert len(found) == 2 and {"gpt_score", "fflm", "harim_causal"} <= set(found)
    assert found["p_true_normalized"].between(0, 1).all()
    grades = found[[f"grade_{dim}" for dim in DIMENSION_DEFINITIONS]]
    assert grades.gt(1).all(axis=None) and grades.lt(10).all(axis=None) and grades.nunique().gt(1).any()
    assert found.filter(like="probability_").lt(0.5).all(axis=None)  # It hardly ever replies with a number
    again = study.judged_scores(runs=tmp_path, progress=False)
    pd.testing.assert_frame_equal(found, again)


def test_a_forced_grade_is_the_expected_one_where_the_judge_names_one(smollm2):
    "The published definition and the forced grade differ only where the first is undefined."
    rows = texts_to_grade(rated_summaries(1).head(2)).assign(source="The council met on Friday.")
    model = load_model(resolve_checkpoint("smollm2"))
    forced = study.forced_grades(rows, model, "fluency").set_index("id")
    name, shown = "answers_wi_in_fluency", rows[["source", "hypothesis"]].to_dict("list")
    answers = np.array(local_judge_statistics(model, [name], shown)[0][name])
    sure = answers - np.log(np.exp(answers).sum(1, keepdims=True))
    expected = [expected_score(logp) for logp in sure]
    np.testing.assert_allclose(forced["grade"], expected, rtol=1e-9)
    np.testing.assert_allclose(forced["probability"], np.exp(answers).sum(1), rtol=1e-9)


@pytest.mark.parametrize("name, items", [("summeval", 3), ("faithbench", 2), ("factscore", 2)])
def test_smollm2_reads_what_is_stored(smollm2, name, items, tmp_path):
    live = study.reader_scores(name, items=items, runs=tmp_path, progress=False)
    stored = study.stored_reader_scores(name).loc[live.index]
    live = live[[column for column in live if column in stored]]  # Some methods are younger
    assert list(live) == [column for column in stored if column in live] and len(live) == items
    assert {"msp", "mte", "self_certainty", "rauq"} & {*stored} <= {*live}
    scores = live.columns[2:].difference(["chance"])
    np.testing.assert_allclose(live[scores].astype(float), stored[scores], rtol=2e-4, atol=2e-4)


def test_the_surprise_of_the_reader_follows_consistency_as_was_seen():
    "Twenty articles, sixteen systems: .76 was measured once before, by other code, without the end token."
    stored = study.stored_reader_scores("summeval").head(320)
    people = given_texts("summeval", items=320).quality["consistency"]
    assert prr(people.loc[stored.index], stored["perplexity"]).value == pytest.approx(0.76, abs=0.02)


def test_the_judge_is_ranked_by_what_people_say_of_the_same_hundred_summaries():
    "Grades and likelihoods count as quality, P(True) and the surprisal as doubt."
    judged, people = study.stored_reader_scores("judged"), given_texts("summeval").quality
    found = study.prr_of_judgements().set_index(["metric", "method"])["value"]

    def expected(quality, doubt):
        return pytest.approx(prr(people.loc[judged.index, quality], doubt).value, abs=1e-12)

    assert found["relevance", "gpt_score"] == expected("relevance", -judged["gpt_score"])
    assert found["relevance", "same_grade"] == expected("relevance", -judged["grade_relevance"])
    assert found["fluency", "grade_overall"] == expected("fluency", -judged["grade_overall"])
    assert found["fluency", "p_true_normalized"] == expected("fluency", judged["p_true_normalized"])
    assert len(judged) == judged["document"].nunique() == 100 and found.notna().all()


def test_the_figure_shows_readers_baselines_and_metrics_at_both_levels():
    rows = study.reader_prr("faithbench", draws=20)
    assert set(rows["role"]) == {"reader", "baseline", "metric"} and set(rows["level"]) == set(study.LEVELS)
    assert (
        rows[rows["method"].isin(["copied_bigrams", "output_length", "chance"])]["role"] == "baseline"
    ).all()
    shown = study.shown_rows(rows)
    assert shown["label"].notna().all() and len(shown) == 2 * shown["label"].nunique()
