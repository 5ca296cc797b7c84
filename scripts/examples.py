"""Make data/examples anew: sources, replies of a server with a tiny model, summaries, scores of a pilot."""

import json
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd

from uetrust.core.settings import root
from uetrust.data.bulletins import bulletins
from uetrust.data.checker import check_summaries
from uetrust.generation.serve import running_server
from uetrust.models.load import load_model

TEXTS, REPLIES, TOP = 40, 4, 5  # Bulletins, texts of each, likeliest tokens of each token


def ask(url, prompt):
    asked = dict(
        model="tiny-llama", prompt=prompt, n=REPLIES, temperature=1, seed=0, max_tokens=60, logprobs=TOP
    )
    request = urllib.request.Request(
        f"{url}/completions", json.dumps(asked).encode(), {"Content-Type": "application/json"}
    )
    return json.loads(urllib.request.urlopen(request).read())


def replies(url, rows):
    "Requests and replies as a log keeps them, and beside them what a program that knows the truth says"
    for row in rows.itertuples():
        prompt = f"Summarize the bulletin: {row.source}"
        reply = ask(url, prompt)
        for choice in reply["choices"]:
            found = choice["logprobs"]
            kept = dict(tokens=found["tokens"], token_logprobs=[round(x, 4) for x in found["token_logprobs"]])
            if choice["index"] == 0:  # The text that is scored; those of the others would only make it long
                kept["top_logprobs"] = [_rounded(at) for at in found["top_logprobs"]]
            choice["logprobs"] = kept
        body = dict(object=reply["object"], model=reply["model"], choices=reply["choices"])
        truth = check_summaries([reply["choices"][0]["text"]], rows[rows["id"] == row.id])["truth"].iloc[0]
        yield dict(
            custom_id=row.id, request=dict(prompt=prompt), response=dict(body=body), truth=round(truth, 4)
        )


def _rounded(top):
    return {token: round(logp, 4) for token, logp in top.items()}


def pilot(n=160):
    "Scores of n texts on scales as real ones have; people have judged half of them"
    rng = np.random.default_rng(0)
    truth = rng.normal(size=n)
    human = np.where(np.arange(n) % 4 < 2, np.clip(np.round(3 + truth, 1), 1, 5), np.nan)
    columns = dict(human=human, rouge=_share(truth + rng.normal(size=n) - 1))
    columns |= dict(nli=_share(2 * (truth + rng.normal(size=n))))
    columns |= dict(judge=np.clip(np.round(5 + truth + rng.normal(size=n) / 2), 1, 10))
    columns |= dict(words=rng.integers(5, 30, n), article=[f"a{i // 2}" for i in range(n)])
    columns |= dict(msp=12 * np.exp((rng.normal(size=n) - 2 * truth) / 5))
    columns |= dict(entropy=np.exp((rng.normal(size=n) - truth) / 3))
    return pd.DataFrame(dict(sample=[f"s{i}" for i in range(n)]) | columns).round(6)


def _share(x):  # Any number as one between 0 and 1, in the same order
    return 1 / (1 + np.exp(-x))


def write_examples(folder):
    folder.mkdir(exist_ok=True)
    rows = bulletins("test", TEXTS)
    with running_server(load_model(root() / "data" / "models" / "tiny-llama"), "tiny-llama") as url:
        found = list(replies(url, rows))
    lines = [json.dumps(reply, separators=(",", ":")) for reply in found]
    (folder / "replies.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = [reply["response"]["body"]["choices"][0]["text"] for reply in found]
    texts = rows[["id", "source", "reference"]].assign(hypothesis=said).head(5)
    texts.to_json(folder / "summaries.jsonl", orient="records", lines=True, force_ascii=False)
    sources = rows[["id", "source"]].head(10)
    sources.to_json(folder / "texts.jsonl", orient="records", lines=True, force_ascii=False)
    pilot().to_csv(folder / "pilot.csv", index=False)


if __name__ == "__main__":
    write_examples(Path(root()) / "data" / "examples")
