"""Questions and answers: those of two plain loops and of the pipelines, in any batch."""

# ruff: noqa: F811

import numpy as np
import pytest
import torch

from tests.helpers.qa import (
    asked,  # noqa: F401
    model,  # noqa: F401
    same,
    texts,  # noqa: F401
)
from uetrust.models import questions as qs
from uetrust.models.forward import Layout, score_tokens

TOL = 5e-5


# Answers that are spans
def test_logits_and_raw_answers_are_those_of_q2(oracle, model, asked):
    want = oracle("metrics/qa_span.json")["items"]
    windows, over = qs._question_windows(model("tiny_electra_qa"), asked, None, None, None)
    assert not over.any() and len(want) == 10
    for w, (x,) in zip(want, windows):
        assert list(x.ids) == w["input_ids"] and tuple(x.logits.argmax(0)) == (
            w["argmax_start"],
            w["argmax_end"],
        )
        np.testing.assert_allclose(
            x.logits, np.array([w["start_logits"], w["end_logits"]]).T, rtol=0, atol=TOL
        )
    assert qs.argmax_answers(model("tiny_electra_qa"), asked)[0] == [w["q2_answer"] for w in want]


def test_best_spans_are_those_of_the_pipeline(oracle, model, asked):
    windows, _ = qs._question_windows(model("tiny_electra_qa"), asked)
    for w, x, (_, text) in zip(oracle("metrics/qa_span.json")["items"], windows, asked):
        assert same(qs._best_answers(x, text, 15, False, 12)[0], w["pipeline_default"])
        assert all(map(same, qs._best_answers(x, text, 30, True, 16), w["pipeline_impossible_top3_maxlen30"]))


def test_a_long_text_is_read_in_windows_as_the_pipeline_does(oracle, model, texts):
    w = oracle("metrics/qa_span.json")["sliding_window"]
    text = texts[w["triple"]]["source"]
    (x,), over = qs._question_windows(
        model("tiny_electra_qa"), [(w["question"], text)], w["max_seq_len"], w["doc_stride"]
    )
    assert len(x) == 4 and over[0] == 0
    assert same(qs._best_answers(x, text, w["max_answer_len"], False)[0], w["best"])
    assert all(map(same, qs._best_answers(x, text, w["max_answer_len"], False), w["top5"]))


def naive(
    windows, text, most
):  # Best span by two loops, equal answers added up over all spans that there are
    found = {}
    for w in windows:
        at = [0, *range(w.first, w.first + len(w.places))]
        p = torch.softmax(torch.tensor(w.logits[at], dtype=torch.float64), 0).numpy()
        for i in range(1, len(at)):
            for j in range(i, min(i + most, len(at))):
                t = text[w.places[i - 1, 0] : w.places[j - 1, 1]].lower()
                found[t] = found.get(t, 0) + p[i, 0] * p[j, 1]
    return found


def test_answers_are_those_of_two_loops(model, asked):
    for (_, text), x in zip(asked[1:4], qs._question_windows(model("tiny_electra_qa"), asked[1:4], 24, 6)[0]):
        assert len(x) > 1
        got, want = qs._best_answers(x, text, 8, False, 10**6), naive(x, text, 8)
        assert len(got) == len(want) and all(
            a.score == pytest.approx(want[a.text.lower()], abs=1e-12) for a in got
        )
        np.testing.assert_allclose(
            [a.score for a in got], sorted(want.values(), reverse=True), rtol=0, atol=1e-12
        )


def test_no_answer_competes_only_where_it_may(model, asked):
    (x,), _ = qs._question_windows(model("tiny_electra_qa"), asked[:1])
    sure = [w._replace(logits=w.logits + np.eye(len(w.logits), 1) * 99) for w in x]
    assert qs._best_answers(sure, asked[0][1])[0].text == "" and qs._best_answers(sure, asked[0][1])[
        0
    ].score == pytest.approx(1)
    assert qs._best_answers(sure, asked[0][1], may_be_unanswerable=False)[0].text
    assert qs._best_answers([*sure, *x], asked[0][1])[0].text, (
        "the window least sure that there is no answer decides"
    )


