"""Files of public reports, through `uetrust score`: the right value, or a note on what was not used."""

import json
import math
import random

import pytest

from tests.helpers.reported import CASES, scored
from uetrust.cli.cli import main
from uetrust.core.settings import root
from uetrust.data.generations import Generation, _spelled_part, checked

BASE = [2.1, 4.0, 3.5, 3.85, 4.2]  # -log p of the five texts of a00_base.jsonl
NONE = math.nan
# File, requested scores -> their values, and words of the note
TOKENS = {
    "a00_base.jsonl msp": (BASE, ""),
    "a01_minus9999.jsonl msp": (
        [2.1, NONE, 3.5, 3.85, 4.2],
        "logprobs of 1 of 5 items not used: no token that was written is so unlikely",
    ),
    "a01_minus9999.jsonl perplexity": ([0.35, NONE, 0.5, 0.55, 0.6], "'doc-1', -9999"),
    "a02_reasoning_in_logprobs.jsonl msp": (BASE, "only the tokens that spell the text are used"),
    "a02_reasoning_in_logprobs.jsonl perplexity": ([0.35, 0.5, 0.5, 0.55, 0.6], "8 of"),
    "a06_fewer_candidates.jsonl msp": (BASE, "a token has fewer than 2 candidates"),
    "a08_echo.jsonl msp": (BASE, "not those of its prompt"),
    "a09_responses_api.jsonl msp": (BASE, ""),
    "a10_null_logprob.jsonl msp": ([2.1, NONE, 3.5, 3.85, 4.2], "a token has no log-probability"),
    "a15_positive_rounding.jsonl msp": ([2.1, 3.65, 3.5, 3.85, 4.2], "is rounding and counts as 0"),
    "a16_all_zero.jsonl msp": ([0.0] * 5, "every log-probability is 0"),
    "a17_stream_chunks.jsonl msp": ([2.1, 4.0], ""),
    "a18_content_parts.jsonl msp": (BASE, ""),
    "a18_content_parts.jsonl output_length": ([5.0, 7, 6, 6, 6], ""),
    "k04_edited_text.jsonl msp": ([0.5] * 3, "5 of 11 tokens"),
    "g03_inf_sample.jsonl mcse": ([5 / 6, NONE, 5 / 6], "sample logprobs of 1 of 3 items not used"),
    "c01_null_sample.jsonl lex_sim": ([-4 / 15, -1 / 3, -1, -1 / 3, -5 / 18, -1 / 3], "samples of 1 of 6"),
    "c01_nan_sample.jsonl deg_mat_jaccard": ([22 / 45, 4 / 9, 0, 4 / 9, 13 / 27, 4 / 9], "null in place"),
    "c01_nan_sample.jsonl eigv_jaccard": ([2.11111111, 2, 1, 2, 2.09090909, 2], ""),
    "c04_numpy2_list.csv msp": ([1.5] * 6, ""),
    "g01_equal_samples.jsonl num_sets": ([1.0, 5], ""),
    "g01_equal_samples.jsonl discrete_semantic_entropy": ([0.0, math.log(5)], ""),
}  # fmt: skip


@pytest.mark.parametrize("case", TOKENS)
def test_methods_of_reported_files(case, capsys, tmp_path):
    values, note = TOKENS[case]
    name, method = case.split()
    models = ["--model", f"nli={root() / 'data' / 'models' / 'tiny-nli'}"] if name.startswith("g01") else []
    scores, messages = scored(capsys, tmp_path, name, "--method", method, *models)
    if "num_sets" in method or "discrete" in method:  # Five cities are what the model makes of them
        values = [values[0], scores[method].iloc[1]]
    assert scores[method].tolist() == pytest.approx(values, abs=1e-6, nan_ok=True)
    assert note in messages


def test_a_list_of_candidates_that_is_too_short_is_missing_and_reported(capsys, tmp_path):
    scores, messages = scored(capsys, tmp_path, "a06_fewer_candidates.jsonl", "--method", "mte")
    assert scores["mte"].isna().tolist() == [False, False, True, False, False]
    assert "top logprobs of 1 of 5 items not used" in messages and "'doc-2'" in messages


def test_candidates_that_add_up_to_more_than_1_are_reported(capsys, tmp_path):
    for case, top in dict(
        probabilities=[{"a": 0.9, "b": 0.1}],
        numbers=[[0.9, 0.05]],
        another_base=[{"a": -0.1, "b": -1.0}],
        nothing=[{"a": None, "b": -1.0}],
        words=[{"a": "x", "b": -1.0}],
        less_likely=[{"a": -3.0, "b": -4.0}],
    ).items():
        rows = [dict(id=str(i), hypothesis="a", logprobs=[-0.1], top_logprobs=top) for i in range(2)]
        rows += [dict(id="2", hypothesis="a", logprobs=[-0.1], top_logprobs=[{"a": -0.1, "b": -3.0}])]
        file = tmp_path / f"{case}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        scores, messages = scored(capsys, tmp_path, file, "--method", "mte", "msp")
        assert scores["mte"].isna().tolist() == [True, True, False] and scores["msp"].notna().all(), case
        assert "top logprobs of 2 of 3 items not used" in messages and "'0'" in messages, case


