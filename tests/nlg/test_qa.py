"""QAGS, FEQA, Q2 and QuestEval: what peers compute of given answers and on a tiny network, what the chain
from phrases to scores must keep, and what must not matter."""

# ruff: noqa: F811

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.qa import (
    asked,  # noqa: F401
    model,  # noqa: F401
    texts,  # noqa: F401
)
from uetrust.core.checks import Undefined, spacy_pipeline
from uetrust.core.settings import oracles
from uetrust.models import questions as qs
from uetrust.models.classifiers import nli_pairs, token_cosines
from uetrust.nlg import qa
from uetrust.nlg.alignment import bertscore_f1
from uetrust.nlg.strings import squad_f1
from uetrust.report.cards import score_card
from uetrust.scoring import metrics as g
from uetrust.statistics.scores import load_scores
from uetrust.statistics.texts import questions as sp

reg = load_scores()
METRICS = [n for n, e in reg.items() if e.fn.__module__ == qa.__name__]
SPANS = [qa.AnswerSpan("x", "entity", 0)]
CLASSES = ("contradiction", "neutral", "entailment")


def numbers(logits):
    return np.array([[float(c == x) * 9 for c in CLASSES] for x in logits])


# What is made of answers
def test_questeval_is_that_of_the_release(oracle):
    q = oracle("metrics/qa_aggregation.json")["questeval"]

    def parts(x):
        return [x["answerability"], x["f1"], x["bertscore"]]

    hypothesis, s = q["inputs"]["hyp_questions_on_source"], q["inputs"]["source_questions_on_hyp"]
    p, r = qa._questeval_direction(*parts(hypothesis)), qa._questeval_direction(*parts(s))
    assert (p, r, (p + r) / 2) == pytest.approx(
        (q["precision_like_hyp_questions_on_source"], q["recall_like_source_questions_on_hyp"], q["score"]),
        abs=1e-12,
    )
    # The same through answers whose F1 is as given: 'a' against 'a', 'a b c' (1/2), 'b'
    words = {1.0: "a1", 0.5: "a1 b1 c1", 0.0: "b1"}

    def answered(x):
        return [qa.AnsweredQuestion("q?", "a1", words[f], a) for a, f in zip(x["answerability"], x["f1"])]

    questions = [qa.Question("q?", 0.0, "a1")]

    def score(f, a=hypothesis, b=s, source="s", **kw):
        both = dict(
            hypothesis="h",
            source=source,
            hypothesis_spans=SPANS,
            source_spans=SPANS,
            questeval_questions_hypothesis=questions,
            questeval_questions_source=questions,
            questeval_answers_source=answered(a) if a else [],
            questeval_answers_hypothesis=answered(b) if b else [],
            questeval_similarity_source=a["bertscore"] if a else [],
            questeval_similarity_hypothesis=b["bertscore"] if b else [],
        )
        return f(**{k: both[k] for k in reg[f.__name__].needs}, **kw)

    assert score(qa.questeval) == pytest.approx(q["score"], abs=1e-12) and score(
        qa.questeval_f1
    ) == pytest.approx(q["score_f1_only"], abs=1e-12)
    assert (score(qa.questeval_precision), score(qa.questeval_recall)) == pytest.approx((p, r), abs=1e-12)
    assert score(qa.questeval, weights=s["weights"]) == pytest.approx(q["score_with_weighter"], abs=1e-12)
    assert (
        score(qa.questeval, b=None) == pytest.approx(q["score_no_source_questions"], abs=1e-12)
        and score(qa.questeval, source="") == q["score_empty_source"]
    )
    assert max(score(qa.questeval), score(qa.questeval, b=None)) == pytest.approx(
        q["score_two_references_max"], abs=1e-12
    )


