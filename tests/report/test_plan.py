"""`uetrust plan`: what a profile fills, needs and costs, before anything is loaded."""

# ruff: noqa: F811

import json
from dataclasses import replace
from itertools import chain

import pytest

from tests.helpers.consistency import lines
from tests.helpers.plan import offline  # noqa: F401
from tests.helpers.released import released_prompts  # noqa: F401
from uetrust.cli.cli import main
from uetrust.core import settings
from uetrust.generation.endpoint import Endpoint
from uetrust.nlg.judge import DIMENSION_DEFINITIONS, PROMPT_FAMILIES, judge_prompt
from uetrust.papers.fflm.plots import all_texts
from uetrust.papers.he2024.own_tables import REGISTERED_METRICS
from uetrust.papers.ice import live as ice
from uetrust.report import plan as p
from uetrust.scoring.costs import TOKENS_PER_WORD, dataset_lengths

PRINTED = dict(paper=960, ice=72, fflm=850, narcissism=100, threshold=959)  # Profile -> numbers of its paper


@pytest.fixture
def project(tmp_path):
    "A checkout with the notebooks and data of this one, and settings of its own"
    for name in ("nbs", "data"):
        (tmp_path / name).symlink_to(settings.root() / name)
    (tmp_path / "settings.ini").write_text((settings.root() / "settings.ini").read_text())
    return tmp_path


@pytest.fixture
def change(here):
    "A function that changes a text of settings.ini"

    def changed(old, new):
        path = here / "settings.ini"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        settings._read.cache_clear()

    return changed


def states(capsys, profile):
    found = json.loads(printed(capsys, profile, "--json"))
    return {state: found[state] for state in p.CELL_STATES}, {
        entry["what"]: entry["cells"] for entry in found["replaced"]
    }


def lay(folder, *names):
    "Empty files in place of those that are fetched by hand"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def printed(capsys, *words):
    assert main(["plan", *words]) == 0
    return capsys.readouterr().out


def test_the_profile_paper_has_all_metrics_methods_and_texts(capsys):
    found = json.loads(printed(capsys, "paper", "--json"))
    assert found["metrics"] == list(REGISTERED_METRICS) and len(found["methods"]) == 14
    assert found["cells"] == 960 and not found["stand_ins"]
    assert [bank["sources"] for bank in found["banks"]] == [1906] * 3 + [11334] * 3 + [100]
    servers = {server["name"]: server for server in found["servers"]}
    assert servers["gpt-judge"]["requests"] == 20 * (3 * 1906 + 3 * 11334 + 100)
    llama = next(entry for entry in found["checkpoints"] if "Llama-2-7b" in entry["name"])
    assert llama["gated"] and not llama["at_hand"] and llama["bytes"] == 2 * 6738 * 10**6


@pytest.mark.parametrize("profile", PRINTED)
def test_every_printed_number_has_one_state_and_its_tables_sum_up(profile, capsys):
    found = json.loads(printed(capsys, profile, "--json"))
    tables = found["tables"] + found["other_papers"]
    assert sum(found[state] for state in p.CELL_STATES) == found["cells"] == PRINTED[profile]
    for state in p.CELL_STATES:
        assert sum(table[state] for table in tables) == found[state]
    lacking = {state: n for state, n in found.items() if state in p.CELL_STATES and n}
    text = printed(capsys, profile)
    for state, n in lacking.items():
        assert f"  {state} {n:,}: {p.CELL_STATES[state]}\n" in text
    for entry in found["replaced"]:
        assert f"    {entry['what']} ({entry['cells']:,})\n" in text
    assert all(table["lacking"] for table in tables if table["not_at_hand"])
    assert "filled" not in text and "cells_filled" not in found


def test_a_profile_without_a_judge_has_no_judged_cell():
    plan = p.bank_plan("paper", "aeslc--gpt-3.5")
    unjudged = plan.__class__(**plan.__dict__ | dict(metric_models=plan.metric_models[:-1]))
    cells = p._fillable_cells({"aeslc--gpt-3.5": unjudged}).query("table == 'T5'")
    lost = cells[cells["state"] == "not_at_hand"]
    assert set(lost["row"].str.partition("-GPT")[0]) == {"wo", "wi-gt", "wi-in", "wi-ingt"}
    assert lost["why"].str.contains("a model for 'judge'").all()


