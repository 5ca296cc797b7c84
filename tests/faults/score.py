"""Texts that a metric or a method cannot take, and tables of texts that are none: `uetrust score`."""

import json

from tests.faults.harness import fault

GOOD = [
    dict(
        id=name,
        source=f"The {town} council met on Monday. It voted for the bridge by {votes} votes.",
        hypothesis=f"The {town} council voted for the bridge.",
        reference=f"The {town} council backs the bridge.",
        samples=[f"The {town} council met.", f"{town} gets a bridge."],
        logprobs=[-0.1, -0.5, -0.2],
    )
    for name, town, votes in [("a", "Alder", 3), ("b", "Birch", 4), ("c", "Cedar", 9)]
]
LONG = "The Alder council voted for the bridge. " * 700
ASK = ["--metric", "rouge_l", "bertscore_f1_idf", "summac_zs", "judge_own_overall", "bart_score"]


def write(folder, rows, *options, name="mine.jsonl"):
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["score", name, "--out", "scores.csv", *options]


def others_are_scored(folder, outcome):
    "The good texts have every score that was asked for."
    import pandas as pd

    scores = pd.read_csv(folder / "scores.csv", index_col="id")
    asked = [name for name in ASK[1:] if name in scores]
    assert len(asked) == len(ASK) - 1 and scores.loc[["a", "b", "c"], asked].notna().all(axis=None)


DEGENERATE = dict(
    long_text=dict(hypothesis=LONG),
    long_source=dict(source=LONG),
    empty_text=dict(hypothesis=""),
    empty_source=dict(source=""),
    missing_source=dict(source=None),
    missing_reference=dict(reference=None),
    one_letter=dict(hypothesis="x", source="y", reference="z"),
    marks_only=dict(hypothesis="...!?", reference="???"),
    control_characters=dict(hypothesis="\x00\x1b[2J\u200b"),
    another_script=dict(hypothesis="\u6771\u4eac\u306b\u96e8", reference="\U0001f327\ufe0f"),
)


ODD = [GOOD[0] | dict(id=name) | change for name, change in DEGENERATE.items()]
AMONG_GOOD = {"one long text": ODD[:1], "one missing source": ODD[4:5], "all of them": ODD}


@fault("right", cases=AMONG_GOOD, check=others_are_scored, limit=60.0)
def degenerate_texts_among_good_ones(folder, odd):
    return write(folder, [*GOOD, *odd], *ASK)


SAMPLES = dict(
    empty_samples=dict(samples=["", ""]),
    no_samples=dict(samples=[]),
    one_sample=dict(samples=["x"]),
    equal_samples=dict(samples=["x", "x", "x"]),
    long_sample=dict(samples=[LONG, "x"]),
    no_logprobs=dict(logprobs=[]),
    infinite_logprob=dict(logprobs=[-0.1, float("-inf")]),
)


def methods_are_scored(folder, outcome):
    import pandas as pd

    scores = pd.read_csv(folder / "scores.csv", index_col="id")
    methods = ["msp", "lex_sim", "num_sets", "eccentricity_entail"]
    assert scores.loc[["a", "b", "c"], [name for name in methods if name in scores]].notna().all(axis=None)
    assert {"msp", "num_sets"} <= set(scores)


ODD_SAMPLES = [GOOD[0] | dict(id=name) | change for name, change in SAMPLES.items()]


@fault("right", check=methods_are_scored, limit=60.0)
def odd_samples_of_some_texts(folder):
    return write(folder, [*GOOD, *ODD_SAMPLES], "--method", "all")


ALONE = ["rouge_l", "bertscore_f1", "bertscore_f1_idf"]


@fault("right", limit=30.0)
def one_text_alone(folder):
    return write(folder, GOOD[:1], "--metric", *ALONE)


@fault("right", limit=30.0)
def equal_references(folder):
    return write(folder, [row | dict(reference="The same.") for row in GOOD], "--metric", *ALONE)


