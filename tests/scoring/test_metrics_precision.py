"""Number formats: what models compute in, what keys and pages say about it, and what is refused."""

import json
import shutil

import pandas as pd
import pytest

from tests.helpers.stand_ins import shipped
from uetrust.cli.cli import main
from uetrust.core.settings import DTYPE_PRESETS, DTYPES, parse_dtypes
from uetrust.data.bulletins import bulletins
from uetrust.papers.bulletins.inputs import precision_words
from uetrust.report.plan import plan_lines, run_plan
from uetrust.scoring import cache
from uetrust.scoring.generators import bank_plan, generator_settings
from uetrust.scoring.metrics import compute_metrics
from uetrust.statistics.texts import STATISTICS

METRICS = ["bart_score", "summac_zs", "mnli_doc", "bertscore_f1", "unieval_consistency", "rouge_l"]
FARTHEST = dict(float32=0.0, bfloat16=0.1, float16=0.02)  # Largest difference, in units of the spread


@pytest.fixture(scope="module")
def texts():
    rows = bulletins("test", 6)
    return pd.DataFrame(dict(id=rows["id"], source=rows["source"], reference=rows["reference"])).assign(
        hypothesis=rows["reference"].str.split().str[:-3].str.join(" ")
    )


@pytest.fixture(scope="module")
def models():
    pairs = dict(bart="bart", nli="nli", bertscore="encoder", unieval="unieval")
    return {group: str(shipped(name)) for group, name in pairs.items()}


def scores_in(texts, models, **how):
    found = compute_metrics(texts, models, METRICS, progress=False, device="cpu", **how)
    return found, found.table.pivot(index="sample", columns="name", values="value")


@pytest.mark.parametrize("dtype", DTYPES)
def test_scores_of_each_format_are_near_those_of_float32_and_say_theirs(texts, models, dtype):
    _, exact = scores_in(texts, models)
    found, values = scores_in(texts, models, dtype=dtype)
    assert values.notna().all(axis=None) and set(values) == set(METRICS)
    assert set(found.precision.values()) == {dtype} and set(found.precision) == set(found.models)
    off = (values - exact).abs()
    assert (off.max() / exact.std()).max() <= FARTHEST[dtype], (off.max() / exact.std()).to_dict()
    assert (off["rouge_l"] == 0).all() and (off.drop(columns="rouge_l") > 0).any(axis=None) == (
        dtype != "float32"
    )


def test_groups_of_one_checkpoint_may_differ(texts, models):
    found, values = scores_in(texts, models, metric_dtype="he2024 summac=float16")
    assert found.precision["summac"] == "float16" and found.precision["mnli"] == "float32"
    _, exact = scores_in(texts, models)
    assert values["mnli_doc"].equals(exact["mnli_doc"]) and not values["summac_zs"].equals(exact["summac_zs"])


def test_a_stored_score_of_one_format_is_never_taken_for_another(texts, models, tmp_path):
    def cached(**how):
        return cache.cached_metrics(tmp_path, texts, models, METRICS, False, device="cpu", **how)

    plain = cached()
    files = set(tmp_path.iterdir())
    assert cached(dtype="float32").table.equals(plain.table) and set(tmp_path.iterdir()) == files
    half = cached(metric_dtype="bart=bfloat16")
    assert len(set(tmp_path.iterdir()) - files) == 1, "only the metric that this group computes"
    assert half.precision == plain.precision | dict(bart="bfloat16")
    assert cached(metric_dtype="bart=bfloat16").table.equals(half.table) and not half.table.equals(
        plain.table
    )
    about = cache.models_about(models)
    assert about == cache.models_about(models, "float32") != cache.models_about(models, "float16")


def test_presets_name_the_formats_of_the_papers_code():
    he2024, fflm = (bank_plan("paper", "aeslc--bart-large-cnn").metric_dtype, DTYPE_PRESETS["fflm"])
    assert parse_dtypes(he2024) == {"": "float32", "summac_he2024": "float16"} and fflm["fflm"] == "float16"
    assert {group for preset in DTYPE_PRESETS.values() for group in preset} - {""} <= set(STATISTICS)
    wanted = {"bart-large-cnn": "float32", "llama-2-7b-chat": "bfloat16", "tiny-bart": ""}
    assert {name: generator_settings(name).dtype for name in wanted} == wanted


