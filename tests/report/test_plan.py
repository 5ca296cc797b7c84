"""`uetrust plan`: what a profile fills, needs and costs, before anything is loaded."""

# ruff: noqa: F811

import json

import pytest

from tests.helpers.plan import offline  # noqa: F401
from uetrust.cli.cli import main
from uetrust.nlg.judge import DIMENSION_DEFINITIONS, PROMPT_FAMILIES, judge_prompt
from uetrust.papers.he2024.own_tables import REGISTERED_METRICS
from uetrust.report import plan as p
from uetrust.scoring.costs import TOKENS_PER_WORD, dataset_lengths


def printed(capsys, *words):
    assert main(["plan", *words]) == 0
    return capsys.readouterr().out


def test_the_profile_paper_fills_every_cell_of_tables_3_to_9(capsys):
    found = json.loads(printed(capsys, "paper", "--json"))
    assert found["metrics"] == list(REGISTERED_METRICS) and len(found["methods"]) == 14
    assert (found["cells_filled"], found["cells"]) == (960, 960) and not found["stand_ins"]
    assert [bank["sources"] for bank in found["banks"]] == [1906] * 3 + [11334] * 3 + [100]
    servers = {server["name"]: server for server in found["servers"]}
    assert servers["gpt-judge"]["requests"] == 20 * (3 * 1906 + 3 * 11334 + 100)
    llama = next(entry for entry in found["checkpoints"] if "Llama-2-7b" in entry["name"])
    assert llama["gated"] and not llama["at_hand"] and llama["bytes"] == 2 * 6738 * 10**6


def test_a_profile_without_a_judge_fills_no_judged_cell(monkeypatch):
    plan = p.bank_plan("paper", "aeslc--gpt-3.5")
    unjudged = plan.__class__(**plan.__dict__ | dict(metric_models=plan.metric_models[:-1]))
    cells = p._fillable_cells({"aeslc--gpt-3.5": unjudged}).query("table == 'T5'")
    assert set(cells.loc[~cells["filled"], "row"].str.partition("-GPT")[0]) == {
        "wo",
        "wi-gt",
        "wi-in",
        "wi-ingt",
    }
    assert cells.loc[~cells["filled"], "why"].str.contains("a model for 'judge'").all()


@pytest.mark.parametrize(
    "profile,paper",
    [("ice", "ICE"), ("fflm", "FFLM"), ("narcissism", "Narcissism"), ("threshold", "Schroedinger")],
)
def test_other_papers_say_which_of_their_cells_are_filled_and_why_not(profile, paper, capsys):
    tables = json.loads(printed(capsys, profile, "--json"))["other_papers"]
    assert all(
        table["paper"].startswith(paper) and 0 <= table["filled"] <= table["cells"] for table in tables
    )
    assert 0 < sum(table["filled"] for table in tables) < sum(table["cells"] for table in tables)
    assert all(table["lacking"] for table in tables if table["filled"] < table["cells"])


def test_what_is_not_to_be_had_is_listed_at_once(capsys):
    assert main(["plan", "paper", "--check"]) == 2
    message = capsys.readouterr().err
    for name in (
        "meta-llama/Llama-2-7b-chat-hf: not in the cache",
        "holds no key",
        "mediasum/news_dialogue.json",
    ):
        assert name in message
    assert main(["plan", "smoke", "--check"]) == 0


def test_a_gated_checkpoint_says_what_to_accept(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(p, "hub_problem", lambda: "")
    monkeypatch.setattr(p, "_has_token", lambda: False)
    problems = p.run_plan("paper").problems
    gated = [problem for problem in problems if "accept its licence" in problem]
    assert len(gated) == 1 and "https://huggingface.co/meta-llama/Llama-2-7b-chat-hf" in gated[0]


def test_an_unknown_card_is_refused(capsys):
    assert main(["plan", "smoke", "--card", "h1000"]) == 2
    assert "no card is called 'h1000'" in capsys.readouterr().err


def test_checkpoints_that_a_card_does_not_hold_are_named_with_the_number_of_cards(capsys):
    "Llama-13b has 13,016 million weights of 2 bytes: 26 GB, and a T4 gives 0.9 x 16 = 14.4 GB to weights"
    line = "huggyllama/llama-13b has more weights than one t4 holds: device_map = auto divides it over 2\n"
    assert line in printed(capsys, "fflm", "--card", "t4")
    assert json.loads(printed(capsys, "fflm", "--json"))["too_large"] == {}


@pytest.mark.parametrize("bank", ["aeslc--gpt-3.5", "xsum--gpt-3.5", "tofueval--released"])
def test_a_request_to_the_judge_is_as_long_as_its_instructions_and_the_texts_that_it_shows(bank):
    plan = p.bank_plan("paper", bank)
    _, requests, tokens, _ = p._judge_requests_of(plan)
    texts = dataset_lengths(plan.data, 0, plan.generator.decoding.max_new_tokens)
    tokens_of = dict(hypothesis=texts.summary, source=texts.source, reference=texts.reference)
    expected, empty = 0, dict.fromkeys(tokens_of, "")
    for name, family in PROMPT_FAMILIES.items():
        for dim in DIMENSION_DEFINITIONS:
            words = judge_prompt(name, dim, empty)[0]["content"].split()
            expected += sum(tokens_of[text] for text in family.shown) + TOKENS_PER_WORD * len(words)
    assert tokens / requests == pytest.approx(expected / 20, rel=0.2)  # Digits and tags are more tokens