WRONG = dict(
    id_twice=([*GOOD, GOOD[0]], "mine.jsonl", "a", "twice"),
    positive_logprob=([GOOD[0] | dict(logprobs=[0.9, 0.5])], "mine.jsonl", "'a'", "0.9", "logarithms"),
    nan_logprob=([GOOD[0] | dict(logprobs=[float("nan")])], "mine.jsonl", "'a'", "nan"),
    words_as_logprobs=([GOOD[0] | dict(logprobs=["a", "b"])], "mine.jsonl", "item 'a'", "logprobs"),
    tokens_that_do_not_fit=([GOOD[0] | dict(tokens=["a"])], "mine.jsonl", "'a'", "3", "1"),
    no_text_column=([dict(id="a", source="x")], "mine.jsonl", "--column text=NAME"),
    text_that_is_a_number=([GOOD[0] | dict(hypothesis=5)], "mine.jsonl", "row 1", "5"),
    text_that_is_an_object=([GOOD[0] | dict(hypothesis={"a": 1})], "mine.jsonl", "row 1"),
    samples_that_are_objects=([GOOD[0] | dict(samples=[{"a": 1}])], "mine.jsonl", "item 'a'", "samples"),
    half_a_character=([GOOD[0] | dict(hypothesis="rain \ud800 fell")], "mine.jsonl", "line 1", "ud800"),
    samples_that_are_one_text=([GOOD[0] | dict(samples="x")], "mine.jsonl", "item 'a'", "samples"),
)
for name, (rows, *says) in WRONG.items():

    @fault("error", *says, cases={name.replace("_", " "): rows})
    def table_with(folder, rows):
        return write(folder, rows)


OPTIONS = {
    "an unknown metric": (["--metric", "rogue_l"], "rogue_l", "Did you mean"),
    "an empty metric": (["--metric", ""], "--metric"),
    "commas only": (["--metric", ",,"], "--metric"),
    "a method among metrics": (["--metric", "msp"], "msp", "uetrust metrics"),
    "a metric among methods": (["--method", "rouge_l"], "rouge_l", "uetrust methods"),
    "an unknown ending": (["--out", "scores.txt"], ".parquet or .csv", "scores.txt"),
    "an output folder that is not there": (["--out", "no/scores.csv"], "no"),
    "an unknown model group": (["--model", "nil=x"], "nil"),
    "a model without a name": (["--model", "nli"], "GROUP=CHECKPOINT"),
    "a checkpoint that is not there": (["--model", "nli=nowhere", "--method", "num_sets"], "nowhere"),
    "an unknown format": (["--format", "opnai"], "opnai"),
    "a column that is not there": (["--column", "text=summary"], "summary"),
    "a meaning that is not there": (["--column", "txt=hypothesis"], "txt"),
}
for name, (options, *says) in OPTIONS.items():

    @fault("error", *says, cases={name: options})
    def option(folder, options):
        return write(folder, GOOD, *options)


@fault("error", "replies.jsonl", "record", "choices")
def a_reply_without_choices(folder):
    (folder / "replies.jsonl").write_text('{"custom_id": "a", "response": {"body": {"choices": "none"}}}\n')
    return ["score", "replies.jsonl"]


CONTENTS = dict(null=None, number=5, parts=[{"type": "text", "text": "It rained."}], object={"text": "x"})


@fault("either", cases=CONTENTS)
def a_reply_whose_content_is(folder, content):
    reply = dict(custom_id="a", response=dict(body=dict(choices=[dict(message=dict(content=content))])))
    (folder / "replies.jsonl").write_text(json.dumps(reply) + "\n")
    return ["score", "replies.jsonl", "--method", "msp,lex_sim"]


@fault("right")
def answers_that_are_numbers(folder):
    (folder / "qa.csv").write_text("id,response,target\na,42,42\nb,007,7\nc,1e5,3\n")
    return ["score", "qa.csv", "--metric", "rouge_l"]


@fault("error", "qa.csv", "line 2", "3 fields")
def a_table_of_texts_with_a_comma_in_a_text(folder):
    (folder / "qa.csv").write_text("id,response\na,It rained, and snowed.\n")
    return ["score", "qa.csv", "--metric", "rouge_l"]