def test_the_plan_says_which_format_and_what_needs_converting():
    plan = run_plan("paper")
    said = "\n".join(plan_lines(plan))
    assert "precision: bart-large-cnn float32; llama-2-7b-chat bfloat16; metric models float32" in said
    needs = [line for line in plan.problems if "needs `uetrust convert" in line]
    assert len(needs) == 4 and f"missing here: {len(plan.problems)}" in said
    assert any("needs `uetrust convert MingZhong/unieval-sum`: the hub has pickled" in line for line in needs)
    assert plan.to_dict()["precision"]["metrics"] == DTYPE_PRESETS["he2024"]
    assert "float32 (on a GPU half precision)" in "\n".join(plan_lines(run_plan("smoke")))


def test_a_wrong_name_gets_what_works(tmp_path, capsys):
    table = tmp_path / "texts.csv"
    table.write_text("id,hypothesis,reference\na,It rained.,It rained.\n")
    for words, expected in (
        ("float99", "'float99' is no number format: write float32, bfloat16, float16, GROUP=FORMAT"),
        ("barts=float16", "no group of statistics is called barts, so it has no number format; there are"),
    ):
        assert main(["score", str(table), "--metric", "rouge_l", "--dtype", words]) == 2
        error = capsys.readouterr().err
        assert expected in error and "Traceback" not in error


def test_score_takes_formats(tmp_path, capsys):
    table, given = tmp_path / "texts.csv", ["--metric", "bart_score", "--model", f"bart={shipped('bart')}"]
    table.write_text("id,hypothesis,source,reference\na,It rained.,It rained all day.,Rain.\n")
    values = []
    for dtype in ("float32", "bart=bfloat16"):
        out = tmp_path / "out.csv"
        assert main(["score", str(table), *given, "--dtype", dtype, "--out", str(out)]) == 0
        assert ("note: bart in bfloat16" in capsys.readouterr().out) == ("bfloat16" in dtype)
        values.append(pd.read_csv(out)["bart_score"].item())
    assert 0 < abs(values[0] - values[1]) < 0.1


SETTINGS = """
[common]
[dataset.bulletin]
data = bulletin:test:3
[generator.g]
model = data/models/tiny-bart
samples = 1
max_new_tokens = 8
passes = conditional
dtype = {dtype}
[profile.p]
banks = bulletin--g
nli = data/models/tiny-nli
metric_models = nli=data/models/tiny-nli
metric_dtype = {metric_dtype}
"""


def project(folder, monkeypatch, **given):
    from uetrust.core import settings

    (folder / "nbs").mkdir(exist_ok=True)
    (folder / "data" / "models").mkdir(parents=True, exist_ok=True)
    for name in ("tiny-bart", "tiny-nli"):
        if not (folder / "data" / "models" / name).exists():
            shutil.copytree(shipped(name.removeprefix("tiny-")), folder / "data" / "models" / name)
    (folder / "settings.ini").write_text(SETTINGS.format(**given))
    monkeypatch.chdir(folder)
    settings.root.cache_clear()
    settings._read.cache_clear()


@pytest.fixture
def fresh():
    from uetrust.core import settings

    yield
    settings.root.cache_clear()
    settings._read.cache_clear()


def test_a_bank_has_the_formats_of_its_profile(tmp_path, monkeypatch, fresh, capsys):
    project(tmp_path, monkeypatch, dtype="bfloat16", metric_dtype="nli=float16")
    assert main(["bank", "fill", "bulletin--g", "--profile", "p", "--device", "cpu"]) == 0
    folder = tmp_path / "runs" / "p" / "banks" / "bulletin--g"
    about = {step: json.loads((folder / step / name).read_text())["about"]
             for step, name in (("texts", "bank.json"), ("conditional", "readings.json"),
                                ("entailments", "readings.json"))}  # fmt: skip
    assert about["texts"]["settings"]["dtype"] == about["conditional"]["dtype"] == "bfloat16"
    assert about["entailments"]["dtype"] == "float16"
    assert precision_words(bank_plan("p", "bulletin--g")) == " (bfloat16)", "the line of a page's origin"
    project(tmp_path, monkeypatch, dtype="", metric_dtype="")
    assert main(["bank", "fill", "bulletin--g", "--profile", "p", "--device", "cpu"]) == 2
    assert "dtype" in capsys.readouterr().err, "what was written in another format is not continued"


@pytest.mark.parametrize(
    "given, expected",
    [
        (dict(dtype="half", metric_dtype=""), "[generator.g] dtype = half"),
        (dict(dtype="", metric_dtype="nil=float16"), "[profile.p] metric_dtype = nil=float16: no group"),
    ],
)
def test_a_wrong_format_in_the_settings_is_named(tmp_path, monkeypatch, fresh, capsys, given, expected):
    project(tmp_path, monkeypatch, **given)
    assert main(["bank", "fill", "bulletin--g", "--profile", "p"]) == 2
    error = capsys.readouterr().err
    assert expected in error and "float16" in error and "Traceback" not in error, error