def test_q2_is_that_of_the_release(oracle, monkeypatch):
    "F1 is as the record gives it: it was made up there, not computed from the answers"
    recorded = oracle("metrics/qa_aggregation.json")["q2"]
    given = {(r["cand"], r["knowledge_ans"]): r["score"] for r in recorded["rows"]}
    monkeypatch.setattr(qa, "q2_f1", lambda a, b: given[a, b])
    verdicts = {(x["premise"], x["hypothesis"]): x["label"] for x in recorded["nli_labels"]}
    values = {"q2_score": [], "q2_no_nli": []}
    for want in recorded["per_response"]:
        rows = [r for r in recorded["rows"] if r["id"] == want["id"]]
        answers = [
            qa.AnsweredQuestion(r["question"], r["cand"], r["knowledge_ans"])
            for r in rows
            if r["question"] != "NO_Q"
        ]
        pairs = qa.q2_pairs(rows[0]["knowledge"], rows[0]["response"], answers)
        nli = numbers([verdicts.pop(p) for p in pairs])  # Every pair of the release, and no other
        questions = [qa.Question(a.question, 0.0, a.expected) for a in answers]
        assert (
            qa.q2(SPANS, questions, answers, nli),
            qa.q2_no_nli(SPANS, questions, answers, nli),
        ) == pytest.approx((want["Q2"], want["Q2_no_nli"]), abs=1e-12)
        values["q2_score"] += (
            qa._q2_values(answers, nli) if answers else [qa.q2(SPANS, questions, answers, nli)]
        )
        values["q2_no_nli"] += [qa.q2_no_nli(SPANS, questions, [a], []) for a in answers] or [
            qa.q2_no_nli(SPANS, questions, answers, nli)
        ]
    assert values == recorded["per_question"] and not verdicts


def test_feqa_is_that_of_the_release_in_the_order_of_documents(oracle):
    recorded = oracle("metrics/qa_aggregation.json")["feqa"]

    def score(i):
        answered_list = [
            qa.AnsweredQuestion("q", recorded["gold"][k], recorded["pred"][k])
            for k in recorded["gold"]
            if k.split("-")[0] == str(i)
        ]
        return qa.feqa(SPANS, answered_list, answered_list)

    ours = {str(i): score(i) for i in range(12)}
    assert list(ours.values()) == pytest.approx(recorded["true_document_order"], abs=1e-12)
    assert [ours[k] for k in recorded["upstream_key_order"]] == pytest.approx(
        recorded["returned_by_upstream"], abs=1e-12
    )


def test_qags_is_that_of_the_release(oracle):
    recorded = oracle("metrics/qa_aggregation.json")["qags"]
    answered_list = [
        qa.AnsweredQuestion("q?", hypothesis, s)
        for hypothesis, s in zip(recorded["summary_answers"], recorded["source_answers"])
    ]
    n = recorded["n_questions_per_doc"]
    assert [squad_f1(a.expected, a.found) for a in answered_list] == pytest.approx(
        recorded["per_question_f1"], abs=1e-12
    )
    for k, (f1, em) in enumerate(zip(recorded["f1"], recorded["em"])):
        part = answered_list[k * n : (k + 1) * n]
        assert (qa.qags(SPANS, part, part), qa.qags_em(SPANS, part, part)) == pytest.approx(
            (f1, em), abs=1e-12
        )
    assert qa.qags_released(SPANS, answered_list, answered_list) == pytest.approx(
        recorded["f1"][0], abs=1e-12
    )


def test_the_choice_of_qags_is_that_of_the_release(oracle):
    f = oracle("metrics/qa_aggregation.json")["qags"]["filter"]
    a = qa.select_qags_questions(f["questions"], f["logprobs"], 2, None)
    b = qa.select_qags_questions(
        f["questions"], f["logprobs"], 1, None, f["predicted_answers"], f["expected_answers"]
    )
    for got, want in ((a, f["keep2"]), (b, f["keep1_with_answer_match"])):
        assert (got.questions, got.clean, got.answered, got.matched) == (
            want["qsts"],
            want["n_clean_qsts"],
            want["n_qsts_w_ans"],
            want["n_qsts_w_match_ans"],
        )


def test_where_too_few_questions_are_good_any_others_fill_up():
    q, lp = ["a?", "who was it? yes", "nothing"], [-1.0, -2.0, -3.0]
    k = qa.select_qags_questions(q, lp, 3, np.random.default_rng(0))
    assert (
        k.questions[0] == "who was it?"
        and len(k.questions) == 3
        and set(k.questions[1:]) <= set(q)
        and k.clean == 1
    )
    assert (
        len(qa.select_qags_questions(q, lp, 20, np.random.default_rng(0)).questions) == 4
    )  # 1 that is good and all 3
    assert qa.select_qags_questions([], [], 5, np.random.default_rng(0)).questions == []


