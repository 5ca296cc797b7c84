"""Judges at work: a local one says what its probabilities say, a server may fail in every way, and no text
is lost or paid twice."""

import json
import math
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers import endpoints as te
from tests.helpers.judges import MANY
from tests.helpers.paths import ROOT
from uetrust.cli.cli import main
from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.run import ScoreRun, compute_score
from uetrust.core.settings import root
from uetrust.data.bulletins import bulletins
from uetrust.generation.decoding import Decoding
from uetrust.generation.endpoint import (
    BudgetReached,
    Endpoint,
    EndpointError,
    ReplyCache,
    estimate_request_cost,
)
from uetrust.generation.local import checkpoint_settings, encode_prompt
from uetrust.generation.serve import running_server
from uetrust.models.forward import Layout, score_tokens
from uetrust.models.load import load_model
from uetrust.nlg.judge import (
    DIMENSION_DEFINITIONS,
    WORDINGS,
    expected_score,
    ice_example_order,
    ice_prompt,
    judge_prompt,
    parse_strict,
)
from uetrust.nlg.likelihood import IN_OTHER_WORDS_TEMPLATE, TLDR_TEMPLATE, with_lower_first_letter
from uetrust.scoring.generators import GeneratorSettings
from uetrust.scoring.metrics import compute_metrics
from uetrust.statistics import judges as jg
from uetrust.statistics.prompted import greedy_answers, greedy_replies
from uetrust.statistics.texts.providers import shipped_models

OWN = (root() / "data/judges/bulletin.txt").read_text().strip()
WO = [("wo", d) for d in DIMENSION_DEFINITIONS]


@pytest.fixture(scope="module")
def llama():
    return load_model(root() / "data/models/tiny-llama", device="cpu")


@pytest.fixture(scope="module")
def texts():
    b = bulletins("test", 6)
    said = [b["reference"][0], "Council the the of.", *b["paraphrase"][2:5], b["source"][5]]
    return pd.DataFrame(
        dict(id=list("abcdef"), hypothesis=said, source=b["source"], reference=b["reference"])
    )


def columns(table):
    return {k: list(table[k]) for k in ("hypothesis", "source", "reference")}


# A checkpoint
def test_probabilities_of_answers_are_those_of_their_tokens(llama, texts):
    asked = jg.judge_templates("own", "overall", columns(texts), OWN)
    told, logp, cut = jg.run_local_judge(llama, asked, (1, 5))
    for i, (template, source) in enumerate(asked):
        prompt = llama.tokenizer.apply_chat_template(
            [dict(role="user", content=template.replace("{source}", source))],
            add_generation_prompt=True,
            tokenize=False,
        )
        ids = llama.tokenizer(prompt, add_special_tokens=False).input_ids
        one = [
            score_tokens(llama, [(ids, llama.tokenizer(str(k), add_special_tokens=False).input_ids)])[
                0
            ].logp.sum()
            for k in range(1, 6)
        ]
        np.testing.assert_allclose(np.exp(logp[i]), np.exp(one), atol=2e-6)
        assert told[i] == str(1 + np.argmax(one)) and cut[i] == 0


def test_batches_and_order_do_not_matter_to_a_judge(llama, texts):
    asked = jg.judge_templates("own", "consistency", columns(texts), OWN)
    a, b = (
        jg.run_local_judge(llama, asked, (1, 5)),
        jg.run_local_judge(llama, asked[::-1], (1, 5), batch=1, batch_tokens=1),
    )
    assert a[0] == b[0][::-1]
    np.testing.assert_allclose(np.exp(a[1]), np.exp(b[1][::-1]), atol=2e-6)


def test_an_answer_that_begins_a_longer_one_counts_without_it():
    got = jg.exclusive_answer_logps(np.log([0.6, 0.1, 0.3, 0.05]), [[7], [8], [7, 9], [7, 9, 9]])
    np.testing.assert_allclose(
        np.exp(got), [0.3, 0.1, 0.25, 0.05]
    )  # 7 that does not go on to 7-9, 7-9 that does not go on to 7-9-9


