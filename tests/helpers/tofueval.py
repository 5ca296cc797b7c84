"""Files in the form of TofuEval, MediaSum and MeetingBank, about bulletins, so that the errors are known."""

import gzip
import hashlib
import json
from itertools import product

import pandas as pd

from uetrust.core import settings
from uetrust.data import download, loaders
from uetrust.data.bulletins import bulletins

SYSTEMS = ("Model-Extra", *(f"model_{letter}" for letter in "ABCDE"))
PARTS = tuple(product(("mediasum", "meetingbank"), ("dev", "test")))
OWN_PROFILE = """
[profile.own]
banks = tofueval--released
studies =
metric_models = shipped
items = {n}
"""


def annotated(n):
    "n dialogues of one topic and six summaries; in the k-th, k % 5 of them are about another bulletin."
    world, rows = bulletins("test", n), []
    other = bulletins("test", 2 * n)["reference"][n:].tolist()
    for k, row in enumerate(world.itertuples()):
        for place, system in enumerate(SYSTEMS):
            wrong = place >= len(SYSTEMS) - k % 5
            text = other[(k + place) % n] if wrong else row.reference
            domain, split = PARTS[k % 4]
            rows.append(
                dict(
                    domain=domain,
                    split=split,
                    doc_id=f"d{k}",
                    annotation_id=k,
                    topic=f"topic {k}",
                    model_name=system,
                    sent_idx=1,
                    summ_sent=text,
                    sent_label="no" if wrong else "yes",
                    exp=None,
                    type="Extrinsic Information" if wrong else None,
                )
            )
    return world, pd.DataFrame(rows)


def _key_points(world, k):  # The right summary without up to two of its words
    words = world["reference"][k].split()
    return str([f"1. {' '.join(words[: len(words) - k % 3])}"])


def put_tofueval(folder, monkeypatch, n=15, dialogues=True):
    "Write them as a mirror that the loaders accept, with n dialogues in place of 100."
    world, rows = annotated(n)
    files, columns = {}, [name for name in rows if name not in ("domain", "split")]
    for domain, split in PARTS:
        part = rows[(rows["domain"] == domain) & (rows["split"] == split)]
        files[f"tofueval/{domain}_factual_eval_{split}.csv"] = part[columns].to_csv(index=False)
        monkeypatch.setitem(loaders.TOFU_ROWS, (domain, split), len(part))
    for domain in ("mediasum", "meetingbank"):
        topics = rows[rows["domain"] == domain].drop_duplicates("doc_id")
        points = topics.assign(key_points=[_key_points(world, int(i[1:])) for i in topics["doc_id"]])
        files[f"tofueval/{domain}_completeness_final.csv"] = points[
            ["doc_id", "annotation_id", "topic", "key_points"]
        ].to_csv(index=False)
    ids = {
        split: {
            domain: sorted(set(rows[(rows["domain"] == domain) & (rows["split"] == split)]["doc_id"]))
            for domain in ("mediasum", "meetingbank")
        }
        for split in ("dev", "test")
    }
    files["tofueval/document_ids_dev_test_split.json"] = json.dumps(ids)
    registered = download.sources()
    for name, text in files.items():
        registered.loc[name, ["sha256", "bytes"]] = (
            hashlib.sha256(text.encode()).hexdigest(),
            len(text.encode()),
        )
    monkeypatch.setattr(download, "sources", lambda: registered)
    if dialogues:
        news = {i for domains in ids.values() for i in domains["mediasum"]}
        said = [(f"d{k}", text) for k, text in enumerate(world["source"])]
        spoken = [dict(id=i, speaker=["HOST"], utt=[text]) for i, text in said if i in news]
        minutes = [dict(meeting_id=i, source=text, reference="r") for i, text in said if i not in news]
        files["mediasum/news_dialogue.json"] = json.dumps(spoken)
        files["meetingbank/test.jsonl.gz"] = "".join(json.dumps(line) + "\n" for line in minutes)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        content = text.encode()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    monkeypatch.setenv("UETRUST_MIRROR", str(folder))
    monkeypatch.setenv("UETRUST_CACHE", str(folder / "cache"))
    return world, rows


def put_project(folder, monkeypatch, n=15):
    "A checkout with the settings and data of this one, and a profile that scores the stored summaries."
    text = (settings.root() / "settings.ini").read_text()
    text = text.replace("tofueval:all:100", f"tofueval:all:{n}")
    (folder / "nbs").symlink_to(settings.root() / "nbs")
    (folder / "data").symlink_to(settings.root() / "data")
    (folder / "settings.ini").write_text(text + OWN_PROFILE.format(n=n))
    monkeypatch.chdir(folder)
    for cached in (settings.root, settings._read):
        cached.cache_clear()
