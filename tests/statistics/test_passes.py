"""Passes that are read together: the numbers of each pass alone, and one prefill of each document."""

from dataclasses import replace

import numpy as np
import pytest

import uetrust.models.forward as fw
from tests.helpers import stand_ins
from uetrust.core.settings import root
from uetrust.core.store import Store
from uetrust.data.datasets import load_samples
from uetrust.generation.bank import read_bank
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import checkpoint_settings, fill_local_bank
from uetrust.models.load import load_model
from uetrust.statistics.generator import PASSES, reads_prompt
from uetrust.statistics.passes import compute_likelihoods, compute_together
from uetrust.statistics.prompted import compute_p_true, insert_summary, question_prompt, single_token_id
from uetrust.statistics.table import read_statistics

TOGETHER = [name for name in PASSES if reads_prompt(name)]
SETTINGS = Decoding(samples=3, max_new_tokens=12, prompt="Summary: {source}", document="{source}")
MODELS = ["tiny-bart", "tiny-t5", "tiny-llama", stand_ins.gpt2, stand_ins.bart]


@pytest.fixture(scope="module", params=MODELS, ids=lambda made: getattr(made, "__name__", made))
def written(request, tmp_path_factory):
    "A model, its sources, and a bank that it wrote"
    at = tmp_path_factory.mktemp("together")
    folder = (
        request.param if isinstance(request.param, str) else stand_ins.save_stand_in(request.param, at / "m")
    )
    model = load_model(root() / "data" / "models" / folder)
    samples = load_samples("bulletin:test:6")
    fill_local_bank(at / "bank", "d", "g", samples, model, SETTINGS, size=4, progress=False)
    return model, samples, at


@pytest.fixture
def prefills(monkeypatch):
    "Number of tokens of the documents that a network reads"
    count, plain = [0], fw._prefix_state

    def counted(model, prompts):
        count[0] += sum(map(len, prompts))
        return plain(model, prompts)

    monkeypatch.setattr(fw, "_prefix_state", counted)
    return count


def test_every_pass_has_its_numbers_from_one_prefill(written, prefills, tmp_path):
    model, samples, at = written
    given = (at / "bank", samples, model)
    named = "conditional hidden vocabulary processed sample_hidden raw_logits probe_hidden"
    assert named.split() == TOGETHER
    fw.check_reading(model)
    prefills[0] = 0
    jobs = [(tmp_path / name, PASSES[name], name) for name in TOGETHER]
    compute_together(jobs, *given, SETTINGS, progress=False)
    once, prefills[0] = prefills[0], 0
    for name in TOGETHER:
        alone = tmp_path / "alone" / name
        compute_likelihoods(alone, *given, PASSES[name], SETTINGS, name, progress=False)
        got, want = read_statistics(tmp_path / name), read_statistics(alone)
        abouts = [Store(path, "readings").manifest()["about"] for path in (tmp_path / name, alone)]
        assert abouts[0] == abouts[1]
        assert list(got.columns) == list(want.columns) and len(got) == len(want) > 0
        for column in got.columns:
            for one, other in zip(got[column], want[column]):
                if isinstance(one, np.ndarray) and one.dtype.kind == "f":
                    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6, err_msg=f"{name} {column}")
                elif column != "top_ids":
                    assert np.array_equal(one, other), (name, column)
    assert prefills[0] == len(TOGETHER) * once  # Apart, every pass reads every document


def test_what_is_there_is_kept_and_the_rest_is_made(written, tmp_path):
    model, samples, at = written
    given = (at / "bank", samples, model, SETTINGS)
    jobs = [(tmp_path / name, PASSES[name], name) for name in TOGETHER[:3]]
    compute_together(jobs, *given, progress=False)
    first = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    lost = [tmp_path / "hidden" / "00001.parquet", tmp_path / "vocabulary" / "00000.parquet"]
    stamps = {path: path.stat().st_mtime_ns for path in first}
    for path in lost:
        path.unlink()
    compute_together(jobs, *given, progress=False)
    for path, content in first.items():
        assert path in lost or path.stat().st_mtime_ns == stamps[path]
        assert path.read_bytes() == content or path in lost
    for path in lost:
        assert path.exists()


def test_two_workers_make_the_shards_of_one(written, tmp_path):
    model, samples, at = written
    given = (at / "bank", samples, model, SETTINGS)
    for out, workers in (("one", [(0, 1)]), ("two", [(1, 2), (0, 2)])):
        jobs = [(tmp_path / out / name, PASSES[name], name) for name in TOGETHER]
        for worker in workers:
            compute_together(jobs, *given, worker=worker, progress=False)
    for path in (tmp_path / "one").rglob("*.parquet"):
        assert (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes() == path.read_bytes()


QUESTION = "Bulletin: {source} Summary: {summary} Is the summary true?"


def test_p_true_reads_each_question_once(written, prefills, tmp_path):
    model, samples, at = written
    fw.check_reading(model)
    prefills[0] = 0
    asked = (at / "bank", samples, model, QUESTION, SETTINGS)
    got = read_statistics(compute_p_true(tmp_path / "asked", *asked, progress=False))
    once, prefills[0] = prefills[0], 0
    settings = replace(checkpoint_settings(model, SETTINGS), max_new_tokens=1)
    texts = read_bank(at / "bank").query("kind == 'greedy'")["text"]
    questions = [
        question_prompt(model, insert_summary(QUESTION, text), source, settings)[0]
        for text, source in zip(texts, samples["source"])
    ]
    words = [single_token_id(model, word) for word in ("True", "False")]
    pairs = [(ids, [word]) for ids in questions for word in words]
    raw, processed = (fw.score_tokens(model, pairs, logits=logits) for logits in ("raw", "processed"))
    assert prefills[0] == 2 * once == 2 * sum(map(len, questions))
    for column, want in (("true", raw[::2]), ("false", raw[1::2]), ("true_processed", processed[::2])):
        want = np.concatenate([reading.logp for reading in want])
        np.testing.assert_allclose(got[column], want, rtol=0, atol=1e-6, err_msg=column)