def test_without_the_released_prompts_the_judged_cells_have_own_words(capsys, here, released_prompts):
    folder = released_prompts()
    lay(folder.parent, "mediasum/news_dialogue.json")
    whole, _ = states(capsys, "paper")
    for path in folder.iterdir():
        path.unlink()
    without, replaced = states(capsys, "paper")
    assert whole["own_wording"] == whole["not_at_hand"] == 0 and without["own_wording"] == 510
    assert sum(whole.values()) == sum(without.values()) == 960
    assert whole["equal"] - without["equal"] + whole["substitute"] - without["substitute"] == 510
    assert replaced["he2024_prompts/chatGPT.py is not at hand: a run fetches it, or stops"] == 190
    released_prompts(["wo"])
    assert states(capsys, "paper")[0]["own_wording"] == 510 - 190


def test_another_wording_is_our_own(capsys, change, released_prompts):
    released_prompts()
    equal = states(capsys, "paper")[0]["equal"]
    change("judge=server:gpt-judge,he2024", "judge=server:gpt-judge")
    own, replaced = states(capsys, "paper")
    assert own["own_wording"] == 490 and own["equal"] < equal  # The 20 others lack their dialogues
    assert replaced["the wording texts_first in place of the released prompts"] == 510


@pytest.mark.parametrize(
    "old, new, what, rows",
    [
        (
            "like = gpt-3.5\nbudget = 400",
            "like = gpt-4o-mini\nbudget = 400",
            "gpt-4o-mini in place of gpt-3.5-turbo",
            "-GPT-3.5",
        ),
        (
            "summac_he2024=microsoft/deberta-base-mnli",
            "summac_he2024=roberta-large-mnli",
            "roberta-large-mnli in place of microsoft/deberta-base-mnli",
            "SummaC",
        ),
        ("nli = microsoft/deberta-large-mnli", "nli = data/models/tiny-nli", "data/models/tiny-nli in", ""),
        ("preset = he2024\ndtype = float32\n", "dtype = float32\n", "decoding of", ""),
        ("data = aeslc:test:1906", "data = aeslc:test:100", "100 texts of AESLC in place of 1,906", ""),
    ],
)
def test_a_replaced_model_makes_a_substitute_of_an_equal_number(
    old, new, what, rows, capsys, change, released_prompts
):
    released_prompts()
    before, _ = states(capsys, "paper")
    change(old, new)
    after, replaced = states(capsys, "paper")
    assert (
        sum(n for text, n in replaced.items() if text.startswith(what))
        >= before["equal"] - after["equal"]
        > 0
    )
    worse = "stand_in" if "tiny" in what else "substitute"
    assert after[worse] > before[worse] and sum(after.values()) == 960
    plans = {name: p.bank_plan("paper", name) for name in settings.profile_settings("paper").banks}
    cells = p._fillable_cells(plans)
    touched = cells[[any(entry.what.startswith(what) for entry in found) for found in cells["replaced"]]]
    assert len(touched) and touched["row"].str.contains(rows).all()


def test_newly_generated_texts_are_no_texts_of_tofueval(here, released_prompts):
    released_prompts()
    new = replace(p.bank_plan("paper", "aeslc--gpt-3.5"), dataset="tofueval", data="tofueval:all:100")

    def found():
        cells = p._fillable_cells({new.name: new}).query("table == 'T9'")
        return cells["state"].value_counts().to_dict(), {entry.what for entry in chain(*cells["replaced"])}

    assert found()[0] == dict(not_at_hand=60)
    lay(here / "cache", "mediasum/news_dialogue.json")
    assert found() == (dict(substitute=60), {"newly generated texts in place of TofuEval's own"})


def test_opitz_numbers_of_anli_are_substitutes_where_the_sets_are_there(capsys, here, monkeypatch):
    monkeypatch.setenv("UETRUST_CACHE", str(here / "cache"))
    assert states(capsys, "threshold")[0]["not_at_hand"] == 739
    lay(here / "cache", *(name for name in p.BENCHMARK_FILES if not name.startswith("true_scores")))
    found, _ = states(capsys, "threshold")
    assert (found["equal"], found["substitute"]) == (430, 529)
    cells = p._other_paper_cells("threshold")
    columns = cells.loc[cells["state"] == "substitute", "column"]
    touched = columns.isin(["ANLI", "AVG", "mean"]) | columns.str.endswith("(rank)")
    assert touched.all() and set(cells.loc[cells["column"] == "ANLI", "state"]) == {"substitute"}


