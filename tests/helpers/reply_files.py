"""What the tests of files share."""

import json
import math
import random

import pytest

from uetrust.cli.cli import main

WORDS = "council mayor tax water bus library school roof spring street night fee".split()


def choice(rng, k, words):
    def at(word):
        p = rng.uniform(0.3, 0.95)
        others = [("the ", 0.6 * (1 - p)), ("a ", 0.3 * (1 - p))]
        top = [dict(token=token, logprob=math.log(p)) for token, p in [(word + " ", p), *others]]
        return dict(token=word + " ", logprob=math.log(p), top_logprobs=top)

    text = dict(role="assistant", content=" ".join(words) + ".")
    said = [*words[:-1], f"{words[-1]}."]
    return dict(index=k, message=text, logprobs=dict(content=list(map(at, said))), finish_reason="stop")


@pytest.fixture(scope="module")
def replies(tmp_path_factory):
    "60 chat completions with 5 samples each, log-probabilities and the 3 likeliest tokens"
    rng, path = random.Random(0), tmp_path_factory.mktemp("replies") / "replies.jsonl"
    lines = []
    for i in range(60):
        words = rng.sample(WORDS, 3)
        texts = [words, *(rng.sample(words, rng.randint(2, 3)) for _ in range(5))]
        body = dict(id=f"c{i}", choices=[choice(rng, k, text) for k, text in enumerate(texts)])
        request = dict(messages=[dict(role="user", content=f"Say it in short: {' '.join(words)}.")])
        lines.append(json.dumps(dict(custom_id=f"r{i}", request=request, response=dict(body=body))))
    path.write_text("\n".join(lines) + "\n")
    return path


def explained(capsys, file, *options):
    assert main(["score", str(file), "--explain", "--json", *options]) == 0
    return {row["method"]: row for row in json.loads(capsys.readouterr().out)}
