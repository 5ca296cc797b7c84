"""Banks of ours in the layout of He et al.'s release. The loader knows such files and never counts them."""

import json

import numpy as np
import pandas as pd

from uetrust.core.scores import wide_table
from uetrust.core.settings import root
from uetrust.papers.he2024.own_tables import REGISTERED_METHODS, REGISTERED_METRICS
from uetrust.papers.he2024.published import DATASET_SIZES, printed_tables
from uetrust.papers.he2024.released_scores import (
    RELEASED_METHODS,
    RELEASED_METRICS,
    WRITTEN_HERE,
    release_banks,
)

PROMPT = "Only give the summary of below text. \n "
ENSEMBLE = ("T-TU", "T-RMI", "S-TU", "S-RMI")
ENDS = dict(
    MD="_decoder", RDE="_decoder", LexSim="_rougeL", ECC="_NLI_score_entail", EigV="_NLI_score_entail"
)  # What follows the name of a method in est files
METHODS = {m: (REGISTERED_METHODS[m][0], names[0] + ENDS.get(m, "")) for m, names in RELEASED_METHODS.items()}


def demo_scores():
    "Texts x metrics and texts x methods of a demo bank, as data/stored has them, without gaps"
    stored = root() / "data" / "stored"
    ours = {name for names in (REGISTERED_METHODS | REGISTERED_METRICS).values() for name in names[:1]}
    methods = [pd.read_parquet(path) for path in sorted(stored.glob("methods-*.parquet"))]
    methods = next(m for m in methods if "generator" in m and (m["generator"] == "tiny-bart").all())
    metrics = pd.read_parquet(min(stored.glob("quality-*.parquet")))
    tables = [wide_table(table, "sample", "name") for table in (metrics, methods)]
    quality, uncertainty = (table[[name for name in table if name in ours]].dropna() for table in tables)
    both = quality.index.intersection(uncertainty.index)
    return quality.loc[both].reset_index(drop=True), uncertainty.loc[both].reset_index(drop=True)


def made_scores(table, n, seed=0):
    "Drawn scores of all rows and columns of a printed table, under the names of the registry"
    rng, printed = np.random.default_rng(seed), printed_tables()[table]
    metrics = [REGISTERED_METRICS[name][0] for name in printed.index]
    methods = [REGISTERED_METHODS[name][0] for name in printed]
    return pd.DataFrame(rng.random((n, len(metrics))), columns=metrics), pd.DataFrame(
        rng.random((n, len(methods))), columns=methods
    )


def _rows(scores, names, rows, prefix=""):  # One dictionary per row; names: registry -> release
    shown = scores[[name for name in names if name in scores]].rename(columns=names).add_prefix(prefix)
    return shown.iloc[rows].to_dict("records")


def _write(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def _write_part(folder, name, stem, rows, quality, uncertainty, common, summaries):
    greedy = "blackbox_greedy_texts" if "gpt35" in name else "greedy_texts"
    records = []
    for late in (False, True):  # Scores of an ensemble stand behind the others
        names = dict(METHODS[method] for method in METHODS if (method in ENSEMBLE) == late)
        if set(names) & set(uncertainty):
            found = _rows(uncertainty, names, rows, "sequence#")
            records += [common[i] | one for i, one in zip(rows, found)]
    _write(folder / "sample_res" / name / f"est_42-{stem}-small_0-use_rouge=1.json", records)
    for kind in dict.fromkeys(kind for kind, _ in RELEASED_METRICS.values()):
        of_kind = {
            REGISTERED_METRICS[metric][0]: stored
            for metric, (other, stored) in RELEASED_METRICS.items()
            if other == kind and REGISTERED_METRICS[metric][0] in quality
        }
        if kind == "sample":
            found = _rows(quality, of_kind, rows, "sequence#")
            records = [common[i] | one | {greedy: summaries[i]} for i, one in zip(rows, found)]
            _write(folder / "sample_res" / name / f"sample_42-{stem}-small_0-use_rouge=1.json", records)
        elif of_kind:
            key = "input_texts" if kind.startswith("unieval") else "target_texts"
            place = "assist_res" if kind.startswith("unieval") else "chatgpt_res"
            found = _rows(quality, of_kind, rows)
            records = [{common[i][key]: one} for i, one in zip(rows, found)]
            _write(folder / place / name / f"{stem}-{kind}.json", records)


def write_bank(folder, name, quality, uncertainty, texts=None, summaries=None, parts=("",), mark=True):
    "Files of one folder of the release"
    n, prompt = len(quality), "" if "bart" in name else PROMPT
    texts = [f"text {i}" for i in range(n)] if texts is None else texts
    summaries = [f"summary {i}" for i in range(n)] if summaries is None else summaries
    common = [
        {"input_texts": prompt + text, "target_texts": f"reference {i}"} | ({WRITTEN_HERE: 1} if mark else {})
        for i, text in enumerate(texts)
    ]
    for part, rows in zip(parts, np.array_split(np.arange(n), len(parts))):
        stem = f"full_r4_{part}".rstrip("_")
        _write_part(folder, name, stem, rows, quality, uncertainty, common, summaries)


def write_release(folder, sizes=DATASET_SIZES, mark=True, **summaries):
    "All seven folders with drawn scores, XSUM in six parts; summaries by folder"
    for k, row in enumerate(release_banks().itertuples()):
        scores = made_scores(row.table, sizes[row.dataset], seed=k)
        parts = [f"g{i}" for i in range(1, 7)] if row.dataset == "XSUM" else [""]
        write_bank(folder, row.Index, *scores, None, summaries.get(row.Index), parts, mark)
    return folder