def test_0_is_an_id(capsys, tmp_path):
    options = ["--data", str(CASES / "a19_sources.jsonl"), "--metric", "rouge_l_true"]
    scores, messages = scored(capsys, tmp_path, "a19_int_ids_failed.jsonl", *options)
    assert list(scores.index) == ["0", "1", "2", "4"] and (scores["rouge_l_true"] == 1).all()
    assert "1 of 5 records left out: 1 failed request ('3')" in messages


def test_every_filter_of_lm_eval_is_a_column_and_the_text_is_what_the_model_wrote(capsys, tmp_path):
    scores, _ = scored(capsys, tmp_path, "b01_lmeval_two_filters.jsonl", "--method", "output_length")
    assert scores["output_length"].tolist() == [10] * 5
    assert scores["exact_match,strict-match"].tolist() == [1, 0, 1, 0, 1]
    assert scores["exact_match,flexible-extract"].tolist() == [0, 1, 1, 0, 1]
    assert scores["answer,strict-match"].tolist() == ["7", "[invalid]", "24", "[invalid]", "56"]


def test_several_tasks_in_a_file_of_lm_eval_stay_separate(capsys, tmp_path):
    scores, _ = scored(capsys, tmp_path, "b04_lmeval_cat.jsonl", "--method", "output_length")
    assert len(scores) == 10 and list(scores.index[[0, 5]]) == ["a/0", "b/0"]


def test_trials_of_helm_are_rows_of_one_document(capsys, tmp_path):
    scores, _ = scored(capsys, tmp_path, "b06_helm_three_trials", "--method", "output_length")
    expected = [0.1 * i + 0.01 * trial for trial in range(3) for i in range(5)]
    assert scores["rouge_l"].tolist() == pytest.approx(expected)
    assert scores["document"].tolist() == [f"id{i}" for i in range(5)] * 3
    once, _ = scored(capsys, tmp_path, "b06_helm_one_trial", "--method", "output_length")
    assert list(once.index) == [f"id{i}" for i in range(5)] and "document" not in once


def test_a_list_of_one_text_is_that_text(capsys, tmp_path):
    options = ["--column", "text=predictions", "--method", "output_length"]
    scores, messages = scored(capsys, tmp_path, "b10_lighteval_old.parquet", *options)
    assert scores["output_length"].tolist() == [10.0] * 5 and "not used: " in messages


def test_truth_values_of_a_csv_are_scores(capsys, tmp_path):
    scores, _ = scored(capsys, tmp_path, "g05_uqlm_grade.csv", "--method", "lex_sim")
    assert set(scores["grade"]) == {0.0, 1.0}


def test_judgements_of_people_inside_a_record_are_read_as_their_mean(capsys, tmp_path):
    options = ["--column", "text=decoded", "id=id+model_id", "--method", "output_length"]
    scores, _ = scored(capsys, tmp_path, "c10_summeval.jsonl", *options)
    record = json.loads((CASES / "c10_summeval.jsonl").read_text().splitlines()[0])
    grades = [person["coherence"] for person in record["expert_annotations"]]
    assert scores["expert_annotations.coherence"].iloc[0] == pytest.approx(sum(grades) / len(grades))
    assert scores.index.is_unique and scores["document"].iloc[0] == record["id"]


def test_texts_whose_source_was_cut_are_named(capsys, tmp_path):
    scores, messages = scored(capsys, tmp_path, "d04b_long.jsonl", "--metric", "bart_score")
    assert scores["bart_score"].notna().all()
    assert "bart_score: the inputs of 10 of 12 texts did not fit the model and were cut: 'n40_0'" in messages
    assert "It read less than half of 'n60_0'" in messages


def test_a_folder_of_parts_is_one_table(capsys, tmp_path):
    scores, _ = scored(capsys, tmp_path, "c13_shards", "--method", "output_length")
    assert scores["output_length"].tolist() == [5, 7, 6, 6, 6, 5]


def test_a_tsv_with_raw_quotes_keeps_its_rows(capsys, tmp_path):
    for name in ("g04c_swallow.tsv", "g04c_swallow.jsonl"):
        scores, _ = scored(capsys, tmp_path, name, "--metric", "rouge_l")
        assert len(scores) == 8 and scores["rouge_l"].iloc[2] == pytest.approx(0.5)