def test_windows_cover_a_text_and_cuts_are_counted(model, texts):
    net, text = model("tiny_electra_qa"), texts["expedition_long"]["source"]
    n = len(net.tokenizer(text, add_special_tokens=False)["input_ids"])
    (x,), over = qs._question_windows(net, [("who?", text)], 100, 30)
    assert (
        over[0] == 0
        and x[-1].places[-1, 1] == len(text.rstrip())
        and all((a.places[-30:] == b.places[:30]).all() for a, b in zip(x, x[1:]))
    )
    ids = net.tokenizer("who?", add_special_tokens=False)["input_ids"]
    assert qs.argmax_answers(net, [("who?", text)])[1][0] == n - (512 - 3 - len(ids)) > 0
    q = "who saw the flag " * 20 + "?"
    (y,), over = qs._question_windows(net, [(q, text)], 384, 128, 64)
    assert over[0] == len(net.tokenizer(q, add_special_tokens=False)["input_ids"]) - 64 and y[0].first == 66


def test_windows_share_half_of_a_window_at_most(model, texts):
    net, text = model("tiny_electra_qa"), texts["expedition_long"]["source"]
    (x,), over = qs._question_windows(net, [("who?", text)], 100, 80)
    half = len(x[0].places) // 2
    assert over[0] == 0 and len(x) > 2 and half < 80 < len(x[0].places)
    assert all((a.places[-half:] == b.places[:half]).all() for a, b in zip(x, x[1:]))
    assert x[-1].places[-1, 1] == len(text.rstrip())


def test_empty_texts_have_no_answer(model):
    net = model("tiny_electra_qa")
    assert (
        qs.span_answers(net, [("who?", "")], may_be_unanswerable=False)[0] == [""]
        and qs.span_answers(net, [])[0] == []
    )
    assert isinstance(qs.argmax_answers(net, [("who?", "")])[0][0], str)


def test_an_answer_is_the_same_in_any_batch_and_computed_once(model, asked, monkeypatch):
    net, rows, real = model("tiny_electra_qa"), [], qs.encode_rows
    a, b = (qs._question_windows(net, [*x, *x], batch_tokens=n)[0] for x, n in ((asked, 8192), (asked, 1)))
    for w, x in zip(a, b):
        np.testing.assert_allclose(w[0].logits, x[0].logits, rtol=0, atol=2e-5)
    monkeypatch.setattr(
        qs, "encode_rows", lambda net, r, *k, **kw: rows.append(len(r)) or real(net, r, *k, **kw)
    )
    f = qs.compute_once(lambda ps: qs.span_answers(net, ps))
    first = f(asked)[0]
    assert f(asked[::-1] + asked[:2])[0] == first[::-1] + first[:2] and rows == [10]


def test_another_model_is_refused(model):
    with pytest.raises(
        ValueError, match="BertForSequenceClassification and has no logits for where an answer"
    ):
        qs._question_windows(model("tiny_bert_nli"), [("a", "b")])
    with pytest.raises(ValueError, match="questions come from a 'seq2seq' model"):
        qs._write_texts(model("tiny_electra_qa"), [("a", "b")], qs.WRITING_FORMATS["q2"])


# What is written
FORMATS = dict(
    feqa="The pier fell. [SEP] the pier",
    qags="The pier fell. [ANS] the pier",
    q2="answer: the pier  context: The pier fell. </s>",
    questeval="sv1 </s> the pier </s> The pier fell.",
    questeval_answer="the pier </s> The pier fell.",
)


@pytest.mark.parametrize("style", FORMATS)
def test_each_metric_has_its_own_format(model, monkeypatch, style):
    net, seen = model("tiny_t5"), []
    monkeypatch.setattr(qs, "_generated", lambda net, rows, w, watch: seen.extend(rows) or [[] for _ in rows])
    qs._write_texts(net, [("the pier", "The pier fell.")] * 2, qs.WRITING_FORMATS[style])
    assert [list(r) for r in seen] == [net.tokenizer(FORMATS[style]).input_ids]


def test_a_long_text_loses_its_end_and_never_the_phrase(model, monkeypatch):
    net, seen = model("tiny_t5"), []
    monkeypatch.setattr(qs, "_generated", lambda net, rows, w, watch: seen.extend(rows) or [[] for _ in rows])
    text = "The pier fell into the sea on Friday. " * 200
    for style in ("qags", "questeval"):
        _, over = qs._write_texts(net, [("the mayor", text)], qs.WRITING_FORMATS[style])
        room = qs.WRITING_FORMATS[style].window or net.window
        assert room - 8 <= len(seen[-1]) <= room and over[0] == len(
            net.tokenizer(
                qs.WRITING_FORMATS[style].prompt.format(phrase="the mayor", text=text), verbose=False
            ).input_ids
        ) - len(seen[-1])
        assert "the mayor" in net.tokenizer.decode(seen[-1])


