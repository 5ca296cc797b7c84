"""Scores of multiple-choice documents, computed in a task that lm-evaluation-harness runs."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers.clients import programs, run_client
from tests.helpers.paths import ROOT
from uetrust import prr_value
from uetrust.cli.cli import main

pytestmark = pytest.mark.long
UTILS = """from uetrust.scoring.plugins.harness import choice_scores, prr_of_pairs


def process_results(doc, results):
    return choice_scores(results, doc["answer"])
"""
TASK = """task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
doc_to_text: "{{{{context}}}}"
doc_to_target: {target}
"""
CHOOSE = """output_type: multiple_choice
doc_to_choice: "{{choices}}"
process_results: !function utils.process_results
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: choice_entropy, aggregation: mean, higher_is_better: false}
  - {metric: prr, aggregation: !function utils.prr_of_pairs, higher_is_better: true}
"""
WRITE = """output_type: generate_until
repeats: 3
generation_kwargs: {until: ["@"], do_sample: true, temperature: 1.0}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    "Results of the task that chooses, and the file of each task's samples"
    folder = tmp_path_factory.mktemp("tasks")
    rows = [
        dict(context=f"Question {i}:", choices=list("abc"), answer=i % 3, reference="lol") for i in range(40)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "utils.py").write_text(UTILS)
    for name, target, more in [("choose", "answer", CHOOSE), ("write", "reference", WRITE)]:
        head = TASK.format(name=name, target=target, file=folder / "rows.jsonl")
        (folder / f"{name}.yaml").write_text(head + more)
    env = dict(PYTHONPATH=str(ROOT), HOME=str(folder))
    results = run_client(programs(), "run_harness.py", folder, folder / "out", **env)
    return results, {name: next(folder.rglob(f"samples_{name}_*.jsonl")) for name in ("choose", "write")}


def test_the_harness_shows_prr_and_the_audit_reads_its_samples(run, capsys):
    results, samples = run
    table = pd.read_json(samples["choose"], lines=True)
    logp = np.array([[float(logp) for logp, _ in replies] for replies in table["filtered_resps"]])
    p = np.exp(logp) / np.exp(logp).sum(1, keepdims=True)
    np.testing.assert_allclose(table["choice_entropy"], -(p * np.log(p)).sum(1))
    assert (table["acc"] == (p.argmax(1) == np.arange(40) % 3)).all()
    assert results["prr,none"] == pytest.approx(prr_value(table["acc"], table["choice_entropy"]))
    words = ["--id", "doc_id", "--quality", "acc", "--uncertainty", "choice_entropy"]
    assert main(["audit", str(samples["choose"]), *words]) == 0
    assert f"Under acc, choice_entropy is first: PRR {results['prr,none']:.2f}" in capsys.readouterr().out


def test_repeats_of_the_harness_are_samples(run, tmp_path):
    out = tmp_path / "scores.csv"
    assert main(["score", str(run[1]["write"]), "--method", "lex_sim", "--out", str(out)]) == 0
    assert (pd.read_csv(out)["lex_sim"] == -1).all()
