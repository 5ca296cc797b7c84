"""Stages of the pipeline: which worker makes what, what a stage waits for, and what is left out."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.profiles import INI
from tests.helpers.readings import encoder
from tests.helpers.writers import SAMPLES, tiny
from uetrust.core.checks import Stopped
from uetrust.core.store import Store, lock_folder
from uetrust.generation.bank import bank_provenance, bank_row, fill_bank, read_bank
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import generate_texts
from uetrust.scoring import pipeline as f
from uetrust.scoring.pipeline import StageRun
from uetrust.statistics.table import read_statistics

MORE = """
[generator.plain]
model = models/llama
prompt = w1 {source}
samples = 0
max_new_tokens = 4
shard = 2
compare =
[generator.spoken]
serve = models/llama
prompt = w1 {source}
samples = 1
max_new_tokens = 4
logprobs = 3
verbal_2s = w3 {source} w1 {summary}
compare =
[generator.asked]
like = plain
samples = 2
p_true_sampling = w3 {source} w1 {summary} w2 {samples}
p_true_answers = w3 {source} w1 {summary}
reflection = w3 {source} w1 {summary}
[generator.asked-alone]
like = asked
samples = 0
[generator.asked-server]
serve = models/llama
prompt = w1 {source}
samples = 2
max_new_tokens = 4
p_true_answers = w3 {source} w1 {summary}
reflection = w3 {source} w1 {summary}
compare =
[generator.embedded]
like = plain
compare = embeddings sentences
passes = sample_hidden
[generator.entailed]
like = plain
samples = 1
compare = entailments
[generator.released]
like = plain
passes = hidden
density = he2024
[profile.dense]
banks = toy--plain-hidden toy--released
[generator.plain-hidden]
like = plain
passes = hidden
[profile.asking]
banks = toy--asked toy--asked-alone toy--asked-server
[profile.staged]
banks = toy--plain toy--spoken
metric_models = nli=models/encoder
[profile.embedding]
banks = toy--embedded
nli = models/gone
[profile.entailing]
banks = toy--entailed
encoder = models/gone
[profile.bare]
banks = toy--entailed
nli =
encoder =
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("staged")
    (folder / "nbs").mkdir()
    (folder / "settings.ini").write_text(INI + MORE)
    for name, model in (("llama", tiny("llama", chat=True)), ("encoder", encoder())):
        model.model.save_pretrained(folder / "models" / name)
        model.tokenizer.save_pretrained(folder / "models" / name)
    SAMPLES[:5].assign(reference="w3 w4").to_json(folder / "toy.jsonl", orient="records", lines=True)
    SAMPLES[5:7].assign(reference="w3 w4").to_json(folder / "train.jsonl", orient="records", lines=True)
    return folder