def test_the_shipped_judge_tells_good_summaries_from_word_salad(texts):
    names = [f"judge_own_{d}{e}" for d in DIMENSION_DEFINITIONS for e in ("", "_expected")]
    scores = compute_metrics(texts, shipped_models(), names, progress=False)
    table = scores.table
    by_name = table.pivot(index="sample", columns="name", values="value")
    assert set(by_name) == set(names) and not scores.missing
    for d in ("fluency", "overall", "relevance"):
        assert by_name.at["a", f"judge_own_{d}_expected"] > by_name.at["b", f"judge_own_{d}_expected"]
    assert (
        table["value"].dropna().between(1, 5).all() and (table["value"].isna() == (table["note"] != "")).all()
    )


def test_the_longest_text_gives_way_and_no_other_can_take_its_place(llama, texts):
    x = columns(texts.iloc[:1].assign(hypothesis="It rained. {source} {dim}"))
    for family, long in (
        ("wo", "reference"),
        ("wi_gt", "reference"),
        ("wi_in", "source"),
        ("wi_ingt", "source"),
    ):
        ((template, text),) = jg.judge_templates(family, "fluency", x)
        assert template.count("{source}") == 1 and text == x[long][0] and "{ source}" in template
    ((template, text),) = jg.judge_templates("own", "fluency", x, OWN)
    assert text == x["source"][0] and template.count("{source}") == 1 and "fluency" in template
    _, _, cut = jg.run_local_judge(llama, [(template, text), (template, text * 9)], (1, 5))
    assert cut[0] == 0 < cut[1]
    with pytest.raises(ValueError, match="exactly once"):
        jg.judge_templates("own", "fluency", x, "How good is {hypothesis}?")


# A server that answers as the checkpoint does
def asked(m, texts, chat):  # Tokens of the prompts about fluency
    prompts = [judge_prompt("wo", "fluency", r._asdict())[0]["content"] for r in texts.itertuples()]
    return [encode_prompt(m, [dict(role="user", content=p)] if chat else p) for p in prompts]


@pytest.mark.parametrize("chat", [True, False])
def test_a_server_says_what_its_checkpoint_says(llama, tmp_path, chat):
    short = pd.DataFrame(
        dict(id=["a", "b"], hypothesis=["Rain fell.", "The town is old."], source="", reference="Rain fell.")
    )
    with running_server(llama, "judge") as url:
        leaves, why = jg.remote_judge_statistics(
            Endpoint(url, "judge", chat=chat), [("wo", "fluency")], short, tmp_path / "r.sqlite", top=20
        )
    assert why == {"wo_fluency": {}}
    ids = asked(llama, short, chat)
    answers = [llama.tokenizer(str(k), add_special_tokens=False).input_ids for k in range(1, 6)]
    local = [np.array([score_tokens(llama, [(i, table)])[0].logp.sum() for table in answers]) for i in ids]
    settings = checkpoint_settings(llama, Decoding(samples=0, max_new_tokens=16))
    for said, (text, ended) in zip(
        leaves["reply_wo_fluency"], greedy_answers(llama, ids, settings), strict=True
    ):
        assert said.strip() == text if ended else isinstance(said, Undefined) and text[:40] in str(said)
    for a, b in zip(leaves["answers_wo_fluency"], local, strict=True):
        seen = np.isfinite(a)
        np.testing.assert_allclose(a[seen], b[seen], atol=1e-4)
        assert (np.exp(b[~seen]) < 0.05).all()