def test_ice_has_another_judge_and_fflm_guesses_two_readers(capsys, here, monkeypatch):
    found, replaced = states(capsys, "ice")
    assert (found["substitute"], found["equal"]) == (16 + 4, 8 + 8)  # ICE and CTC; BARTScore and UniEval
    assert replaced["meta-llama/Llama-3.1-8B in place of text-davinci-003"] == 16
    monkeypatch.setenv("UETRUST_CACHE", str(here / "cache"))
    lay(here / "cache", *p.BENCHMARK_FILES)
    found, replaced = states(capsys, "fflm")
    assert found["equal"] + found["substitute"] == 809
    assert sum(replaced.values()) == found["substitute"] == 70 + 42


def test_ctc_of_ice_is_by_embeddings_until_its_trained_aligner_is_here(capsys, change):
    by_embedding = {
        "ctc_embedding in place of ctc": 2,
        "ctc_embedding_relevance in place of ctc_relevance": 2,
    }
    assert by_embedding.items() <= states(capsys, "ice")[1].items()
    change("ctc=data/cache/models/ctc-d-cnndm,", "ctc=data/models/tiny-encoder,")
    assert by_embedding.keys() - states(capsys, "ice")[1].keys() == {"ctc_embedding in place of ctc"}
    change("ctc_relevance=data/cache/models/ctc-d-cnndm-ref,", "ctc_relevance=data/models/tiny-encoder,")
    assert not by_embedding.keys() & states(capsys, "ice")[1].keys()
    change("bart=facebook/bart-large-cnn unieval=MingZhong/unieval-sum bertscore", "bertscore")
    found = json.loads(printed(capsys, "ice", "--json"))
    assert {"what": "a model for 'bart'", "cells": 8} in found["lacking"]
    assert {"what": "a model for 'unieval'", "cells": 8} in found["lacking"]


def test_what_cannot_be_had_is_named_with_its_address(capsys):
    "Checkpoints that are converted by hand, and baselines that nothing here scores"
    for profile, name, address in (
        ("ice", "ctc-d-cnndm", "tanyuqian/ctc-gen-eval"),
        ("threshold", "factcc", "salesforce/factCC"),
        ("fflm", "feqa-answers", "esdurmus/feqa"),
    ):
        (line,) = [line for line in printed(capsys, profile).splitlines() if f"/{name}: " in line]
        assert f"says how to make it from what https://github.com/{address} links" in line
    lacking = {
        entry["what"]: entry["cells"] for entry in json.loads(printed(capsys, "fflm", "--json"))["lacking"]
    }
    (dae,) = [what for what in lacking if what.startswith("DAE: ")]
    assert (
        "Stanford CoreNLP" in dae
        and "https://github.com/tagoyal/dae-factuality" in dae
        and lacking[dae] == 14
    )
    assert any(what.startswith("FactCCCLS: a classifier that the authors of https://") for what in lacking)


def test_a_reader_that_the_repository_trained_is_a_stand_in(capsys, change):
    change("huggyllama/llama-7b", "data/models/tiny-llama")
    found, _ = states(capsys, "fflm")
    assert found["stand_in"] > 0 and sum(found.values()) == 850


def test_a_benchmark_that_is_not_named_is_not_at_hand(capsys, change):
    assert states(capsys, "narcissism")[0]["equal"] == 72
    change("human_benchmarks = summeval rose", "human_benchmarks = summeval")
    found, _ = states(capsys, "narcissism")
    assert (found["equal"], found["not_at_hand"]) == (36, 64)


def test_banks_of_the_repository_are_stand_ins(capsys):
    found, _ = states(capsys, "smoke")
    assert found["equal"] == found["substitute"] == 0 < found["stand_in"]


def test_converted_checkpoints_and_pipelines_that_are_not_here_are_named(capsys, monkeypatch):
    monkeypatch.setattr(p, "find_spec", lambda name: None)
    assert main(["plan", "threshold", "--check"]) == 2
    message = capsys.readouterr().err
    for folder in ("factcc", "bleurt-20"):
        assert f"checkpoint data/cache/models/{folder}: there is no such folder; the comment of" in message
    assert "pipeline en_core_web_sm: not installed: pip install spacy, then python -m spacy" in message
    monkeypatch.setattr(p, "find_spec", lambda name: "here")
    assert main(["plan", "threshold", "--check"]) == 2
    assert "pipeline" not in capsys.readouterr().err


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


