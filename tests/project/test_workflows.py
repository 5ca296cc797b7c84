"""Workflows, the container of an editor: they parse, and what they call exists."""

import json
import os
import re
import tomllib

import pytest
import yaml

from tests.helpers.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.M))


def load(path):
    "A workflow; YAML takes the key `on` for true"
    told = yaml.safe_load(path.read_text())
    return told | {"on": told.pop(True)}


def steps(path):
    return [step for job in load(path)["jobs"].values() for step in job["steps"]]


def unknown(command):
    "What a shell command calls that the project lacks: targets of make, and programs of the checkout"
    targets = re.findall(r"(?:^|&&|;)\s*make ([\w-]+)", command, re.M)
    programs = re.findall(r"(?:^|&&|;)\s*(\.\w+/[\w/.-]+)", command, re.M)
    missing = [name for name in programs if not os.access(ROOT / name, os.X_OK)]
    return [name for name in targets if name not in TARGETS] + missing


def image(told):
    "Python in the image is the oldest that the package takes"
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    return told == f"python:{needed.removeprefix('>=')}-bookworm"


def test_unknown_calls_are_noticed():
    assert unknown("make docs\nmake dogs && .ci/run; .ci/walk --fast") == ["dogs", ".ci/walk"]


def test_one_workflow_runs_what_ci_runs_on_push_and_pull_request_and_one_builds_the_site():
    ci, docs = (load(path) for path in WORKFLOWS)
    assert set(ci["on"]) == {"push", "pull_request"} and set(docs["on"]) == {"push", "workflow_dispatch"}
    assert ".ci/run" in [step.get("run") for step in steps(WORKFLOWS[0])]
    assert any("make docs" in step.get("run", "") for step in steps(WORKFLOWS[1]))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_a_workflow_calls_exists_and_needs_no_secret(path):
    assert load(path)["permissions"] == {"contents": "read"} and "secrets" not in path.read_text()
    assert all(image(job["container"]) for job in load(path)["jobs"].values())
    for step in steps(path):
        assert ("uses" in step) != ("run" in step)
        assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/checkout@v4"))
        assert unknown(step.get("run", "")) == []


def test_the_container_makes_the_environment():
    told = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert image(told["image"]) and told["postCreateCommand"] == "make setup"
    assert unknown(told["postCreateCommand"]) == []
    assert told["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"] == ".venv/bin/python"