@pytest.mark.opt_in  # CONTRIBUTING.md says how
@pytest.mark.parametrize("chat", [True, False])
def test_transformers_serve_says_what_the_checkpoint_says(llama, texts, tmp_path, chat):
    leaves, why = jg.remote_judge_statistics(
        Endpoint("http://127.0.0.1:8000/v1", "data/models/tiny-llama", chat=chat),
        [("wo", "fluency")],
        texts,
        tmp_path / "r.sqlite",
    )
    assert why == {"wo_fluency": {}}
    assert [x.strip() for x in leaves["reply_wo_fluency"]] == greedy_replies(
        llama, asked(llama, texts, chat), checkpoint_settings(llama, Decoding(samples=0, max_new_tokens=16))
    )


# A server that fails
def rating(query, chat):
    "A judge with an opinion about every text, or none"
    text = query["messages"][0]["content"]
    n = len(text) % 7
    said = ["1", "5", "Score: 3", "I cannot rate this.", "11", None, "4 out of 5"][n]
    return dict(
        choices=[dict(index=0, message=dict(role="assistant", content=said))],
        usage=dict(prompt_tokens=50, completion_tokens=2),
    )


@pytest.fixture
def judge(monkeypatch):
    monkeypatch.setattr(te, "completion", rating)


PASSING = [f for f in te.FAULTS if f != "hang"]


def test_every_text_is_answered_or_counted_whatever_the_server_does(judge, tmp_path):
    faults = [
        (429, {"Retry-After": "0"}, "slow down"),
        (500, {}, "oops"),
        (400, {}, '{"error": "content policy"}'),
        "drop",
        "ok",
        "cut",
        (503, {}, ""),
        (422, {}, "too long"),
        (200, {}, "[]"),
    ] * 2
    with te.server(faults) as (url, log):
        found = jg.judge_scores(
            te.endpoint(url), [("wo", "fluency")], MANY, tmp_path / "r.sqlite", progress=False
        )
    table, refused = found.table, found.refused["texts_first wo_fluency"]
    strictly = table[table["name"] == "judge_wo_fluency"].set_index("sample")
    assert (
        len(strictly) == 24 and len(refused) == 4 and all("HTTP 4" in by_name for by_name in refused.values())
    )
    assert (
        strictly.loc[list(refused), "value"].isna().all()
        and strictly.loc[list(refused), "note"].str.contains("no reply").all()
    )
    served = [json.dumps(query, sort_keys=True) for query in log["served"]]
    assert len(served) == len(set(served)) == 24 - 4, "a text that was answered is never asked again"
    for r in MANY.itertuples():
        said = (
            None
            if r.id in refused
            else rating(
                jg.judge_requests(te.endpoint(url), "wo", "fluency", MANY[MANY["id"] == r.id])[0].body, True
            )["choices"][0]["message"]["content"]
            or ""  # Ended without a word: an empty text
        )
        try:
            assert strictly.at[r.id, "value"] == parse_strict(said, 1, 5)
        except Undefined as e:
            assert strictly.at[r.id, "note"] == str(e) and np.isnan(strictly.at[r.id, "value"])
    assert 0 < strictly["value"].isna().sum() - 4 < 20


def test_replies_are_read_again_without_a_call(judge, tmp_path):
    with te.server() as (url, log):
        first = jg.judge_scores(te.endpoint(url), WO, MANY, tmp_path / "r.sqlite", progress=False).table
    again = jg.judge_scores(
        te.endpoint("http://127.0.0.1:9/v1"), WO, MANY, tmp_path / "r.sqlite", progress=False
    ).table
    pd.testing.assert_frame_equal(again, first)
    assert len(log["served"]) == 24 * 5 and set(first["name"]) == {
        f"judge_wo_{d}{e}" for d in DIMENSION_DEFINITIONS for e in ("", "_he2024")
    }
    assert (first[first["name"].str.endswith("he2024")]["value"] == -1).any(), (
        "the released reading gives a number to a refusal"
    )