words = st.lists(st.sampled_from(["the", "pier", "old", "Friday", ""]), max_size=4).map(" ".join)
lists = st.lists(st.tuples(words, words, st.floats(0, 1)), min_size=1, max_size=6).map(
    lambda xs: [qa.AnsweredQuestion(f"q{i}?", a, b, p) for i, (a, b, p) in enumerate(xs)]
)


@given(lists, st.randoms())
def test_scores_lie_in_the_unit_interval_and_do_not_depend_on_the_order_of_questions(answered_list, r):
    B = r.sample(answered_list, len(answered_list))
    nli = {a.question: [r.random() for _ in range(3)] for a in answered_list}

    def scores(answered_list):
        z = np.array([nli[a.question] for a in answered_list if qa._needs_entailment(a)]).reshape(-1, 3)
        return [
            qa.qags(SPANS, answered_list, answered_list),
            qa.qags_em(SPANS, answered_list, answered_list),
            qa.feqa(SPANS, answered_list, answered_list),
            qa.q2(SPANS, answered_list, answered_list, z),
            qa.q2_no_nli(SPANS, answered_list, answered_list, z),
            qa.questeval_f1(
                "h", "s", SPANS, SPANS, answered_list, answered_list, answered_list, answered_list
            ),
            qa.questeval_precision("h", "s", SPANS, answered_list, answered_list, [0.5] * len(answered_list)),
        ]

    assert all(0 <= x <= 1 for x in scores(answered_list)) and scores(answered_list) == pytest.approx(
        scores(B), abs=1e-12
    )


@given(st.lists(words.filter(str.strip), min_size=1, max_size=5))
def test_answers_that_are_the_phrases_score_one(phrases):
    answered_list = [qa.AnsweredQuestion("q?", p, p, 1.0) for p in phrases if qa.normalised_words(p)]
    if answered_list:
        assert [
            qa.qags(SPANS, answered_list, answered_list),
            qa.qags_matched(SPANS, answered_list, answered_list),
            qa.feqa(SPANS, answered_list, answered_list),
            qa.q2(SPANS, answered_list, answered_list, []),
            qa.questeval_recall("h", "s", SPANS, answered_list, answered_list, [1.0] * len(answered_list)),
        ] == [1] * 5


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["I", "it", "Rome", "rome", "the pier"]),
            st.sampled_from(["entity", "chunk"]),
            st.integers(0, 8),
        ).map(lambda x: qa.AnswerSpan(*x)),
        max_size=14,
    ),
    st.integers(0, 99),
)
def test_phrases_are_those_of_the_text(found, seed):
    every = {s.text for s in found}
    ten = qa.qags_phrases(found, np.random.default_rng(seed))
    assert set(ten) <= every and len(ten) == (10 if every else 0) and (len(every) > 10 or set(ten) == every)
    assert not {t.lower() for t in qa.q2_phrases(found)} & {"i"} and {
        t.lower() for t in qa.q2_phrases(found)
    } == {t.lower() for t in every} - {"i"}
    assert len(qa.questeval_phrases(found)) == sum(s.sentence < 5 for s in found) and len(
        set(qa.feqa_phrases(found))
    ) == len(qa.feqa_phrases(found))


def test_what_has_no_question_is_zero_or_has_no_score_as_each_metric_states():
    assert (
        qa.feqa([], [], []) == 0
        and qa.questeval_precision("h", "s", [], [], [], []) == 0
        and qa.questeval("", "s", [], SPANS, [], [], [], [], [], []) == 0
    )
    for f in (qa.qags, qa.qags_em, qa.qags_released, qa.qags_matched):
        with pytest.raises(
            Undefined, match="no named entity and no noun phrase to ask about; upstream fails"
        ):
            f([], [], [])
        with pytest.raises(Undefined, match="no question was written"):
            f(SPANS, [], [])
    assert [qa.q2([], [], [], numbers([c])) for c in CLASSES] == [0, 0.5, 1]


# From texts to scores
def doc(
    text,
    # A stand-in for a parsed document: capitals are entities, pairs after an article are noun phrases, full
    # stops end sentences
):
    toks = text.split()
    starts = [0, *(i + 1 for i, t in enumerate(toks) if t.endswith(".") and i + 1 < len(toks))]

    def span(a, b):
        return SimpleNamespace(
            text=" ".join(toks[a:b]).strip("."),
            sent=SimpleNamespace(start=max((s for s in starts if s <= a), default=0)),
        )

    return SimpleNamespace(
        sents=[SimpleNamespace(start=s) for s in (starts if toks else [])],
        ents=[span(i, i + 1) for i, t in enumerate(toks) if t[0].isupper() and i not in starts],
        noun_chunks=[span(i, i + 2) for i, t in enumerate(toks[:-1]) if t.lower() in ("the", "a")],
    )


