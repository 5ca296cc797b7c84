"""Every profile end to end, on stand-ins of the real classes: banks, scores, pages, tables.

Run by `make test-all`, because it takes minutes, and alone by `make profiles`. Nothing of a profile is left
out but its sizes: the checkpoints are tiny models of the transformers classes that the profile names, the
datasets are files of bulletins, and every server is a local one.
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.paths import ROOT
from tests.helpers.stand_ins import replaced, save_stand_ins, stand_in_folders
from uetrust.cli.notebooks import profile_jobs
from uetrust.core import settings as s
from uetrust.data.bulletins import bulletins
from uetrust.generation.serve import running_server
from uetrust.models.load import load_model
from uetrust.papers.deviations.beside_print import beside_print

pytestmark = pytest.mark.long

TEXTS = 8


def written_sources(folder):
    "Files of bulletins in the place of every dataset"
    folder.mkdir()
    for split, n in (("test", TEXTS), ("train", TEXTS)):
        table = bulletins(split, n)[["id", "source", "reference"]]
        table.to_json(folder / f"{split}.jsonl", orient="records", lines=True)


def small_settings(text, folder, url):
    "settings.ini with other sizes, datasets and servers; everything else stays"
    lines, section = [], ""
    served = {part.partition("]")[0] for part in text.split("\n[") if "\nendpoint = " in part}
    for line in text.splitlines():
        section = line if line.startswith("[") else section
        key = line.partition(" =")[0]
        if section.startswith("[dataset.") and key in ("data", "train", "background"):
            split = "test" if key == "data" else "train"
            line = f"{key} = {folder / f'{split}.jsonl'}"
        if key == "model" and section.strip("[]") in served:
            line = "model = stand-in"
        if key == "endpoint":
            line = f"endpoint = {url}"
        if key in ("key_env", "price_in", "price_out", "budget"):
            line = f"{key} ="
        if key == "stored":  # Texts about TofuEval's dialogues, for which bulletins stand in
            line = "like = gpt-3.5"
        if key == "metric_models":  # The released prompts are fetched, and there is no network
            line = line.replace("server:gpt-judge,he2024", "server:gpt-judge")
        if key == "items" and section.startswith("[profile."):
            line = f"items = {TEXTS}"
        lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    "A project whose settings.ini is ours, with stand-ins"
    d = tmp_path_factory.mktemp("project")
    written_sources(d / "sources")
    root = s.root()
    for name in ("nbs", "data"):
        (d / name).symlink_to(root / name)
    names = save_stand_ins(d / "models")
    judge = load_model(names["meta-llama/Llama-2-7b-chat-hf"])
    ends = range(0, judge.model.config.vocab_size, 4)  # Random weights would never end a reply
    judge.model.generation_config.eos_token_id = list(ends)  # and one that is cut has no grade
    with running_server(judge, "stand-in") as url:
        text = small_settings(replaced((root / "settings.ini").read_text(), names), d / "sources", url)
        (d / "settings.ini").write_text(text)
        yield d


def executed(job, profile):
    "Cells of a page of a profile, run in this process with its parameters"
    import matplotlib.pyplot as plt

    known, code = s.profile(profile), []
    for cell in json.loads(Path(job.notebook).read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        code.append("".join(cell["source"]))
        if "parameters" in cell["metadata"].get("tags", []):
            names = {}
            exec(code[-1], names)
            given = {name: _typed(known[name], default) for name, default in names.items() if name in known}
            given |= dict(profile=profile) | job.values
            code.append("\n".join(f"{name} = {value!r}" for name, value in given.items()))
    names = {"__name__": "page", "display": lambda *shown: None}
    for i, cell in enumerate(code):
        exec(compile(cell, f"{job.notebook}, code cell {i}", "exec"), names)
    plt.close("all")
    return names


def _typed(text, default):
    from uetrust.cli.notebooks import typed_values

    return typed_values([f"x={text}"])["x"] if not isinstance(default, str) else text


def test_paper_fills_all_cells_of_tables_3_to_9(here, tmp_path):
    from uetrust.papers.bulletins.inputs import page_inputs
    from uetrust.papers.he2024.own_tables import PAPER_MODELS, bank_of_table, compare_with_print, read_results
    from uetrust.report.export import export_run

    banks = page_inputs("paper", s.profile_settings("paper").banks)
    assert len(banks) == 7
    results = read_results(s.out_dir("paper"), bank_of_table(PAPER_MODELS))
    cells, cover = compare_with_print(results)
    names = cells.drop_duplicates(["table", "row"])
    assert names["row"].nunique() == 31 and cover["printed"].sum() == 960
    constant = (
        cover["printed"].sum() - cover["compared"].sum()
    )  # Scores of random models may be the same for all
    assert constant <= 0.6 * 960, cover
    folder = export_run("paper", tmp_path / "out", figures=False)
    assert len(list((folder / "tables").glob("table*_beside.csv"))) == 7


def test_a_first_hour_ends_with_expected_got_and_which_deviation(project, tmp_path):
    "`make reproduce PROFILE=paper ITEMS=4`, with one of its banks"
    for name in ("nbs", "data", "models", "sources"):
        (tmp_path / name).symlink_to(project / name)
    text = (project / "settings.ini").read_text()
    banks = s.profile("paper")["banks"]
    assert text.count(banks) == 1
    (tmp_path / "settings.ini").write_text(text.replace(banks, "aeslc--bart-large-cnn"))
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / ".library").touch()
    words = [sys.executable, str(ROOT / "scripts" / "reproduce.py"), "paper-4", "2"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [run.name for run in (tmp_path / "runs").glob("paper*")] == ["paper-4"]
    expected = pd.read_csv(tmp_path / "runs" / "paper-4" / "tables" / "expected.csv")
    assert set(expected["table"]) == {7} and expected["printed"].notna().all()
    texts = pd.read_csv(tmp_path / "runs" / "paper-4" / "tables" / "cross--aeslc--bart-large-cnn_prr.csv")
    assert texts["n"].max() == 4
    fields = expected.query("row == 'ROUGE-L' and column == 'MD'")["deviations"]
    assert all("number.texts" in named for named in fields)
    assert "printed numbers are in the 95 % interval" in done.stdout.replace("\n", " ")


OTHERS = {  # Profile -> parameters that take bulletins in the place of files of other people
    "ice": dict(ice_texts="bulletin:test:12", ice_k="0 1", ice_sets=1, ice_held=2, ice_judged=4),
    "fflm": dict(fflm_detection="bulletin:6", fflm_rating="bulletin:6", complete=False),
    "people-read": dict(read_sets="bulletin", read_items=8),
    "narcissism": dict(draws=50),
    "threshold": dict(repeats=2),
}


def narcissism(monkeypatch, names):
    "Every evaluator of the study is a stand-in of its family; people rated bulletins"
    from uetrust.nlg.likelihood import NARCISSISM_MODELS
    from uetrust.papers.narcissism import live

    of_family = dict(BART="facebook/bart-large-cnn", T5="t5-large", GPT="openai-community/gpt2-large")
    of_family["FLAN-T5"] = "google/flan-t5-xl"
    for name, model in NARCISSISM_MODELS.items():
        if model.runs == "hub":
            folder = names[of_family[model.family]]
            monkeypatch.setitem(NARCISSISM_MODELS, name, replace(model, checkpoint=folder))
    rated = bulletins("test", TEXTS)[["source", "reference"]].assign(generator="BART", human=range(TEXTS))
    rated = rated.assign(document=range(TEXTS), hypothesis=rated["reference"].str.upper())
    monkeypatch.setattr(live, "human_scored_summaries", lambda name: rated)


def threshold(monkeypatch, names):
    "The nine sets of TRUE are bulletins, every second one with the summary of another"
    from uetrust.evaluation.thresholds import TRUE_DOMAINS
    from uetrust.papers.threshold import live

    table = bulletins("test", TEXTS)[["id", "source", "reference"]].rename(
        columns=dict(reference="hypothesis")
    )
    label = [i % 2 for i in range(TEXTS)]
    own = list(table["hypothesis"])
    texts = [own[i if label[i] else i - 1] for i in range(TEXTS)]
    table = table.assign(hypothesis=texts, label=label)
    sets = pd.concat([table.assign(dataset=name) for name in TRUE_DOMAINS], ignore_index=True)
    monkeypatch.setattr(live, "true_sets", lambda *given, **options: sets)


SUBSTITUTES = dict(narcissism=narcissism, threshold=threshold)
TOUCHED = dict(narcissism={2, 3}, threshold={1})  # Tables that a run on bulletins can stand beside
MOST_PAGES = 2  # Of a profile; the pages of threshold differ in mode and calibrator only


@pytest.mark.parametrize("profile", OTHERS)
def test_a_study_of_another_paper_runs(here, profile, monkeypatch):
    known = s.profile(profile)
    if profile in SUBSTITUTES:
        SUBSTITUTES[profile](monkeypatch, stand_in_folders(here / "models"))
    changed = {name: value for name, value in OTHERS[profile].items()}
    monkeypatch.setattr(s, "profile", lambda name="demo": known | {k: str(v) for k, v in changed.items()})
    jobs = profile_jobs(profile)
    assert jobs
    for job in jobs[:MOST_PAGES]:
        job.values.update({name: value for name, value in changed.items()})
        names = executed(job, profile)
        assert list(s.out_dir(profile).rglob("*.csv")), names["page"].name
    if profile in TOUCHED:
        beside = beside_print(profile)
        assert set(beside["table"]) <= TOUCHED[profile] and beside["printed"].notna().all(), beside
