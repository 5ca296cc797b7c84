"""Log-probabilities of a server reach the methods: generate, compare, score and prr on one folder."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from uetrust.cli.cli import main
from uetrust.core.settings import root
from uetrust.generation.serve import running_server
from uetrust.models.load import load_model
from uetrust.statistics.served import truncated_entropy
from uetrust.statistics.table import read_statistics

DATA = "bulletin:test:4"


@pytest.fixture(scope="module")
def url():
    with running_server(load_model(root() / "data" / "models" / "tiny-llama"), "tiny-llama") as address:
        yield address


@pytest.fixture(scope="module")
def bank(url, tmp_path_factory):
    "A bank that `generate --logprobs 4` filled over HTTP"
    folder = tmp_path_factory.mktemp("served") / "bank"
    asked = f"--model tiny-llama --endpoint {url} --data {DATA} --samples 2 --max-new-tokens 16 --logprobs 4"
    assert main(["generate", str(folder), *asked.split()]) == 0
    return folder


def test_what_the_server_says_is_stored_beside_the_texts(bank):
    said = read_statistics(bank / "served")
    assert len(said) == 12 and set(said["kind"]) == {"greedy", "sample"}
    for row in said.itertuples():
        assert len(row.logp) == len(row.special) == len(row.ids) == len(row.top_logp) > 0
        assert row.top_logp.shape[1] == 4 and (np.diff(row.top_logp) <= 0).all()
        np.testing.assert_allclose(row.entropy, truncated_entropy(row.top_logp))
    greedy = said[said["kind"] == "greedy"]
    assert all(np.allclose(row.logp, row.top_logp[:, 0]) for row in greedy.itertuples())


def test_generate_compare_score_and_prr_work_on_one_folder(bank, capsys):
    models = root() / "data" / "models"
    words = ["--nli", models / "tiny-nli", "--encoder", models / "tiny-encoder"]
    assert main(["compare", str(bank), *map(str, words)]) == 0
    asked = ["--data", DATA, "--method", "all", "--metric", "rouge_l"]
    assert main(["score", str(bank), *asked]) == 0
    told = capsys.readouterr().out
    assert "mte: entropies of the 4 likeliest tokens and the rest as one, a lower bound" in told
    assert "msp: entropies" not in told
    scores = pd.read_csv(bank / "scores.csv")
    methods = set(scores.dropna(subset="value")["name"])
    assert {"msp", "perplexity", "mte", "semantic_entropy", "lex_sim", "eigv", "rouge_l"} <= methods
    assert len(methods) > 40
    assert main(["prr", str(bank), "--quality", "rouge_l", "--uncertainty", "msp,perplexity", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["method"], row["metric"], row["n"]) for row in rows] == [
        ("msp", "rouge_l", 4),
        ("perplexity", "rouge_l", 4),
    ]


def msp_of(folder, stored):
    table = read_statistics(folder / stored)
    return [-sum(logp) for logp in table[table["kind"] == "greedy"]["logp"]]


def test_what_a_pass_of_the_checkpoint_stored_counts_more(bank, tmp_path, capsys):
    copy, model = tmp_path / "bank", str(root() / "data" / "models" / "tiny-llama")
    shutil.copytree(bank, copy)
    assert main(["score", str(copy), "--method", "msp"]) == 0
    np.testing.assert_allclose(pd.read_csv(copy / "scores.csv")["value"], msp_of(copy, "served"))
    assert main(["read", str(copy), "--model", model, "--data", DATA]) == 0
    capsys.readouterr()
    assert main(["score", str(copy), "--method", "msp", "mte"]) == 0
    scores = pd.read_csv(copy / "scores.csv").set_index("name")["value"]
    np.testing.assert_allclose(scores["msp"], msp_of(copy, "conditional"))
    assert "likeliest tokens" not in capsys.readouterr().out


def test_a_server_without_log_probabilities_is_named_and_the_texts_are_kept(tmp_path, capsys):
    from tests.faults.harness import start_answers, stop_answers

    def answer(asked, number):
        assert asked["logprobs"] is True and asked["top_logprobs"] == 5
        choices = [dict(index=i, message=dict(content=f"text {i}")) for i in range(asked.get("n") or 1)]
        return 200, json.dumps(dict(choices=choices)).encode()

    url = start_answers(answer)
    try:
        asked = ["--model", "mute", "--endpoint", url, "--data", "bulletin:test:2", "--samples", "2"]
        assert main(["generate", str(tmp_path / "bank"), *asked, "--logprobs"]) == 0
    finally:
        stop_answers()
    told = capsys.readouterr().out
    assert (
        "mute gave no log-probabilities, or fewer than requested, for 6 texts" in told
        and "6 texts of 2" in told
    )


@pytest.mark.parametrize("asked, missed", [("1", False), ("2", True), ("3", True)])
def test_a_server_that_names_no_other_tokens_gives_fewer_log_probabilities_than_asked(
    tmp_path, capsys, asked, missed
):
    from tests.faults.harness import start_answers, stop_answers

    def answer(body, number):
        said = dict(content=[dict(token="text", logprob=-0.5), dict(token=" one", logprob=-1.0)])
        n = body.get("n") or 1
        choices = [dict(index=i, message=dict(content="text one"), logprobs=said) for i in range(n)]
        return 200, json.dumps(dict(choices=choices)).encode()

    url, folder = start_answers(answer), tmp_path / "bank"
    try:
        words = ["--model", "terse", "--endpoint", url, "--data", "bulletin:test:2", "--samples", "2"]
        assert main(["generate", str(folder), *words, "--logprobs", asked]) == 0
    finally:
        stop_answers()
    assert ("terse gave no log-probabilities, or fewer than requested" in capsys.readouterr().out) == missed
    assert (folder / "served").exists() != missed
    if not missed:
        assert [list(logp) for logp in read_statistics(folder / "served")["logp"]] == [[-0.5, -1.0]] * 6


def test_nothing_listens_and_it_is_said_at_once(tmp_path, capsys):
    asked = ["--model", "x", "--endpoint", "http://127.0.0.1:9/v1", "--data", "bulletin:test:2"]
    assert main(["generate", str(tmp_path / "bank"), *asked]) == 2
    assert "nothing listens at http://127.0.0.1:9/v1" in capsys.readouterr().err
    assert main(["generate", str(tmp_path / "bank"), *asked[:2], *asked[4:], "--logprobs"]) == 2
    assert "--logprobs asks a server" in capsys.readouterr().err


def test_settings_ini_asks_a_server_for_log_probabilities():
    from uetrust.generation.serve import open_endpoint
    from uetrust.scoring.generators import GeneratorSettings

    generator = GeneratorSettings("x", model="m", endpoint="http://127.0.0.1:9/v1", logprobs=3)
    with open_endpoint(generator) as endpoint:
        assert (endpoint.logprobs, endpoint.top_logprobs) == (True, 3)
    with open_endpoint(GeneratorSettings("x", model="m", endpoint="http://127.0.0.1:9/v1")) as endpoint:
        assert (endpoint.logprobs, endpoint.top_logprobs) == (False, 0)