@pytest.fixture(scope="module")
def chain(
    oracle,
):  # A pipeline by the name of test, and short questions of few beams: the networks write nonsense anyway
    oracle("metrics/triples.json")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(
            qs,
            "WRITING_FORMATS",
            {
                k: qs.WritingFormat(
                    w.prompt, 3, min(w.beams, 2), min(w.keep, 2), w.no_repeat, w.window, w.drop
                )
                for k, w in qs.WRITING_FORMATS.items()
            },
        )
        monkeypatch.setitem(
            sys.modules,
            "spacy",
            SimpleNamespace(
                load=lambda n: SimpleNamespace(pipe=lambda texts: map(doc, texts), meta=dict(version="1"))
            ),
        )
        spacy_pipeline.cache_clear()
        yield
    spacy_pipeline.cache_clear()


TABLE = pd.DataFrame(
    dict(
        id=list("abc"),
        hypothesis=["The pier in Harwich fell. The mayor spoke.", "A storm hit Harwich on Friday.", ""],
        source=[
            "The old pier in Harwich fell on Friday. Then the mayor of the town spoke.",
            "In Harwich a storm broke the pier. It rained.",
            "The sea rose.",
        ],
    )
)


def evaluators(**kw):
    at = oracles() / "metrics" / "models"
    return (
        dict(
            spans="test",
            qg=at / "tiny_t5",
            qa=at / "tiny_electra_qa",
            q2_nli=at / "tiny_bert_nli",
            questeval=at / "tiny_t5",
            questeval_similarity=at / "tiny_roberta",
        )
        | kw
    )


@pytest.fixture(scope="module")
def graded(chain):
    return g.compute_metrics(TABLE, evaluators(), METRICS, progress=False)


def test_scores_of_texts_are_those_of_the_chain_by_hand(graded, model):
    by_name = graded.table.pivot(index="sample", columns="name", values="value")
    assert graded.missing == {} and set(by_name) == set(METRICS)
    q_model, a_model = model("tiny_t5"), model("tiny_electra_qa")
    for i, hypothesis, source in TABLE.iloc[:2].itertuples(index=False):
        hypothesis_found, source_found = qa.answer_spans([hypothesis, source], "test")

        def ask(text, phrases, style):
            return [
                qa.Question(*q)
                for q in qs.ask_questions(q_model, [(text, phrases)], qs.WRITING_FORMATS[style])[0][0]
            ]

        questions = ask(hypothesis, qa.q2_phrases(hypothesis_found), "q2")
        valid = qa.valid_q2_questions(
            questions, qs.argmax_answers(a_model, [(q.text, hypothesis) for q in questions])[0]
        )
        answered = [
            qa.AnsweredQuestion(q.text, q.phrase, a)
            for q, a in zip(valid, qs.argmax_answers(a_model, [(q.text, source) for q in valid])[0])
        ]
        nli = nli_pairs(model("tiny_bert_nli"), qa.q2_pairs(source, hypothesis, answered), 512, "first")[0]
        assert by_name["q2"][i] == pytest.approx(qa.q2(hypothesis_found, questions, answered, nli), abs=1e-6)
        sides = [
            (
                asked,
                [
                    qa.AnsweredQuestion(q.text, q.phrase, *a)
                    for q, a in zip(asked, qs.written_answers(q_model, [(q.text, to) for q in asked])[0])
                ],
            )
            for asked, to in (
                (ask(hypothesis, qa.questeval_phrases(hypothesis_found), "questeval"), source),
                (ask(source, qa.questeval_phrases(source_found), "questeval"), hypothesis),
            )
        ]
        f = [
            [
                bertscore_f1(c)
                for c in token_cosines(model("tiny_roberta"), [(a.found, a.expected) for a in answered])[0]
            ]
            for _, answered in sides
        ]
        (qh, ah), (q_s, a_s) = sides
        assert by_name["questeval"][i] == pytest.approx(
            qa.questeval(hypothesis, source, hypothesis_found, source_found, qh, q_s, ah, a_s, *f), abs=1e-5
        )
        low = qa.feqa_text(hypothesis.lower())
        questions = ask(low, [p.lower() for p in qa.feqa_phrases(hypothesis_found)], "feqa")
        found = qs.span_answers(
            a_model,
            [
                (
                    q.text,
                    qa.feqa_text(source).lower(),
                )
                for q in questions
            ],
            may_be_unanswerable=False,
        )[0]
        assert by_name["feqa"][i] == pytest.approx(
            qa.feqa(
                hypothesis_found,
                questions,
                [qa.AnsweredQuestion(q.text, q.phrase, a) for q, a in zip(questions, found)],
            ),
            abs=1e-6,
        )
        questions = ask(hypothesis, qa.qags_phrases(hypothesis_found, sp._text_rng(hypothesis)), "qags")
        kept = qa.select_qags_questions(
            [q.text for q in questions], [q.logp for q in questions], 20, sp._text_rng(hypothesis)
        ).questions
        assert len(kept) == 20
        a, b = (qs.span_answers(a_model, [(q, x) for q in kept])[0] for x in (hypothesis, source))
        for f in (qa.qags, qa.qags_em, qa.qags_released):
            assert by_name[f.__name__][i] == pytest.approx(
                f(hypothesis_found, questions, [qa.AnsweredQuestion(*z) for z in zip(kept, a, b)]), abs=1e-6
            )
    assert (
        by_name.loc["c", ["feqa", "questeval", "questeval_f1"]].eq(0).all()
        and by_name.loc["c", [n for n in METRICS if n.startswith("qags")]].isna().all()
    )
    assert graded.table.query("name=='qags' and sample=='c'")["note"].item().startswith(
        "no named entity"
    ) and by_name.loc["c", "q2"] in (0, 0.5, 1)