def test_notes_are_in_json_and_on_stderr(capsys):
    file = str(CASES / "a19_int_ids_failed.jsonl")
    assert main(["score", file, "--method", "msp", "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert len(found["scores"]) == 4 and any("1 failed request ('3')" in note for note in found["notes"])
    assert "1 failed request ('3')" in printed.err
    assert main(["score", file, "--method", "msp"]) == 0
    assert "1 failed request ('3')" in capsys.readouterr().out


def test_a_metric_that_failed_for_every_text_ends_with_1(capsys, tmp_path):
    rows = [
        dict(id=str(i), hypothesis="Rain.", source="It rained.", reference="Rain fell.") for i in range(3)
    ]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = [
        "--metric",
        "bertscore_f1",
        "--model",
        f"bertscore={root() / 'data' / 'models' / 'tiny-llama'}",
    ]
    _, messages = scored(capsys, tmp_path, tmp_path / "mine.jsonl", *options, code=1)
    assert "bertscore_f1 failed on 3 texts" in messages


# Tokens ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(50))
def test_tokens_that_spell_the_text_at_an_end_are_found(seed):
    rng = random.Random(seed)
    words = [
        rng.choice(["The", " rain", "fall", " é", "漢", " 🌧", "\n", ".", " x1"])
        for _ in range(rng.randint(1, 9))
    ]
    before = [rng.choice(["<think>", " hm", " so", "</think>"]) for _ in range(rng.randint(0, 4))]
    text = "".join(words).strip()
    if not text:
        return
    part = _spelled_part([*before, *words], text)
    found = "".join([*before, *words][part])
    assert "".join(found.split()) == "".join(text.split())
    assert _spelled_part([*before, *words], text + " and more") is None


def test_the_written_token_bounds_its_candidates():
    for own, top, kept in [
        (-0.1, [("a", -0.1), ("b", -3.0)], True),
        (-0.1, [("b", -0.5), ("c", -2.0)], False),
    ]:
        text, problems = checked(Generation("a", ["a"], [own], [top]))
        assert (text.top_logprobs is not None) == kept and bool(problems) != kept


WORDS, LOGP = ["It", " rained"], [-0.1, -0.2]
TOP = [[("It", -0.1), ("He", -3.0)], [(" rained", -0.2), (" ran", -3.0)]]
LENGTHS = {  # Replacement of some of them -> what is left, the reported field, and its lengths
    "all fit": ({}, "tokens logprobs top_logprobs", []),
    "a list of candidates too much": (dict(top=[*TOP, TOP[0]]), "tokens logprobs", ["top_logprobs 2 3"]),
    "no list of candidates": (dict(top=[]), "tokens logprobs", ["top_logprobs 2 0"]),
    "a token too much": (dict(tokens=["It", " ", "rained"]), "", ["sample_logprobs 2 3"]),
    "a log-probability too much": (dict(logp=[*LOGP, -0.3]), "", ["sample_logprobs 3 2"]),
    "tokens alone": (dict(logp=None, top=None), "tokens", []),
    "too few candidates for tokens": (dict(logp=None, top=TOP[:1]), "tokens", ["top_logprobs 2 1"]),
}


@pytest.mark.parametrize("case", LENGTHS)
def test_a_list_of_another_length_removes_only_what_is_ambiguous(case):
    "Tokens of another number leave open whose log-probability is which; candidates only lose themselves."
    given, left, messages = LENGTHS[case]
    given = dict(tokens=WORDS, logp=LOGP, top=TOP) | given
    text, problems = checked(
        Generation("It rained", given["tokens"], given["logp"], given["top"]), "sample_logprobs"
    )
    lists = dict(tokens=text.tokens, logprobs=text.logprobs, top_logprobs=text.top_logprobs)
    assert [name for name, values in lists.items() if values is not None] == left.split()
    numbers = [[word for word in problem.found.split() if word.isdecimal()] for problem in problems]
    assert [" ".join([problem.field, *n]) for problem, n in zip(problems, numbers)] == messages


SCRIPTS = {
    "d01_zh_ru.jsonl --method lex_sim": ("zh", NONE, "2 of 4 texts, the first 'zh'"),
    "d01_zh_ru.jsonl --method lex_sim --tokenizer unicode": ("zh", -0.0755555556, ""),
    "d01_identical_scripts.jsonl --metric rouge_l": ("hi", NONE, "6 of 8 texts, the first 'zh'"),
    "d01_identical_scripts.jsonl --metric rouge_l --tokenizer unicode": ("hi", 1.0, "1 of 8 texts"),
}


@pytest.mark.parametrize("case", SCRIPTS)
def test_texts_without_letters_a_to_z_are_never_certain(case, capsys, tmp_path):
    (item, value, note), (name, *options) = SCRIPTS[case], case.split()
    scores, messages = scored(capsys, tmp_path, name, *options)
    assert scores.loc[item].iloc[-1] == pytest.approx(value, nan_ok=True) and note in messages
