"""Texts written by others, read by a checkpoint and judged by people: RAGTruth by its documented fields."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers.read_back import put, reply, sources_of
from uetrust.cli.cli import main
from uetrust.cli.notebooks import profile_jobs
from uetrust.core.settings import root
from uetrust.core.store import Store
from uetrust.data.bulletins import bulletins
from uetrust.papers.people import read_back as study
from uetrust.statistics.table import read_statistics

NOTEBOOK = "nbs/experiments/people/11_people_read.ipynb"
TINY = root() / "data" / "models" / "tiny-llama"


@pytest.fixture
def small(tmp_path):
    "Twelve replies to six bulletins: the right summary, and that of another bulletin with all of it marked."
    world = bulletins("test", 6)
    other, replies = world["reference"].shift(-1, fill_value="Nothing happened here."), []
    for k, row in enumerate(world.itertuples()):
        documents = str(100 + k)
        replies.append(reply(2 * k, documents, row.reference))
        replies.append(reply(2 * k + 1, documents, other[k], (0, len(other[k]), "Evident Conflict")))
    replies.append(reply(90, "100", "It was cut in the", quality="truncated"))
    replies.append(reply(91, "100", "By another model.", model="gpt-4-0613"))
    replies.append(reply(92, "100", "For training.", split="train"))
    prompts = [f"Summarize the bulletin: {text}" for text in world["source"]]
    return put(tmp_path, replies, sources_of([str(100 + k) for k in range(6)], prompts))


def test_only_good_replies_of_the_writer_are_read(small):
    given = study.given_texts("ragtruth", "llama-2-7b-chat", folder=small)
    assert len(given.texts) == 12 and given.left_out == dict(truncated=1, empty=0)
    assert given.texts["document"].nunique() == 6
    with pytest.raises(LookupError, match="no replies of 'llama-3'"):
        study.given_texts("ragtruth", "llama-3", folder=small)
    with pytest.raises(LookupError, match="no text by 'llama-2-7b-chat' for task 'QA'"):
        study.given_texts("ragtruth", "llama-2-7b-chat", "QA", folder=small)


def test_the_command_reads_replies_and_judges_by_people(small, capsys):
    "tiny-llama stands in for Llama 2: summaries of other bulletins surprise it, and people marked them."
    params = ["read_sets=ragtruth tofueval", f"readers=llama-2-7b-chat:{TINY}", f"folder={small}"]
    out, target = small / "out", small / "read.ipynb"
    passes = "read_passes=conditional vocabulary unconditional"
    assert main(["run", NOTEBOOK, str(target), *params, passes, "read_task=Summary", f"out={out}"]) == 0
    assert capsys.readouterr().out == "ok read.ipynb\n"
    chapter = json.loads((out / "pages" / "people_read.json").read_text())
    missing, answer, left_out = chapter["text"]
    assert "on 12 texts of llama-2-7b-chat in ragtruth, read by tiny-llama. Of lengths" in answer
    assert "largest PRR by unmarked " in answer.replace(",", "") and chapter["answer"] == answer
    assert left_out == "Left out: 1 truncated." and "not at hand" in missing
    rows = pd.read_csv(out / "tables" / "people_read.csv").set_index(["method", "metric"])
    assert rows.loc[("perplexity", "unmarked"), "value"] > 0.5
    assert (rows["n"] == 12).all() and {"unmarked", "no_span"} <= set(rows.index.get_level_values(1))
    assert {"msp", "perplexity", "mean_token_entropy", "pmi"} & set(rows.index.get_level_values(0))
    (place,) = (out / "read").iterdir()
    read = read_statistics(place / "conditional")
    assert len(read) == 12 and all(np.isfinite(logp).all() and (logp <= 0).all() for logp in read["logp"])
    assert Store(place / "texts", "bank").manifest()["about"]["model"] == "llama-2-7b-chat"


def test_the_profile_without_its_data_says_so_and_the_run_goes_on(tmp_path, monkeypatch, capsys):
    assert [job.name for job in profile_jobs("people-read")] == ["people_read"]
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path))
    target = tmp_path / "people_read.ipynb"
    assert main(["run", NOTEBOOK, str(target), "profile=people-read", f"out={tmp_path}"]) == 0
    printed = capsys.readouterr().out
    assert "ended early" in printed and "ragtruth/response.jsonl" in printed and "mediasum" in printed


def test_reading_its_own_texts_back_gives_the_probabilities_of_writing(tmp_path):
    "The same tokens after the same prompt: what the writer computed of its own texts, to 2e-5."
    from uetrust.generation.bank import read_bank
    from uetrust.generation.decoding import Decoding
    from uetrust.generation.local import fill_local_bank
    from uetrust.models.load import load_model
    from uetrust.statistics.generator import get_pass
    from uetrust.statistics.passes import compute_likelihoods

    world, model = bulletins("test", 6), load_model(str(TINY))
    settings = Decoding(samples=0, max_new_tokens=80, prompt="Summarize the bulletin: {source}")
    fill_local_bank(tmp_path / "own", "bulletin", "tiny", world, model, settings, progress=False)
    compute_likelihoods(
        tmp_path / "logp", tmp_path / "own", world, model, get_pass("conditional"), settings, progress=False
    )
    wrote = read_bank(tmp_path / "own").set_index("sample")["text"]
    prompts = "Summarize the bulletin: " + world["source"]
    texts = pd.DataFrame(
        dict(id=world["id"], document=world["id"], source=prompts, text=list(wrote[world["id"]]))
    )
    given = study.GivenTexts("own", "tiny", texts, pd.DataFrame(index=texts["id"]), {})
    study.read_given_texts(tmp_path / "back", given, str(TINY), ("conditional",), 80, 150, progress=False)
    own, back = (read_statistics(tmp_path / name) for name in ("logp", "back/conditional"))
    same = [list(a) == list(b) for a, b in zip(own["ids"], back["ids"])]
    assert sum(same) >= 4, "most texts have the same tokens again"
    for a, b, equal in zip(own["logp"], back["logp"], same):
        if equal:
            np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.parametrize(
    "name, texts, documents, systems, mean",
    [("summeval", 1600, 100, 16, 4.66), ("faithbench", 750, 75, 10, 0.41), ("factscore", 337, 183, 2, 0.54)],
)
def test_texts_of_several_systems_come_with_their_prompt_and_judgements(
    name, texts, documents, systems, mean
):
    given = study.given_texts(name)
    frame = given.texts
    assert len(frame) == frame["id"].nunique() == texts and list(given.quality.index) == list(frame["id"])
    assert frame["document"].nunique() == documents and frame["system"].nunique() == systems
    judged = given.quality.get("consistency", given.quality.iloc[:, 0])
    assert round(judged.mean(), 2) == mean
    runs = (frame["document"] != frame["document"].shift()).sum()
    assert name == "factscore" or runs == documents  # A source stands in one run, so it is read once
    begins = "Tell me a bio of" if name == "factscore" else "Summarize this article in three sentences.\n\n"
    assert frame["source"].str.startswith(begins).all()


def test_facts_are_those_of_the_best_method_and_of_the_best_baseline():
    rows = [("msp", 0.4), ("mte", 0.6), ("token_count", 0.5), ("chance", 0.1), ("pmi", np.nan)]
    table = pd.DataFrame(rows, columns=["method", "value"]).assign(metric="right", lo=0.0, hi=1.0)
    other = table.assign(metric="second", value=0.9)
    texts = pd.DataFrame(dict(id=["a", "b"]))
    given = study.GivenTexts("own", "tiny", texts, pd.DataFrame(), dict(empty=2, truncated=0))
    facts = study.given_facts(study._GivenPRR(pd.concat([table, other]), 3, 0), given)
    assert (facts.n, facts.metric, facts.methods) == (2, "right", 2)
    assert (facts.best, facts.best_prr, facts.near) == ("mte", "0.600 [0.000, 1.000]", 1)
    assert facts.first_place() == "mte has the largest PRR by right, 0.600 [0.000, 1.000], of 2 methods"
    tied = study.given_facts(study._GivenPRR(table.replace(0.4, 0.597), 3, 0), given)
    assert tied.first_place().startswith("The largest PRR by right is shared by 2 of 2 methods, 0.600 [")
    assert study.texts_in_words(given) == "2 texts of tiny in own"
    assert (facts.baseline, facts.baseline_prr) == ("token_count", "0.500 [0.000, 1.000]")
    assert (facts.cut_prompts, facts.cut_texts, facts.left_out) == (3, 0, dict(empty=2))
