"""Quality scores of a bank: made once, read again, and named when damaged."""

import shutil

import pandas as pd
import pytest

from uetrust.core.settings import profile, root
from uetrust.core.store import BadShard
from uetrust.data.datasets import load_samples
from uetrust.generation.bank import bank_provenance, bank_row, fill_bank
from uetrust.scoring import cache as ql
from uetrust.scoring.metrics import compute_metrics
from uetrust.statistics.texts import STATISTICS
from uetrust.statistics.texts.providers import shipped_models


# Quality of a bank
def known(scores):  # What is known besides the table
    return {name: value for name, value in vars(scores).items() if name != "table"}


@pytest.fixture
def bank(tmp_path):
    s = load_samples("bulletin:test:3")

    def lead(part):
        return [bank_row(r.id, "greedy", 0, r.source.split(". ")[0] + ".") for r in part.itertuples()]

    folder = tmp_path / "banks" / "one"
    about = bank_provenance("bulletin", "lead", "", "", {}, dict(greedy=1))
    fill_bank(folder / "texts", s, about, lead, progress=False)
    return folder, s


NAMES = ["rouge_l", "summac_zs", "mnli_doc", "bertscore_f1", "factcc"]


def test_quality_of_a_bank_is_that_of_its_texts(bank):
    t = ql.cached_metrics_of_bank(*bank, shipped_models(), NAMES, progress=False)
    want = compute_metrics(ql.greedy_texts(*bank), shipped_models(), NAMES, progress=False)

    def wide(x):
        return x.pivot(index="sample", columns="name", values="value")[NAMES[:4]]

    pd.testing.assert_frame_equal(wide(t.table), wide(want.table))
    assert known(t) == known(want)
    assert set(t.missing) == {"factcc"}


def test_a_run_that_breaks_goes_on_where_it_was(bank, monkeypatch):
    calls = []

    def breaks(texts, models, names, *a, **kw):
        calls.append(names)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return compute_metrics(texts, models, names, *a, **kw)

    monkeypatch.setattr(ql, "compute_metrics", breaks)
    with pytest.raises(KeyboardInterrupt):
        ql.cached_metrics_of_bank(*bank, shipped_models(), NAMES, progress=False)
    t = ql.cached_metrics_of_bank(*bank, shipped_models(), NAMES, progress=False).table
    assert (
        sum(names == calls[0] for names in calls) == 1
        and calls[1] == calls[2]
        and set(t["name"]) == set(NAMES[:4])
    )
    n = len(calls)
    assert (
        ql.cached_metrics_of_bank(*bank, shipped_models(), NAMES, progress=False).table.equals(t)
        and len(calls) == n
    )


def test_other_weights_are_read_anew(bank, tmp_path):
    shutil.copytree(root() / "data/models/tiny-nli", tmp_path / "nli")

    def asked():
        return ql.cached_metrics_of_bank(
            *bank, dict(nli=tmp_path / "nli"), ["mnli_doc"], progress=False
        ).table, [p.name for p in (bank[0] / "quality").iterdir()]

    t, before = asked()
    (tmp_path / "nli" / "note.txt").write_text("another revision")
    again, after = asked()
    assert again.equals(t) and len(before) == 1 and len(after) == 2 and set(before) < set(after)


def test_a_bank_of_equal_texts_has_the_scores_of_the_one_beside_it(bank, monkeypatch):
    folder, samples = bank
    twin = shutil.copytree(folder, folder.with_name("two"))
    t = ql.cached_metrics_of_bank(*bank, {}, ["rouge_l", "bleu"], progress=False)
    monkeypatch.delattr(ql, "compute_metrics")
    again = ql.cached_metrics_of_bank(twin, samples, {}, ["rouge_l", "bleu"], progress=False)
    files = [{f.name: f.read_bytes() for f in (at / "quality").glob("*.parquet")} for at in (folder, twin)]
    assert (
        again.table.equals(t.table)
        and known(again) == known(t)
        and files[0] == files[1]
        and len(files[0]) == 1
    )
    next((twin / "quality").glob("*.parquet")).unlink()
    (f,) = (folder / "quality").iterdir()
    f.write_bytes(f.read_bytes()[:-40])
    with pytest.raises(BadShard, match="banks/one/quality"):
        ql.cached_metrics_of_bank(twin, samples, {}, ["rouge_l", "bleu"], progress=False)


def test_a_damaged_file_says_how_to_rebuild_it(bank):
    ql.cached_metrics_of_bank(*bank, {}, ["rouge_l"], progress=False)
    (f,) = (bank[0] / "quality").iterdir()
    f.write_bytes(f.read_bytes()[:-40])
    with pytest.raises(BadShard, match=f"{f.name}.*delete"):
        ql.cached_metrics_of_bank(*bank, {}, ["rouge_l"], progress=False)


@pytest.mark.parametrize("name", ["demo", "smoke", "aeslc-tiny", "paper"])
def test_every_profile_names_evaluators_that_are_known(name):
    e = ql.metric_models(profile(name)["metric_models"].split())
    assert set(e) <= {*STATISTICS, *(m.family for m in STATISTICS.values())} and bool(e) == (
        name != "aeslc-tiny"
    )
