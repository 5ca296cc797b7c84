"""A profile names a server as its judge, and a server may write what a checkpoint reads here."""

# ruff: noqa: F811

import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers.profiles import INI
from tests.helpers.readings import encoder
from tests.helpers.released import released_prompts  # noqa: F401
from tests.helpers.writers import SAMPLES, tiny
from uetrust.core.store import Store
from uetrust.scoring.cache import cached_metrics_of_bank, metric_models, models_about
from uetrust.scoring.generators import generator_settings, with_judge_server
from uetrust.scoring.methods import score_generations
from uetrust.scoring.metrics import compute_metrics
from uetrust.scoring.pipeline import run_pipeline
from uetrust.statistics import judges

MORE = """
[generator.judge]
serve = models/llama
[generator.read]
serve = models/llama
reader = models/llama
prompt = w1 {source} w2
samples = 2
max_new_tokens = 8
passes = conditional vocabulary
p_true = {source} w1 {summary}
compare =
[generator.alone]
model = models/llama
reader = models/llama
[profile.judged]
banks = toy--read
metric_models = judge=server:judge
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    d = tmp_path_factory.mktemp("judged")
    (d / "nbs").mkdir()
    (d / "settings.ini").write_text(INI + MORE)
    for name, model in (("llama", tiny("llama", chat=True)), ("encoder", encoder())):
        model.model.save_pretrained(d / "models" / name)
        model.tokenizer.save_pretrained(d / "models" / name)
    SAMPLES[:5].assign(reference="w3 w4").to_json(d / "toy.jsonl", orient="records", lines=True)
    SAMPLES[12:].assign(reference="w3 w4").to_json(d / "train.jsonl", orient="records", lines=True)
    return d


TEXTS = pd.DataFrame(
    dict(id=["a", "b", "c"], hypothesis=["w1", "w2 w3", "w4"], source=["w5"] * 3, reference=["w6"] * 3)
)
ASKED = ["judge_wi_in_consistency", "judge_wi_in_consistency_he2024", "judge_wo_fluency_he2024"]


def stub(monkeypatch, reply):
    "A judge whose replies are given, and the number of questions that were sent"
    sent = []

    def ask(endpoint, asked, texts, cache, variants, top, progress):
        def replies(endpoint, requests, cache):
            sent.extend(requests)
            found = [reply(request.sample) for request in requests]
            refused = {request.sample: "no" for request, text in zip(requests, found) if text is None}
            return [text and dict(choices=[dict(message=dict(content=text))]) for text in found], refused

        return replies

    monkeypatch.setattr(judges, "_ask_everything", ask)
    return sent


def test_a_judge_of_settings_scores_and_a_missing_reply_is_missing(here, monkeypatch):
    sent = stub(monkeypatch, {1: "7", 2: None, 3: "no digits"}.get)
    models = with_judge_server(dict(judge="server:judge"), here / "replies.sqlite")
    scores = compute_metrics(TEXTS, models, [*ASKED, "judge_wi_in_consistency_expected"], progress=False)
    table = scores.table
    values = table.pivot(index="sample", columns="name", values="value")
    assert values["judge_wi_in_consistency"].tolist()[0] == 7 and values.isna().sum().tolist() == [2, 1, 1]
    assert values["judge_wi_in_consistency_he2024"].tolist()[2] == -1, "as the release has it"
    assert "gave no reply: no" in table.set_index(["sample", "name"]).loc[("b", ASKED[1]), "note"]
    assert len(sent) == 6, "one question for each of two prompts and three texts"
    assert "--top 20" in scores.missing["judge_wi_in_consistency_expected"][0]


def answered(monkeypatch, text):
    "A server that gives one reply to every request, and the requests that it got"
    got = []

    def send_once(endpoint, request):
        got.append(request.key)
        choice = dict(index=0, message=dict(content=text), finish_reason="stop")
        return json.dumps(dict(choices=[choice], usage=dict(prompt_tokens=9, completion_tokens=1)))

    monkeypatch.setattr("uetrust.generation.endpoint.send_once", send_once)
    return got


def test_replies_of_a_judge_are_kept_beside_the_scores_and_not_asked_for_twice(here, monkeypatch):
    folder = run_pipeline("judged", "toy--read", progress=False)
    models = with_judge_server(dict(judge="server:judge"), folder / "quality" / "replies.sqlite")
    samples, got = pd.read_json(here / "toy.jsonl", lines=True), answered(monkeypatch, "6")
    first = cached_metrics_of_bank(folder, samples, models, ASKED, progress=False).table
    assert (folder / "quality" / "replies.sqlite").exists() and first["value"].tolist() == [6.0] * 15
    assert len(got) == 10, "two prompts about each of five texts"
    again = cached_metrics_of_bank(folder, samples, models, ASKED, progress=False).table
    pd.testing.assert_frame_equal(first, again)
    assert len(got) == 10


def test_metric_models_name_the_wording_of_a_judge(here, monkeypatch, released_prompts):
    released_prompts()
    got, abouts = answered(monkeypatch, "Score 6.5"), []
    for wording, strict in (("", 6.5), (",question_first", 6.5), (",he2024", 6.5)):
        named = metric_models([f"judge=server:judge{wording}"])
        models = with_judge_server(named, here / "both.sqlite")
        table = compute_metrics(TEXTS, models, ASKED[:2], progress=False).table
        values = table.groupby("name", sort=False)["value"].agg(list)
        assert values[ASKED[0]] == [strict] * 3 and values[ASKED[1]] == [6] * 3
        abouts.append(models_about(models)["judge"])
    assert len(set(got)) == len(got) == 9, "each wording has requests of its own"
    assert len(set(abouts)) == 3, "and scores of its own"


def test_a_server_answers_the_question_of_a_user_and_rates_translations(here, monkeypatch):
    sent = stub(monkeypatch, {1: "4", 2: "5", 3: "no digits"}.get)
    (here / "q.txt").write_text("How good is {hypothesis}, of {source}?")
    named = metric_models([f"judge_own=server:judge,{here / 'q.txt'}", "judge_translation=server:judge"])
    models = with_judge_server(named, here / "own.sqlite")
    names = ["judge_own_overall", "judge_da_overall"]
    table = compute_metrics(TEXTS, models, names, progress=False).table
    values = table.pivot(index="sample", columns="name", values="value")[names]
    np.testing.assert_array_equal(values, [[4, 4], [5, 5], [np.nan, np.nan]])
    asked = {request.body["messages"][0]["content"] for request in sent}
    assert {f"How good is {t.hypothesis}, of {t.source}?" for t in TEXTS.itertuples()} < asked
    (here / "q.txt").write_text("How good is {hypothesis}, of its {source}?")
    again = with_judge_server(named, here / "own.sqlite")
    assert models_about(models)["judge_own"] != models_about(again)["judge_own"]


def test_what_a_server_wrote_is_read_here_by_its_checkpoint(here):
    folder = run_pipeline("judged", "toy--read", progress=False)
    assert Store(folder / "texts", "bank").manifest()["about"]["generator"] == "read"
    found = score_generations(folder, ["msp", "p_true", "self_certainty"], progress=False)
    scores = found.table
    assert not found.missing and len(scores) == 15
    read = scores.pivot(index="sample", columns="name", values="value")["msp"]
    assert np.isfinite(read).all() and read.nunique() > 1


@pytest.mark.parametrize(
    "models,says",
    [
        (dict(judge="server:writer"), "its section needs endpoint or serve"),
        (dict(nli="server:judge"), "only a judge can be a server"),
        (dict(judge="server:nobody"), "no generator 'nobody'"),
        (dict(judge=("server:judge", "mine")), "a judge has a wording, one of .*texts_first.*he2024"),
        (dict(echo=("server:judge", "he2024")), "a judge has a wording"),
        (dict(judge_own="server:judge"), "judge_own=server:judge,: name an existing file with the question"),
        (dict(judge_own=("server:judge", "nowhere.txt")), "name an existing file with the question"),
    ],
)
def test_a_judge_that_is_no_server_is_refused(here, models, says):
    with pytest.raises((ValueError, LookupError), match=says):
        with_judge_server(models, "replies.sqlite")


def test_only_texts_of_a_server_need_a_reader(here):
    with pytest.raises(ValueError, match="reader names who reads the texts of a server"):
        generator_settings("alone")