def test_a_fault_that_stays_ends_the_run_and_keeps_what_came(judge, tmp_path):
    with te.server(["ok"] * 5 + [(401, {}, "no such key")] * 99) as (url, log):
        with pytest.raises(
            EndpointError,
            match="did not answer the wo fluency request of sample 't\\d+' in 1 attempt: HTTP 401",
        ):
            jg.judge_scores(
                te.endpoint(url, concurrency=1),
                [("wo", "fluency")],
                MANY,
                tmp_path / "r.sqlite",
                progress=False,
            )
    with te.server() as (url, more):
        table = jg.judge_scores(
            te.endpoint(url), [("wo", "fluency")], MANY, tmp_path / "r.sqlite", progress=False
        ).table
    assert (len(log["served"]), len(more["served"])) == (5, 19) and len(table) == 48


def test_a_server_that_refuses_everything_is_an_error(judge, tmp_path):
    with (
        te.server([(400, {}, "unknown model")] * 99) as (url, _),
        pytest.raises(EndpointError, match="unknown model"),
    ):
        jg.judge_scores(te.endpoint(url), [("wo", "fluency")], MANY, tmp_path / "r.sqlite", progress=False)


def test_the_budget_stops_a_judge_before_it_is_passed(judge, tmp_path):
    e = dict(price_in=1.0, price_out=1.0)
    requests = jg.judge_requests(te.endpoint("http://127.0.0.1:9/v1", **e), "wo", "fluency", MANY)
    most = estimate_request_cost(te.endpoint("http://127.0.0.1:9/v1", **e), requests)["cost_most"] / 24
    budget = most + 8 * 52e-6  # Of a request its price at most is set aside; then it costs 52 tokens
    with te.server() as (url, log):
        with pytest.raises(BudgetReached):
            jg.judge_scores(
                te.endpoint(url, budget=budget, **e),
                [("wo", "fluency")],
                MANY,
                tmp_path / "r.sqlite",
                progress=False,
            )
        n = len(log["served"])
        with ReplyCache(tmp_path / "r.sqlite") as c:
            assert 0 < n < 24 and sum(c.spent()) <= budget
        jg.judge_scores(
            te.endpoint(url, **e), [("wo", "fluency")], MANY, tmp_path / "r.sqlite", progress=False
        )
    assert len(log["served"]) == 24


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[3])
from tests.helpers.endpoints import endpoint
from tests.helpers.judges import MANY
from uetrust.statistics.judges import judge_scores
server = endpoint(sys.argv[2], concurrency=1)
judge_scores(server, [('wo', 'fluency')], MANY, sys.argv[1], progress=False)
"""


def test_a_judge_that_is_killed_pays_at_most_the_request_under_way_again(judge, tmp_path):
    with te.server(slow=0.05) as (url, log):
        run = [sys.executable, "-c", SCRIPT, str(tmp_path / "r.sqlite"), url, str(ROOT)]
        for n in (4, 11):
            p = subprocess.Popen(run)
            while len(log["seen"]) < n:
                time.sleep(0.005)
            p.send_signal(signal.SIGKILL)
            assert p.wait() == -9
        subprocess.run(run, check=True)
    assert 24 <= len(log["seen"]) <= 24 + 2
    table = jg.judge_scores(
        te.endpoint(url), [("wo", "fluency")], MANY, tmp_path / "r.sqlite", progress=False
    ).table
    assert len(table) == 48


# Wordings, and the command
def test_wordings_are_asked_apart_and_compared(judge, tmp_path):
    with te.server() as (url, log):
        table = jg.judge_scores(
            te.endpoint(url),
            [("wo", "fluency")],
            MANY,
            tmp_path / "r.sqlite",
            tuple(WORDINGS),
            progress=False,
        ).table
    by_name = jg.wording_effects(table).set_index("name")
    assert (
        len(log["served"]) == 24 * 3
        and list(by_name["wordings"]) == [3, 3]
        and by_name.at["judge_wo_fluency_he2024", "texts"] == 24 > by_name.at["judge_wo_fluency", "texts"]
    )
    v = table[table["name"] == "judge_wo_fluency_he2024"].pivot(
        index="sample", columns="variant", values="value"
    )
    assert (
        by_name.at["judge_wo_fluency_he2024", "sd"] == pytest.approx(v.std(axis=1, ddof=1).mean())
        and 0 < by_name.at["judge_wo_fluency_he2024", "share"] <= 2
    )


def test_the_expected_score_of_a_server_is_that_of_its_likeliest_tokens():
    logprobs = dict(
        content=[
            dict(
                token="4",
                logprob=-0.7,
                top_logprobs=[
                    dict(token=table, logprob=math.log(p))
                    for table, p in (("4", 0.5), (" 5", 0.2), ("Four", 0.2), ("5", 0.1))
                ],
            )
        ]
    )
    a = jg.answer_logps(jg.reply_candidates(dict(logprobs=logprobs)), (1, 5))
    np.testing.assert_allclose(np.exp(a), [0, 0, 0, 0.5, 0.3])
    assert expected_score(a) == pytest.approx((4 * 0.5 + 5 * 0.3) / 0.8)
    assert jg.reply_candidates({}) == jg.reply_candidates(dict(logprobs=None)) == []
    with pytest.raises(Undefined, match="no probabilities"):
        expected_score(None)
    plain = dict(tokens=["2"], token_logprobs=[math.log(0.9)], top_logprobs=[{"2": math.log(0.9)}])
    found = jg.answer_logps(jg.reply_candidates(dict(logprobs=plain)), (1, 5))
    np.testing.assert_allclose(np.exp(found), [0, 0.9, 0, 0, 0])


def test_the_command_asks_and_prints_what_is_missing_and_costs_nothing_dry(
    judge, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    MANY.to_csv("mine.csv", index=False)
    with te.server() as (url, log):
        ask = [
            "judge",
            "mine.csv",
            "--endpoint",
            url,
            "--model",
            "toy",
            "--families",
            "wo",
            "--dims",
            "fluency",
            "overall",
        ]
        assert (
            main([*ask, "--dry-run"]) == 0
            and not log["seen"]
            and "requests 48; cached 0" in capsys.readouterr().out
        )
        assert main([*ask, "--out", "s.csv"]) == 0
        out = capsys.readouterr().out
        assert main([*ask, "--variants", "all"]) == 0 and "share" in capsys.readouterr().out
    table = pd.read_csv("s.csv")
    row = next(r for r in out.splitlines() if " judge_wo_fluency " in r).split()
    got = table[table["name"] == "judge_wo_fluency"]["value"]
    assert (
        (int(row[2]), int(row[3])) == (24, got.isna().sum())
        and float(row[4]) == pytest.approx(got.mean(), abs=1e-4)
        and Path("mine.csv.replies.sqlite").exists()
    )
    assert len(log["served"]) == 48 * 3
    assert (
        main(["judge", "mine.csv", "--endpoint", url, "--model", "toy", "--dims", "fluency"]) == 2
        and "there is no ['source']" in capsys.readouterr().err
    )


@pytest.mark.parametrize("family", ["da", "da_ref"])
def test_the_command_rates_translations(judge, tmp_path, capsys, monkeypatch, family):
    monkeypatch.chdir(tmp_path)
    MANY.assign(source="Es regnete.").to_csv("mine.csv", index=False)
    with te.server() as (url, log):
        ask = ["judge", "mine.csv", "--endpoint", url, "--model", "toy", "--families", family]
        assert main([*ask, "--out", "s.csv"]) == 0
        assert main([*ask, "--dims", "fluency"]) == 2
    assert "dim is one of ['overall'], got 'fluency'" in capsys.readouterr().err
    table = pd.read_csv("s.csv")
    assert set(table["name"]) == {f"judge_{family}_overall"} and len(table) == len(MANY)
    assert len(log["served"]) == len(MANY)
    assert all("from 0 to 100" in body["messages"][0]["content"] for body in log["served"])


def test_the_command_asks_the_question_of_a_user(judge, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    MANY.assign(source="Rain fell.").to_csv("mine.csv", index=False)
    Path("q.txt").write_text("From 1 to 5, how true is {hypothesis}, given {source}?\n")
    with te.server() as (url, log):
        ask = ["judge", "mine.csv", "--endpoint", url, "--model", "toy", "--dims", "consistency"]
        assert main([*ask, "--question", "q.txt", "--out", "s.csv"]) == 0
        assert main([*ask, "--question", "other.txt"]) == 2
    assert "--question other.txt: there is no such file" in capsys.readouterr().err
    table = pd.read_csv("s.csv")
    assert set(table["name"]) == {"judge_own_consistency"} and set(table["variant"]) == {"own"}
    sent = {body["messages"][0]["content"] for body in log["served"]}
    assert sent == {f"From 1 to 5, how true is {text}, given Rain fell.?" for text in MANY["hypothesis"]}


# Texts given back
def test_probabilities_of_a_text_given_back_are_those_of_its_checkpoint(llama, texts, tmp_path):
    table = texts.iloc[:4]
    with running_server(llama, "judge") as url:
        leaves = jg.echo_statistics(Endpoint(url, "judge", chat=False), table, tmp_path / "r.sqlite")
        again = jg.echo_statistics(
            Endpoint(url, "judge", chat=False),
            table.assign(reference=[[r, "Rain fell."] for r in table["reference"]]),
            tmp_path / "r.sqlite",
        )
    for way, before, sep in (
        ("source", "source", TLDR_TEMPLATE),
        ("reference", "reference", IN_OTHER_WORDS_TEMPLATE),
    ):
        want = score_tokens(
            llama,
            [
                (b, with_lower_first_letter(hypothesis))
                for b, hypothesis in zip(table[before], table["hypothesis"])
            ],
            Layout(joined=True, sep=sep),
        )
        for got, by_name in zip(leaves[f"echo_logp_{way}_hypothesis"], want):
            got = got if way == "source" else got[0]
            np.testing.assert_allclose(got, by_name.logp, atol=2e-5)
    assert all(
        len(x) == 2 and np.array_equal(x[0], y[0])
        for x, y in zip(again["echo_logp_reference_hypothesis"], leaves["echo_logp_reference_hypothesis"])
    )
    run = ScoreRun(table["id"], reg, **leaves)
    np.testing.assert_allclose(
        compute_score(run, "gpt_score_echo")["value"],
        [x[:-1].mean() for x in leaves["echo_logp_source_hypothesis"]],
    )
    assert np.isfinite(compute_score(run, "gpt_score_echo_precision")["value"]).all()


def test_prompt_logprobs_are_another_way_to_say_the_same():
    listed = dict(
        choices=[
            dict(
                text=".",
                prompt_logprobs=[
                    None,
                    {"5": dict(logprob=-1.0, rank=3, decoded_token=" TL;DR: ")},
                    {"9": dict(logprob=-0.5, rank=1, decoded_token="rain")},
                    {"2": dict(logprob=-0.25, rank=1, decoded_token=" fell")},
                ],
            )
        ]
    )
    echo = dict(
        choices=[
            dict(
                text="",
                logprobs=dict(
                    tokens=["It", " TL;DR: ", "rain", " fell", "."],
                    token_logprobs=[None, -1.0, -0.5, -0.25, -9.0],
                ),
            )
        ],
        usage=dict(prompt_tokens=4),
    )
    for reply in (listed, echo):
        assert jg.text_token_logps(
            jg.prompt_token_logps(reply), "It TL;DR: rain fell", "rain fell"
        ).tolist() == [
            -0.5,
            -0.25,
        ]


def test_a_server_that_gives_no_text_back_says_so(judge, tmp_path, monkeypatch):
    monkeypatch.setattr(
        te,
        "completion",
        lambda query, chat: dict(
            choices=[dict(index=0, text="and so on")], usage=dict(prompt_tokens=5, completion_tokens=1)
        ),
    )
    with te.server() as (url, log):
        with pytest.raises(EndpointError, match="must echo the prompt"):
            jg.given_text_logps(te.endpoint(url, chat=False), [("a ", "b")], tmp_path / "r.sqlite")
        with pytest.raises(ValueError, match="chat=False"):
            jg.given_text_logps(te.endpoint(url), [("a ", "b")], tmp_path / "r.sqlite")
        with pytest.raises(ValueError, match="how is one of"):
            jg.given_text_logps(te.endpoint(url, chat=False), [("a ", "b")], tmp_path / "r.sqlite", "shout")
    assert len(log["seen"]) == 1


def echoed(query, chat):
    "A server of completions that gives the prompt back: every word has log p -1, the first has none."
    words = re.findall(r"\S+\s*", query["prompt"])
    listed = dict(tokens=words, token_logprobs=[None] + [-1.0] * (len(words) - 1))
    return dict(choices=[dict(index=0, text="", logprobs=listed)], usage=dict(prompt_tokens=len(words)))


def test_cohere_rates_the_prompt_and_writes_nothing(tmp_path, monkeypatch):
    words = [("It ", None), ("rained. ", -0.5), ("Rain ", -1.0), ("fell", -2.0)]
    likelihoods = [dict(token=token) | (dict(likelihood=logp) if logp else {}) for token, logp in words]
    reply = dict(generations=[dict(text="", token_likelihoods=likelihoods)])
    monkeypatch.setattr(te, "completion", lambda query, chat: reply)
    with te.server() as (url, log):
        toy = te.endpoint(url, chat=False)
        pairs = [("It rained. ", "Rain fell")]
        (found,) = jg.given_text_logps(toy, pairs, tmp_path / "r.sqlite", "cohere")
    assert found.tolist() == [-1.0, -2.0]
    wanted = dict(max_tokens=0, return_likelihoods="ALL", raw_prompting=True, prompt="It rained. Rain fell")
    assert log["seen"] == [wanted | dict(model="toy")]


def test_a_server_of_settings_rates_references_and_what_it_refuses_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(te, "completion", echoed)
    given = dict(hypothesis=["rain fell", "fog rose"], reference=[["It rained.", "Wet."], ["Dry.", "Fog."]])
    with te.server([(400, {}, "too long")]) as (url, _):
        generator = GeneratorSettings("g", endpoint=url, model="toy", echo="echo", concurrency=1)
        server = jg.JudgeServer(generator, str(tmp_path / "r.sqlite"))
        found, cut = jg.server_echo_statistics(server, ["echo_logp_reference_hypothesis"], given)
    refused, rated = found["echo_logp_reference_hypothesis"]
    assert isinstance(refused, Undefined) and "did not give the text back" in str(refused)
    assert [logp.tolist() for logp in rated] == [[-1.0, -1.0]] * 2 and cut == {}


def test_a_text_that_is_refused_has_no_score(tmp_path, monkeypatch):
    def back(query, chat):
        words = query["prompt"].split(" ")
        tokens = [by_name if i == 0 else " " + by_name for i, by_name in enumerate(words)]
        return dict(
            choices=[
                dict(
                    index=0,
                    text="",
                    logprobs=dict(tokens=tokens, token_logprobs=[None] + [-1.0] * (len(words) - 1)),
                )
            ],
            usage=dict(prompt_tokens=len(words), completion_tokens=1),
        )

    monkeypatch.setattr(te, "completion", back)
    table = pd.DataFrame(
        dict(id=["a", "b"], hypothesis=["rain fell here", "fog rose"], source=["It is wet.", "It is dry."])
    )
    with te.server([(400, {}, "too long")]) as (url, _):
        leaves = jg.echo_statistics(te.endpoint(url, chat=False, concurrency=1), table, tmp_path / "r.sqlite")
    scores = compute_score(ScoreRun(table["id"], reg, **leaves), "gpt_score_echo")
    assert (
        scores["value"].isna().sum() == 1
        and scores["value"].dropna().tolist() == [-1.0]
        and "gave no probabilities" in scores["note"][scores["value"].isna()].iloc[0]
    )


# ICE
def test_ice_is_a_completion_of_its_prompt(llama, texts, tmp_path):
    pool = [
        dict(hypothesis=hypothesis, score=scores, reference=r)
        for hypothesis, scores, r in zip(
            texts["hypothesis"][2:6], (0.25, 0.5, 0.75, 1.0), texts["reference"][2:6]
        )
    ]
    with running_server(llama, "judge") as url:
        e = Endpoint(url, "judge", chat=False)
        leaves, why = jg.ice_replies(e, "fluency", pool[:3], texts.iloc[:2], tmp_path / "r.sqlite")
        with ReplyCache(tmp_path / "r.sqlite") as c:
            sent = [json.loads(query)["body"] for (query,) in c.db.execute("select request from reply")]
        again, _ = jg.ice_replies(
            Endpoint("http://127.0.0.1:9/v1", "judge", chat=False),
            "fluency",
            pool[:3],
            texts.iloc[:2],
            tmp_path / "r.sqlite",
        )
        with pytest.raises(ValueError, match="chat=False"):
            jg.ice_replies(Endpoint(url, "judge"), "fluency", pool, texts, tmp_path / "r.sqlite")
    assert (
        again == leaves
        and why == {}
        and {query["prompt"] for query in sent}
        == {
            ice_prompt("fluency", ice_example_order(pool[:3]), dict(hypothesis=hypothesis))
            for hypothesis in texts["hypothesis"][:2]
        }
    )
    assert all((query["max_tokens"], query["temperature"], query["logprobs"]) == (5, 0, 5) for query in sent)
    scores = compute_score(ScoreRun(texts["id"][:2], reg, **leaves), "ice_fluency")
    assert (scores["value"].isna() == (scores["note"] != "")).all()


def test_a_completion_that_is_refused_has_no_score(tmp_path, monkeypatch):
    monkeypatch.setattr(
        te,
        "completion",
        lambda query, chat: dict(
            choices=[dict(index=0, text=" 0.67\n\nSumm")], usage=dict(prompt_tokens=5, completion_tokens=5)
        ),
    )
    table = pd.DataFrame(dict(id=["a", "b"], hypothesis=["rain fell", "fog"]))
    with te.server([(413, {}, "too long")]) as (url, _):
        leaves, why = jg.ice_replies(
            te.endpoint(url, chat=False, concurrency=1),
            "fluency",
            [dict(hypothesis="x", score=1)],
            table,
            tmp_path / "r.sqlite",
        )
    scores = compute_score(ScoreRun(table["id"], reg, **leaves), "ice_fluency")
    assert (
        scores["value"].dropna().tolist() == [0.67]
        and list(why) == scores.loc[scores["value"].isna(), "sample"].tolist()
        and "no reply" in scores["note"][scores["value"].isna()].iloc[0]
    )


def test_a_local_judge_computes_what_is_asked_of_it_and_no_more(llama, monkeypatch):
    asked = [("Rate this from 1 to 5: {source}", "The council met on Friday.")] * 2
    both = jg.run_local_judge(llama, asked, (1, 5))
    monkeypatch.setattr("uetrust.statistics.prompted.greedy_answers", lambda *a: pytest.fail("it replied"))
    replies, logp, _ = jg.run_local_judge(llama, asked, (1, 5), requested=("answers",))
    assert replies is None and np.array_equal(logp, both[1])
    monkeypatch.undo()
    monkeypatch.setattr("uetrust.models.forward.score_passes", lambda *a, **kw: pytest.fail("it read"))
    replies, logp, _ = jg.run_local_judge(llama, asked, (1, 5), requested=("reply",))
    assert logp is None and list(map(str, replies)) == list(map(str, both[0]))