def test_beams_are_sorted_and_scored_by_the_mean_log_p_of_their_tokens(model):
    net, w = model("tiny_t5"), qs.WritingFormat("{text} [ANS] {phrase}", 6, 4, 4, 3)
    (got,), _ = qs._write_texts(net, [("the pier", "The pier fell.")], w)
    assert (
        len(got) == 4
        and [x.logp for x in got] == sorted((x.logp for x in got), reverse=True)
        and np.isnan(got[0].first)
    )
    prompt = net.tokenizer(FORMATS["qags"]).input_ids
    out = net.model.generate(
        input_ids=torch.tensor([prompt]),
        max_new_tokens=6,
        num_beams=4,
        num_return_sequences=4,
        no_repeat_ngram_size=3,
        early_stopping=True,
        do_sample=False,
    )[:, 1:]
    ids = [[i for k, i in enumerate(r) if 1 not in r[:k]] for r in out.tolist()]
    assert [net.tokenizer.decode(i, skip_special_tokens=True).strip() for i in ids] == [x.text for x in got]
    for x, i, r in zip(got, ids, score_tokens(net, [(prompt, i) for i in ids], Layout())):
        assert x.logp == pytest.approx(r.logp.mean(), abs=TOL) and x.ended == (i[-1] == 1)


def test_an_answer_is_the_likeliest_token_at_each_step_and_its_answerability_that_of_the_first(model):
    net = model("tiny_t5")
    pairs = [("what fell ?", "The pier fell."), ("who?", "")]
    got, _ = qs.written_answers(net, pairs)
    no = net.tokenizer("unanswerable").input_ids[0]
    for (q, t), (answer, p) in zip(pairs, got):
        prompt, written = net.tokenizer(f"{q} </s> {t}").input_ids, [0]
        while len(written) <= 20 and 1 not in written:
            written.append(
                net.model(input_ids=torch.tensor([prompt]), decoder_input_ids=torch.tensor([written]))
                .logits[0, -1]
                .argmax()
                .item()
            )
        assert answer == net.tokenizer.decode(written, skip_special_tokens=True).strip()
        assert p == pytest.approx(
            1 - np.exp(score_tokens(net, [(prompt, [no])], Layout())[0].logp[0]), abs=TOL
        )


def test_q2_leaves_out_what_its_question_model_puts_in_front(model, monkeypatch):
    net = model("tiny_t5")
    monkeypatch.setattr(type(net.tokenizer), "decode", lambda *k, **kw: "question: who? question: ")
    assert {
        q
        for q, _, _ in qs.ask_questions(net, [("The pier fell.", ["the pier"])], qs.WRITING_FORMATS["q2"])[0][
            0
        ]
    } == {"who? question:"}
    assert (
        qs.ask_questions(net, [("The pier fell.", ["the pier"])], qs.WRITING_FORMATS["questeval"])[0][0][0][0]
        == "question: who? question:"
    )


def test_questions_are_the_same_in_any_batch_and_order(model, texts):
    net, items = (
        model("tiny_t5"),
        [
            (texts[i]["hypothesis"], p)
            for i, p in (
                ("harwich", ["the pier", "Harwich", "the pier"]),
                ("moon", ["the soil"]),
                ("email", []),
            )
        ],
    )
    for style in ("q2", "questeval"):
        w = qs.WRITING_FORMATS[style].__class__(**vars(qs.WRITING_FORMATS[style]) | dict(most=8))
        whole, over, endless = qs.ask_questions(net, items, w)
        assert (
            [len(x) for x in whole] == [3 * w.keep, w.keep, 0]
            and whole[0][: w.keep] == whole[0][2 * w.keep :]
            or np.isnan(whole[0][0][1])
        )
        single, _, _ = qs.ask_questions(net, items[::-1], w, batch_tokens=1)
        assert [[q[::2] for q in x] for x in single[::-1]] == [[q[::2] for q in x] for x in whole]
        assert endless[2] == 0 and endless[0] <= 3 * w.keep