def test_of_several_valid_questions_about_a_phrase_q2_asks_the_first():
    questions = [qa.Question(f"{k} {p}?", 0.0, p) for p in ("the Pier", "rye") for k in "abc"]
    assert [
        q.text for q in qa.valid_q2_questions(questions, ["roof", "a pier", "Pier", "", "in rye", "rye"])
    ] == [
        "b the Pier?",
        "b rye?",
    ] and qa.valid_q2_questions([], []) == []


def test_valid_questions_of_q2_are_asked_of_the_source_and_settled_by_entailment(chain, model, monkeypatch):
    """The networks of the test ask nothing valid, so the second and third question about each phrase are
    answered by it here"""
    monkeypatch.setattr(
        qs,
        "ask_questions",
        lambda net, items, w, **kw: (
            [[(f"{k} {p}?", -1.0, p) for p in phrases for k in "abc"] for _, phrases in items],
            *[np.zeros(len(items), int)] * 2,
        ),
    )
    monkeypatch.setattr(
        qs,
        "argmax_answers",
        lambda net, pairs, **kw: (
            [("rain" if t in list(TABLE["source"]) else "" if q[0] == "a" else q[2:-1]) for q, t in pairs],
            [0] * len(pairs),
        ),
    )
    t = g.compute_metrics(TABLE, evaluators(), ["q2", "q2_no_nli"], progress=False).table.pivot(
        index="sample", columns="name", values="value"
    )
    for i, hypothesis, s in TABLE.itertuples(index=False):
        (summary_spans,) = qa.answer_spans([hypothesis], "test")
        answered_list = [
            qa.AnsweredQuestion(f"b {p}?", p, "rain") for p in dict.fromkeys(qa.q2_phrases(summary_spans))
        ]
        pairs = [(f"b {a.expected}? rain.", f"b {a.expected}? {a.expected}.") for a in answered_list] or [
            (s.lower(), hypothesis)
        ]
        verdicts = nli_pairs(model("tiny_bert_nli"), pairs, 512, "first")[0].argmax(1)
        assert t["q2"][i] == pytest.approx(
            np.mean([{0: 0, 1: 0 if answered_list else 0.5, 2: 1}[k] for k in verdicts])
        ) and t["q2_no_nli"][i] == pytest.approx(0 if answered_list else verdicts[0] / 2)


def test_neither_order_nor_batch_changes_a_score(graded):
    def wide(t):
        return t.pivot(index="sample", columns="name", values="value")

    t = wide(
        g.compute_metrics(
            TABLE.iloc[[1, 2, 0]], evaluators(), METRICS, progress=False, batch_tokens=150
        ).table
    )
    pd.testing.assert_frame_equal(t, wide(graded.table), atol=2e-5, rtol=0)