def steps(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def test_only_the_first_worker_asks_servers_and_each_says_what_its_share_is():
    assert [StageRun(worker=(i, 3)).drives for i in range(3)] == [True, False, False]
    assert StageRun((1, 3), False).share == dict(worker=(1, 3), progress=False)


def test_a_model_is_kept_until_another_one_is_asked_for(here):
    run = StageRun()
    first = run.model("models/encoder")
    assert run.model("models/encoder") is first and list(run.loaded) == [("models/encoder", "", "", "")]
    named = run.model("models/encoder,entailment:0,neutral:1,contradiction:2")
    assert named.model.config.id2label == {0: "entailment", 1: "neutral", 2: "contradiction"}
    assert first.model.config.id2label[0] == "CONTRADICTION" and len(run.loaded) == 1


@pytest.mark.parametrize("worker", [(0,), (0, 1, 2), (0, 0), (1, 1), (-1, 2)])
def test_a_worker_is_one_of_so_many(worker):
    with pytest.raises(ValueError, match=r"a worker is \(i, n\) with i from 0 to n - 1, got \("):
        f.check_worker(worker)
    assert f.check_worker((0, 1)) == (0, 1) and f.check_worker((1, 2)) == (1, 2)


def stored(folder, step, what="bank", n=4, made=4):
    "A step of a bank, of which so many of `n` shards are there"
    about = bank_provenance("toy", "m", "", "", {}, dict(greedy=1))
    samples = pd.DataFrame(dict(id=[f"s{i}" for i in range(n)], source="A source.", split="test"))

    def write(part):
        return [bank_row(name, "greedy", 0, "text", [1], 0, "stop") for name in part["id"]]

    fill_bank(folder / step, samples, about, write, 1, progress=False)
    if what != "bank":
        (folder / step / "bank.json").rename(folder / step / f"{what}.json")
    for path in sorted((folder / step).glob("*.parquet"))[made:]:
        path.unlink()


def test_a_stage_waits_for_what_is_written_before_it(tmp_path):
    assert f.unfinished_shards(tmp_path) == []
    for step, made in dict(texts=3, conditional=2, entailments=1, done=4).items():
        stored(tmp_path, step, "bank" if step == "texts" else "readings", made=made)
    (tmp_path / "replies.sqlite").touch()
    (tmp_path / "texts" / ".uetrust-x.parquet").touch()  # Written now, so not there yet
    missing = dict(texts="texts: 1 of 4 shards", conditional="conditional: 2 of 4 shards")
    assert f.unfinished_shards(tmp_path, "passes") == [missing["texts"]]
    assert f.unfinished_shards(tmp_path, "comparisons") == [missing["conditional"], missing["texts"]]
    assert (
        f.unfinished_shards(tmp_path)
        == f.unfinished_shards(tmp_path, "metrics")
        == [
            missing["conditional"],
            "entailments: 3 of 4 shards",
            missing["texts"],
        ]
    )


def test_a_cleared_bank_keeps_the_replies_that_were_paid_for(tmp_path):
    stored(tmp_path, "texts")
    stored(tmp_path, "hidden", "readings")
    (tmp_path / "quality").mkdir()
    for name in ("replies.sqlite", "quality/replies.sqlite", "quality/a.parquet"):
        (tmp_path / name).touch()
    f.clear_bank(tmp_path)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert left == ["quality/replies.sqlite", "replies.sqlite"]


def test_workers_share_a_stage_and_wait_for_each_other_before_the_next(here, capsys):
    folder = here / "runs" / "staged" / "banks" / "toy--plain"
    how = dict(progress=False, stages=("texts", "passes"))
    with pytest.raises(ValueError, match="one worker of several cannot start anew"):
        f.run_pipeline("staged", "toy--plain", resume=False, worker=(0, 2), **how)
    with pytest.raises(
        Stopped, match=r"the stage passes begins .*: 1 of 3 shards. Worker 1 of 2 has made its own"
    ):
        f.run_pipeline("staged", "toy--plain", worker=(0, 2), **how)
    assert sorted(path.name for path in (folder / "texts").glob("*.parquet")) == [
        "00000.parquet",
        "00002.parquet",
    ]
    with pytest.raises(Stopped, match="2 of 3 shards. Worker 2 of 2"):
        for path in (folder / "texts").glob("*.parquet"):
            path.unlink()
        f.run_pipeline("staged", "toy--plain", worker=(1, 2), **how)
    f.run_pipeline("staged", "toy--plain", progress=False, stages=("texts",), worker=(0, 2))
    assert f.run_pipeline("staged", "toy--plain", worker=(1, 2), **how) == folder
    assert len(read_bank(folder / "texts")) == 5 and steps(folder) == ["texts"]


def test_metrics_are_made_where_they_are_named_by_one_worker_for_each_model(here):
    folder = f.run_pipeline("staged", "toy--plain", progress=False)
    assert steps(folder) == ["texts"]
    made = []
    for i in (1, 0, 2):
        f.run_pipeline("staged", "toy--plain", progress=False, stages=("metrics",), worker=(i, 3))
        made.append(len(list((folder / "quality").glob("*.parquet"))))
    assert made[0] == 1 and made[1] == 2 == made[2], (
        "one file for metrics by the NLI model, one for the others"
    )
    f.run_pipeline("staged", "toy--plain", progress=False, stages=("metrics",))
    assert len(list((folder / "quality").glob("*.parquet"))) == 2


def test_a_bank_starts_anew_only_where_nobody_fills_it(here):
    folder = f.run_pipeline("staged", "toy--plain", progress=False)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    with lock_folder(folder), pytest.raises(BlockingIOError, match="is being filled by process"):
        f.run_pipeline("staged", "toy--plain", progress=False, resume=False)
    f.run_pipeline("staged", "toy--plain", progress=False)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")} == before


def test_the_first_stage_that_nobody_knows_is_named(here):
    with pytest.raises(
        LookupError, match="no stage 'text'; the stages are texts, passes, comparisons, metrics"
    ):
        f.run_stages("staged", "toy--plain", ("texts", "text", "metric"), StageRun())
    with pytest.raises(ValueError, match="a worker is"):
        f.run_stages("staged", "toy--plain", ("texts",), StageRun(worker=(2, 2)))


def test_what_a_server_says_of_its_tokens_is_stored_beside_the_texts(here, capsys):
    folder = f.run_pipeline("staged", "toy--spoken", progress=False)
    assert steps(folder) == ["served", "texts", "verbal_2s"]
    said = read_statistics(folder / "served")
    assert len(said) == 10 and {row.shape[1] for row in said["top_logp"] if len(row)} == {3}
    assert "gave no log-probabilities" not in capsys.readouterr().err
    assert Store(folder / "verbal_2s", "readings").manifest()["about"]["max_new_tokens"] == 32
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    f.run_pipeline("staged", "toy--spoken", progress=False, worker=(1, 2), stages=("texts", "passes"))
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")} == before


def test_a_checkpoint_and_a_server_answer_in_lines_what_they_are_asked_about_their_texts(here):
    own, served = (
        f.run_pipeline("asking", f"toy--{name}", progress=False) for name in ("asked", "asked-server")
    )
    assert steps(own) == ["asked_samples", "p_true_answers", "reflection", "texts"]
    assert steps(served) == ["p_true_answers", "reflection", "texts"]
    for folder in (own, served):
        drawn = read_statistics(folder / "p_true_answers")["stated"]
        assert all(reply.count("\n") == 9 for reply in drawn) and drawn[0] != drawn[1]
        about = Store(folder / "p_true_answers", "readings").manifest()["about"]
        assert about["drawn"] == 10 and about["max_new_tokens"] == 4
    once = [read_statistics(folder / "reflection")["reply"].tolist() for folder in (own, served)]
    assert once[0] == once[1] and len(set(once[0])) > 1
    shown, texts = read_statistics(own / "asked_samples"), read_bank(own / "texts")
    assert len(shown) == texts["sample"].nunique() and (shown["true"] < 0).all()
    with pytest.raises(ValueError, match="shows drawn texts in {samples}, and .* has none: set samples"):
        f.run_pipeline("asking", "toy--asked-alone", progress=False)


def test_steps_that_read_drawn_texts_are_left_out_with_a_note(here, capsys):
    folder = f.run_pipeline("embedding", "toy--embedded", progress=False)
    assert steps(folder) == ["embeddings", "texts"], "and no NLI model is loaded for what is left"
    told = "note: settings.ini [generator.embedded] samples = 0: sample_hidden, sentences left out"
    assert told in capsys.readouterr().err
    f.run_pipeline("staged", "toy--plain", progress=False)
    assert "left out" not in capsys.readouterr().err


def test_a_checkpoint_that_no_step_needs_is_not_loaded(here):
    assert steps(f.run_pipeline("entailing", "toy--entailed", progress=False)) == ["entailments", "texts"]
    assert steps(f.run_pipeline("bare", "toy--entailed", progress=False)) == ["texts"]


def test_densities_are_fitted_to_references_or_as_released_to_texts_written_from_them(here):
    plain, released = (
        f.run_pipeline("dense", f"toy--{name}", progress=False) for name in ("plain-hidden", "released")
    )
    assert set(read_bank(plain / "train")["text"]) == {"w3 w4"}
    written = read_bank(released / "train")
    assert list(written["sample"]) == ["s5", "s6"] and written["kind"].eq("greedy").all()
    about = Store(released / "train", "bank").manifest()["about"]
    assert about["generator"] == "released" and about["settings"]["prompt"] == "{source}"
    model = StageRun().model("models/llama")
    given = SAMPLES[5:7].assign(source="w3 w4")
    settings = Decoding(prompt="{source}", samples=0, max_new_tokens=4)
    expected = [row["text"] for row in generate_texts(model, given, settings, 8)]
    assert list(written["text"]) == expected and expected != ["w3 w4"] * 2
    states = [np.stack(read_statistics(at / "train-hidden")["decoder_mean"]) for at in (plain, released)]
    assert not np.allclose(*states) and np.allclose(states[1][0], states[1][1])  # One input, one state
