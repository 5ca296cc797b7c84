"""Time upstream metrics.

Run by `uetrust.dev.bench.metrics` with the python of the bench environment, never imported.

peer_metrics.py WHO FOLDER   asked.json (texts, metrics, checkpoint, options) -> result.json and result.npz
"""

import json
import sys
from pathlib import Path

from peer import hand_back, peak, timed

KINDS = dict(rouge_1="rouge1", rouge_2="rouge2", rouge_l="rougeL")


def rouge_score(j, t):
    from rouge_score.rouge_scorer import RougeScorer

    s = RougeScorer([KINDS[m] for m in j["metrics"]], use_stemmer=True)
    got = [s.score(r, h) for r, h in zip(t["reference"], t["hypothesis"])]
    return {m: [g[KINDS[m]].fmeasure for g in got] for m in j["metrics"]}


def sacrebleu(j, t):
    from sacrebleu.metrics import BLEU

    b = BLEU(effective_order=True)
    return dict(bleu=[b.sentence_score(h, [r]).score for r, h in zip(t["reference"], t["hypothesis"])])


def bert_score(j, t, batch=64):
    from bert_score import score

    settings = dict(model_type=j["model"], num_layers=j["layers"], device="cpu", batch_size=batch)
    got = score(t["hypothesis"], t["reference"], **settings)
    return {
        m: x.tolist()
        for m, x in zip(("bertscore_precision", "bertscore_recall", "bertscore_f1"), got)
        if m in j["metrics"]
    }


def opened(kind, folder):
    import transformers

    return transformers.AutoTokenizer.from_pretrained(folder), getattr(transformers, kind).from_pretrained(
        folder
    ).eval()


def batches(j, t):  # BARTScore in batches of one size, in the order of the input
    import torch

    tokenizer, net = opened("AutoModelForSeq2SeqLM", j["model"])

    def ids(texts):
        return tokenizer(texts, padding=True, truncation=True, max_length=1024, return_tensors="pt")

    out = []
    with torch.no_grad():
        for i in range(0, len(t["source"]), j["batch"]):
            x, y = (ids(t[k][i : i + j["batch"]]) for k in ("source", "hypothesis"))
            z = net(
                input_ids=x["input_ids"], attention_mask=x["attention_mask"], labels=y["input_ids"]
            ).logits.log_softmax(-1)
            on = y["attention_mask"]
            out += ((z.gather(2, y["input_ids"][..., None])[..., 0] * on).sum(1) / on.sum(1)).tolist()
    return dict(bart_score=out)


def pairs(
    j, t
):  # SummaC-ZS from batches of pairs of sentences in the order of the input, one text after the other
    import torch

    tokenizer, net = opened("AutoModelForSequenceClassification", j["model"])
    at = {v.lower(): k for k, v in net.config.id2label.items()}

    def of(ps):
        return net(
            **tokenizer(
                *map(list, zip(*ps)), padding=True, truncation=True, max_length=500, return_tensors="pt"
            )
        ).logits.softmax(-1)

    def one(sources, claims):
        ps = [(s, c) for s in sources for c in claims]
        z = torch.cat([of(ps[i : i + j["batch"]]) for i in range(0, len(ps), j["batch"])]).reshape(
            len(sources), len(claims), 3
        )
        return (z[..., at["entailment"]].amax(0) - z[..., at["contradiction"]].amax(0)).mean().item()

    with torch.no_grad():
        return dict(summac_zs=[one(*g) for g in t["grid"]])


if __name__ == "__main__":
    who, folder = sys.argv[1], Path(sys.argv[2])
    j = json.loads((folder / "asked.json").read_text())

    def run(n):
        return globals()[who](j, {k: v[:n] for k, v in j["texts"].items()})

    run(2)  # Imports, and whatever is made on first use
    before = peak()
    seconds, values = timed(run, None)
    if who == "bert_score":  # Beside a longer text a token without any positive cosine counts 0
        values = bert_score(j, j["texts"], 1)
    hand_back(folder, dict(seconds=seconds, gb=peak(), before=before), values)