def test_each_network_is_loaded_once_whatever_it_is_needed_for(chain, model, monkeypatch):
    opened, real = [], g.open_model

    def noted(who, *given, **kw):
        opened.append(who[0].rsplit("/", 1)[-1])
        return real(who, *given, **kw)

    monkeypatch.setattr(g, "open_model", noted)
    same = evaluators()["questeval_similarity"]  # Requested first, and needed again after the answers
    scores = g.compute_metrics(
        TABLE, evaluators(bertscore=same), ["bertscore_f1_source", *METRICS[::-1]], progress=False
    )
    t = scores.table
    assert "bertscore_f1_source" in set(t["name"])
    assert sorted(opened) == [
        "test",
        "tiny_bert_nli",
        "tiny_electra_qa",
        "tiny_roberta",
        "tiny_t5",
    ] and opened[:2] == ["test", "tiny_t5"]
    assert (
        scores.models["spans"] == "test 1" and scores.models["qags_questions"] == scores.models["questeval"]
    )
    cut = scores.cut
    assert (
        cut["qags"] == dict(qags_answers=0, qags_answers_matched=0)
        and cut["questeval_questions"]["questeval_questions_source_unfinished"] > 0
    )


def test_only_qags_may_find_no_answer(chain, monkeypatch):
    seen = []
    monkeypatch.setattr(
        qs,
        "span_answers",
        lambda net, ps, may_be_unanswerable=True, **kw: (
            seen.append(may_be_unanswerable) or ([""] * len(ps), [0] * len(ps))
        ),
    )
    for n in ("feqa", "qags"):
        g.compute_metrics(TABLE, evaluators(), [n], progress=False)
    assert seen[0] is False and len(seen) > 1 and all(seen[1:])


def test_a_question_that_two_rules_keep_is_answered_once(chain, model, monkeypatch):
    pairs, real = [], qs.span_answers
    monkeypatch.setattr(qs, "span_answers", lambda net, ps, **kw: pairs.extend(ps) or real(net, ps, **kw))
    g.compute_metrics(
        TABLE, evaluators(), ["qags", "qags_em", "qags_released", "qags_matched"], progress=False
    )
    assert pairs and len(pairs) == len(set(pairs))


def test_what_is_not_given_is_named(oracle):
    oracle("metrics/triples.json")
    scores = g.compute_metrics(TABLE, {}, ["q2", "questeval_f1", "qags"], progress=False)
    t = scores.table
    assert scores.missing == dict(
        q2=[
            "a spaCy pipeline for 'spans'",
            "a model for 'q2_questions' or 'qg'",
            "a model for 'q2' or 'qa'",
            "a model for 'q2_nli' or 'nli'",
        ],
        questeval_f1=[
            "a spaCy pipeline for 'spans'",
            "a model for 'questeval_questions' or 'qg'",
            "a model for 'questeval'",
        ],
        qags=[
            "a spaCy pipeline for 'spans'",
            "a model for 'qags_questions' or 'qg'",
            "a model for 'qags' or 'qa'",
        ],
    )
    assert len(t) == 0
    assert g.compute_metrics(
        TABLE[["id", "hypothesis"]], evaluators(), ["feqa"], progress=False
    ).missing == dict(feqa=["the column source"])


def test_without_spacy_the_scores_say_what_to_install(chain, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    spacy_pipeline.cache_clear()
    scores = g.compute_metrics(
        TABLE, evaluators(spans="en_core_web_sm"), ["q2", "rouge_l_true"], progress=False
    )
    t = scores.table
    assert (
        len(scores.missing["q2"]) == 1
        and "pip install spacy, then python -m spacy download en_core_web_sm" in scores.missing["q2"][0]
    )
    assert set(t["name"]) == {"rouge_l_true"} and scores.models == {}
    spacy_pipeline.cache_clear()


def test_every_entry_is_complete_and_its_card_names_licences():
    assert len(METRICS) == 11
    for n in METRICS:
        assert all(
            (reg[n].formula, reg[n].pitfall, reg[n].unit, reg[n].cite, reg[n].dim)
        ) and "[0,1]" in score_card(n)
    assert (
        "MIT" in score_card("questeval")
        and "no licence on the hub" in score_card("q2")
        and "without a licence of its own" in score_card("qags")
    )