def test_nine_sets_of_50_texts_have_450_and_the_hours_shrink_with_them(capsys):
    whole, few = (json.loads(printed(capsys, name, "--json")) for name in ("threshold", "threshold-50"))
    assert whole["study_texts"] == dict(threshold=23_858) and few["study_texts"] == dict(threshold=450)
    assert few["total"]["flops"] / whole["total"]["flops"] == pytest.approx(450 / 23_858)
    assert few["equal"] == 0 and sum(few[state] for state in p.CELL_STATES) == 959
    what = dict(state="substitute", what="50 texts of each set in place of all", cells=959)
    assert what in few["replaced"] and what["what"] not in str(whole["replaced"])


def test_fflm_counts_texts_by_systems_where_its_files_are_not_here(capsys):
    "Ratings of 50 sources: FRANK 5 and 4 systems, QAGS 1 and 1, SummEval 16. Labels: 1,681 of CoGenSumm and"
    "1,434 of FactCC are not limited, SummEval has at most 850 each, FRANK 250, Polytope 450, XSumFaith 250"
    rated, labelled = 50 * (5 + 4 + 1 + 1 + 16), 1_681 + 1_434 + 2 * (850 + 250 + 450 + 250)
    few = json.loads(printed(capsys, "fflm-50", "--json"))
    assert few["study_texts"] == dict(fflm_study=rated + labelled) and few["equal"] == 0
    assert "texts that studies read, at most: fflm_study 8,065\n" in printed(capsys, "fflm-50")
    assert json.loads(printed(capsys, "fflm", "--json"))["study_texts"] == dict(fflm_study=15_149)


def test_fflm_counts_the_texts_of_a_set_that_is_here_as_its_page_does(capsys, here, change, monkeypatch):
    monkeypatch.setenv("UETRUST_CACHE", str(here / "cache"))
    sentence = dict(sentence="A.", responses=[dict(response="yes")] * 3)
    votes = [dict(article=f"Article {i // 3}.", summary_sentences=[sentence]) for i in range(9)]
    change("= cogensumm summeval frank polytope factcc xsumfaith", "= bulletin:2")
    change("= frank_cnn qags_cnn summeval frank_xsum qags_xsum", "= qags_xsum")
    (here / "cache" / "qags").mkdir(parents=True)
    (here / "cache" / "qags" / "mturk_xsum.jsonl").write_text(lines(votes))
    found = json.loads(printed(capsys, "fflm-2", "--json"))["study_texts"]["fflm_study"]
    bulletins = len(all_texts("bulletin:2", ""))
    assert found == len(all_texts("bulletin:2", "qags_xsum", False, 2)) == bulletins + 2 * 3


def test_ice_sends_as_many_requests_as_its_page_would(capsys, here, change):
    texts = "bulletin:test:40"
    change("ice_texts = released", f"ice_texts = {texts}")
    (found,) = json.loads(printed(capsys, "ice-10", "--json"))["servers"]
    pool, judge = ice.scored_summaries(texts), Endpoint("http://127.0.0.1:9/v1", "judge", chat=False)
    study = ice.ICEStudy(k=(0, 1, 2, 3, 4), judged=10, most=10)
    sent = ice.ice_requests(judge, pool, ice.ice_questions(pool, study), ice.shown_examples(pool, study))
    assert found["requests"] == len({request.key for request in sent}) < len(sent)


def test_ice_counts_every_question_where_no_texts_are_here(capsys, monkeypatch):
    "Of each of 4 dimensions 3 ways about 10 summaries, and 1 + 4 numbers x 3 sets about 10: 640"
    monkeypatch.setattr(p, "has_file", lambda name: False)
    assert json.loads(printed(capsys, "ice-10", "--json"))["servers"][0]["requests"] == 640
    whole = json.loads(printed(capsys, "ice", "--json"))
    assert whole["servers"][0]["requests"] == 21_432 and whole["substitute"] == 20
    few, replaced = states(capsys, "ice-10")
    assert few["substitute"] == 36 and replaced["10 judged summaries in place of all"] == 36
