"""Clients that are not ours against `uetrust serve`: the package openai and lm-evaluation-harness.

They have an environment of their own (`make runs/.clients/.ready`, versions in pins/clients.pin).
"""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.helpers.clients import programs, run_client
from tests.helpers.paths import ROOT
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import decode_batch, encode_prompt
from uetrust.models.forward import score_tokens
from uetrust.models.load import load_model

pytestmark = pytest.mark.long
QUESTION = "Summarize in one sentence: On Monday the council approved a new harbour. It opens today."
NEW = 12  # Tokens of a text
STOPS = ["@@", "\n\n", "Question:", ".", "###"]  # And the harness adds the end token
CONTEXTS = ["The council", "On Monday the mayor said that", "Question: Who opened the harbour? Answer:"]


@pytest.fixture(scope="module")
def clients():
    "Folder of the programs of their environment"
    return programs()


def folder_of(name):
    "Folder of a checkpoint, for the tokenizer of the harness"
    if name != "smollm2":
        return ROOT / name
    gguf = pytest.importorskip("uetrust.models.gguf", reason="this version knows no smollm2")
    if (folder := gguf.converted_folder(name)) is None:
        pytest.skip("smollm2 was not fetched: `make smollm2` fetches it")
    return folder


@pytest.fixture(scope="module", params=["data/models/tiny-llama", "smollm2"])
def served(request):
    "Address and name of a served model, its folder, and its weights in this process"
    folder = folder_of(request.param)
    command = [sys.executable, "-m", "uetrust", "serve", request.param, "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip()
            yield url, request.param.rpartition("/")[2], folder, load_model(str(folder))
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(60)


def written(model, ids, stops=(), new=NEW):
    "The greedy text of the weights, before the first stop string"
    (tokens,) = decode_batch(model, [ids], Decoding(max_new_tokens=new), [[None]])[0]
    text = model.tokenizer.decode(tokens, skip_special_tokens=True)
    return text[: min([text.find(stop) for stop in stops if stop in text], default=len(text))]


# openai


@pytest.fixture(scope="module")
def openai(clients, served):
    url, name, _, _ = served
    return run_client(clients, "ask_openai.py", url, name, QUESTION)


def test_openai_gets_the_texts_of_the_weights(openai, served):
    _, name, _, model = served
    text = written(model, encode_prompt(model, [dict(role="user", content=QUESTION)]))
    (whole,), (cut,) = openai["whole"]["choices"], openai["cut"]["choices"]
    assert openai["models"] == [name] and whole["message"]["content"] == text
    assert (cut["message"]["content"], cut["finish_reason"]) == (text.split(text[6:12])[0], "stop")
    assert "".join(openai["pieces"]) == cut["message"]["content"]
    streamed = openai["streamed"]
    assert streamed["choices"][0]["message"]["content"] == cut["message"]["content"]
    assert streamed["usage"] == openai["cut"]["usage"]
    assert [choice["index"] for choice in openai["drawn"]["choices"]] == [0, 1]
    assert len({choice["message"]["content"] for choice in openai["drawn"]["choices"]}) > 1


def test_openai_gets_log_probabilities_and_bytes(openai, served):
    *_, model = served
    tokens = openai["cut"]["choices"][0]["logprobs"]["content"]
    text = b"".join(bytes(token["bytes"]) for token in tokens).decode().lstrip()
    assert text.startswith(openai["cut"]["choices"][0]["message"]["content"].rstrip())
    assert all(len(token["top_logprobs"]) == 2 for token in tokens)
    for choice, prompt in zip(openai["prompts"]["choices"], [QUESTION, "On Monday"]):
        ids, logprobs = encode_prompt(model, prompt), choice["logprobs"]
        assert choice["text"].startswith(prompt)
        np.testing.assert_allclose(
            logprobs["token_logprobs"][1 : len(ids)],
            score_tokens(model, [(ids[:1], ids[1:])])[0].logp,
            rtol=0,
            atol=1e-4,
        )


def test_openai_is_told_what_is_wrong(openai):
    status, param, message = openai["refused"]
    assert (status, param) == (400, "messages") and "a part of type 'image_url'" in message


# lm-evaluation-harness

TASK = """task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: {kind}
doc_to_text: "{{{{context}}}}"
doc_to_target: answer
{more}
"""
CHOOSE = """doc_to_choice: "{{choices}}"
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]"""
WRITE = """generation_kwargs: {{until: {stops}, max_gen_toks: 12, do_sample: false, temperature: 0.0}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]"""


def pair(model, context, choice):
    "Token ids of a context and of what follows it, as the harness splits them"
    ids, whole = (
        model.tokenizer(text, add_special_tokens=False).input_ids for text in (context, f"{context} {choice}")
    )
    return whole[: len(ids)], whole[len(ids) :]


@pytest.fixture(scope="module")
def questions(served):
    "Contexts, each with the text of the weights and two others"
    *_, model = served
    rows = []
    for k, context in enumerate(CONTEXTS):
        ids = model.tokenizer(context, add_special_tokens=False).input_ids
        choices = [written(model, ids, new=4).strip(), "naïve € 5 in a café.", "of the the."]
        rows.append(dict(context=context, choices=choices, answer=k % 2))
    return rows


@pytest.fixture(scope="module")
def tasks(questions, tmp_path_factory):
    "Folder with a task that chooses and one that writes"
    folder = tmp_path_factory.mktemp("tasks")
    data = folder / "questions.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in questions))
    more = dict(
        choose=("multiple_choice", CHOOSE), write=("generate_until", WRITE.format(stops=json.dumps(STOPS)))
    )
    for name, (kind, rest) in more.items():
        task = TASK.format(name=name, file=data, kind=kind, more=rest)
        (folder / f"{name}.yaml").write_text(task)
    return folder


@pytest.fixture(scope="module")
def harness(clients, served, tasks):
    url, name, folder, _ = served
    return run_client(clients, "ask_lm_eval.py", url, name, folder, tasks)


@pytest.mark.parametrize("run", ["alone", "batched"])
def test_the_harness_gets_the_log_likelihoods_of_the_weights(harness, served, questions, run):
    *_, model = served
    pairs = [pair(model, row["context"], choice) for row in questions for choice in row["choices"]]
    scored = score_tokens(model, pairs, topk=1)
    logp = np.array([own.logp.sum() for own in scored])
    greedy = [bool((own.top_ids[:, 0] == own.ids).all()) for own in scored]
    found = [resp[0] for resps in harness[run]["resps"]["choose"] for resp in resps]
    np.testing.assert_allclose([float(logp) for logp, _ in found], logp, rtol=0, atol=1e-4)
    assert [answer for _, answer in found] == greedy and 0 < sum(greedy) < len(greedy)
    best, answers = logp.reshape(-1, 3).argmax(1), [row["answer"] for row in questions]
    assert harness[run]["accuracy"] == pytest.approx((best == answers).mean())


def test_the_harness_gets_the_texts_of_the_weights(harness, served, questions):
    *_, model = served
    ids = [model.tokenizer(row["context"], add_special_tokens=False).input_ids for row in questions]
    found = [resps[0][0] for resps in harness["alone"]["resps"]["write"]]
    assert found == [written(model, own, STOPS) for own in ids]
    talks = [encode_prompt(model, [dict(role="user", content=row["context"])]) for row in questions]
    found = [resps[0][0] for resps in harness["chat"]["resps"]["write"]]
    assert found == [written(model, own, STOPS[:4]) for own in talks], "it sends four to a chat"
