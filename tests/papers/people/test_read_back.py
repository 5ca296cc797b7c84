"""Texts written by others, read by a checkpoint and judged by people: RAGTruth by its documented fields."""

import json

import numpy as np
import pandas as pd
import pytest

from uetrust.cli.cli import main
from uetrust.cli.notebooks import profile_jobs
from uetrust.core.settings import root
from uetrust.core.store import Store
from uetrust.data.bulletins import bulletins
from uetrust.data.download import DataNotAtHand
from uetrust.data.loaders import BadData
from uetrust.data.ragtruth import RAGTRUTH_QUALITY, ragtruth
from uetrust.papers.people import read_back as study
from uetrust.statistics.table import read_statistics

NOTEBOOK = "nbs/experiments/people/11_people_read.ipynb"
TINY = root() / "data" / "models" / "tiny-llama"


def reply(k, document, text, *spans, model="llama-2-7b-chat", quality="good", split="test"):
    labels = [
        dict(start=start, end=end, text=text[start:end], meta="said by a person", label_type=kind)
        | dict(implicit_true=False, due_to_null=False)
        for start, end, kind in spans
    ]
    about = dict(id=str(k), source_id=document, model=model, temperature=0.7, split=split, quality=quality)
    return about | dict(labels=labels, response=text)


def put(folder, replies, sources):
    (folder / "ragtruth").mkdir(exist_ok=True)
    for name, records in (("response", replies), ("source_info", sources)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / "ragtruth" / f"{name}.jsonl").write_text(text)
    return folder


def sources_of(documents, prompts):
    return [
        dict(source_id=document, task_type="Summary", source="CNN/DM", source_info=prompt, prompt=prompt)
        for document, prompt in zip(documents, prompts)
    ]


@pytest.fixture
def small(tmp_path):
    "Twelve replies to six bulletins: the right summary, and that of another bulletin with all of it marked."
    world = bulletins("test", 6)
    other, replies = world["reference"].shift(-1, fill_value="Nothing happened here."), []
    for k, row in enumerate(world.itertuples()):
        documents = str(100 + k)
        replies.append(reply(2 * k, documents, row.reference))
        replies.append(reply(2 * k + 1, documents, other[k], (0, len(other[k]), "Evident Conflict")))
    replies.append(reply(90, "100", "It was cut in the", quality="truncated"))
    replies.append(reply(91, "100", "By another model.", model="gpt-4-0613"))
    replies.append(reply(92, "100", "For training.", split="train"))
    prompts = [f"Summarize the bulletin: {text}" for text in world["source"]]
    return put(tmp_path, replies, sources_of([str(100 + k) for k in range(6)], prompts))


def test_quality_is_the_share_of_characters_without_a_mark(tmp_path):
    "Marked are characters 0 to 3 and 2 to 5: five of ten. A subtle span counts like an evident one."
    text = "abcdefghij"
    marks = [(0, 3, "Subtle Conflict"), (2, 5, "Evident Baseless Info")]
    replies = [
        reply(1, "a", text, *marks),
        reply(2, "a", text),
        reply(3, "a", text, (0, 1, "Subtle Baseless Info")),
    ]
    table = ragtruth(put(tmp_path, replies, sources_of(["a"], ["Summarize: x"])))
    np.testing.assert_allclose(table["unmarked"], [0.5, 1, 0.9])
    assert table[list(RAGTRUTH_QUALITY[1:])].to_numpy().tolist() == [[0, 0, 0], [1, 1, 1], [0, 1, 0]]
    assert table["elsewhere"].sum() == 0 and table["prompt"].unique() == ["Summarize: x"]


def test_a_span_whose_text_stands_elsewhere_is_counted(tmp_path):
    moved = reply(1, "a", "abcdefghij", (0, 3, "Subtle Conflict"))
    moved["labels"][0]["text"] = "fgh"
    assert ragtruth(put(tmp_path, [moved], sources_of(["a"], ["x"])))["elsewhere"].tolist() == [1]


def test_structured_sources_of_questions_become_text(tmp_path):
    source = dict(source_id="a", task_type="QA", source="MARCO", prompt="Answer: who?")
    source["source_info"] = dict(question="who?", passages="passage 1: he")
    table = ragtruth(put(tmp_path, [reply(1, "a", "he")], [source]))
    assert json.loads(table.at[0, "source"]) == source["source_info"] and table.at[0, "task"] == "QA"


GOOD = reply(1, "a", "abcdefghij", (0, 3, "Subtle Conflict"))


def changed(**values):
    return GOOD | dict(labels=[GOOD["labels"][0] | values])


@pytest.mark.parametrize(
    "replies, says",
    [
        ([changed(end=11)], "record 1 (id '1'): found a span from 0 to 11. It must lie in 0 to 10"),
        ([changed(start=3)], "a span from 3 to 3"),
        ([changed(start=0.5)], "a span from 0.5 to 3"),
        ([changed(label_type="Wrong")], "label_type 'Wrong'. Expected is one of ['Evident Conflict'"),
        ([GOOD, GOOD], "ids: found some twice"),
        ([GOOD | dict(source_id="b")], "source_id: found"),
        ([GOOD | dict(labels=None)], "no list of labels"),
        ([GOOD | dict(labels=[dict(start=0)])], "record 1: found another structure"),
        ([{name: value for name, value in GOOD.items() if name != "quality"}], "without ['quality']"),
        ([], "response.jsonl"),
    ],
)
def test_what_is_not_as_documented_is_refused(tmp_path, replies, says):
    with pytest.raises(BadData) as error:
        ragtruth(put(tmp_path, replies, sources_of(["a"], ["x"])))
    assert says in str(error.value) and "response.jsonl" in str(error.value)


def test_an_unknown_task_is_refused(tmp_path):
    source = sources_of(["a"], ["x"])[0] | dict(task_type="Poem")
    with pytest.raises(BadData, match=r"source_info.jsonl, record 1: found task_type 'Poem'"):
        ragtruth(put(tmp_path, [GOOD], [source]))


def test_files_that_are_not_there_are_named_with_their_home(tmp_path):
    with pytest.raises(DataNotAtHand, match=r"ragtruth/response.jsonl.*ParticleMedia/RAGTruth"):
        ragtruth(tmp_path)


def test_only_good_replies_of_the_writer_are_read(small):
    given = study.given_texts("ragtruth", "llama-2-7b-chat", folder=small)
    assert len(given.texts) == 12 and given.left_out == dict(truncated=1, empty=0)
    assert given.texts["document"].nunique() == 6
    with pytest.raises(LookupError, match="no replies of 'llama-3'"):
        study.given_texts("ragtruth", "llama-3", folder=small)
    with pytest.raises(LookupError, match="no text by 'llama-2-7b-chat' for task 'QA'"):
        study.given_texts("ragtruth", "llama-2-7b-chat", "QA", folder=small)


def test_the_command_reads_replies_and_judges_by_people(small, capsys):
    "tiny-llama stands in for Llama 2: summaries of other bulletins surprise it, and people marked them."
    params = ["read_sets=ragtruth tofueval", f"readers=llama-2-7b-chat:{TINY}", f"folder={small}"]
    out, target = small / "out", small / "read.ipynb"
    passes = "read_passes=conditional vocabulary unconditional"
    assert main(["run", NOTEBOOK, str(target), *params, passes, "read_task=Summary", f"out={out}"]) == 0
    assert capsys.readouterr().out == "ok read.ipynb\n"
    chapter = json.loads((out / "pages" / "people_read.json").read_text())
    lack, said = chapter["text"]
    assert "12 texts of llama-2-7b-chat in ragtruth, read by tiny-llama: by unmarked the best" in said
    assert "0 prompts and 0 texts were cut; left out: 1 truncated" in said and "not at hand" in lack
    rows = pd.read_csv(out / "tables" / "people_read.csv").set_index(["method", "metric"])
    assert rows.loc[("perplexity", "unmarked"), "value"] > 0.5
    assert (rows["n"] == 12).all() and {"unmarked", "no_span"} <= set(rows.index.get_level_values(1))
    assert {"msp", "perplexity", "mean_token_entropy", "pmi"} & set(rows.index.get_level_values(0))
    (place,) = (out / "read").iterdir()
    read = read_statistics(place / "conditional")
    assert len(read) == 12 and all(np.isfinite(logp).all() and (logp <= 0).all() for logp in read["logp"])
    assert Store(place / "texts", "bank").manifest()["about"]["model"] == "llama-2-7b-chat"


def test_the_profile_without_its_data_says_so_and_the_run_goes_on(tmp_path, monkeypatch, capsys):
    assert [job.name for job in profile_jobs("people-read")] == ["people_read"]
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path))
    target = tmp_path / "people_read.ipynb"
    assert main(["run", NOTEBOOK, str(target), "profile=people-read", f"out={tmp_path}"]) == 0
    said = capsys.readouterr().out
    assert "ended early" in said and "ragtruth/response.jsonl" in said and "mediasum" in said


def test_reading_its_own_texts_back_gives_the_probabilities_of_writing(tmp_path):
    "The same tokens after the same prompt: what the writer computed of its own texts, to 2e-5."
    from uetrust.generation.bank import read_bank
    from uetrust.generation.decoding import Decoding
    from uetrust.generation.local import fill_local_bank
    from uetrust.models.load import load_model
    from uetrust.statistics.passes import compute_likelihoods
    from uetrust.statistics.table import get_pass

    world, model = bulletins("test", 6), load_model(str(TINY))
    settings = Decoding(samples=0, max_new_tokens=80, prompt="Summarize the bulletin: {source}")
    fill_local_bank(tmp_path / "own", "bulletin", "tiny", world, model, settings, progress=False)
    compute_likelihoods(
        tmp_path / "logp", tmp_path / "own", world, model, get_pass("conditional"), settings, progress=False
    )
    wrote = read_bank(tmp_path / "own").set_index("sample")["text"]
    prompts = "Summarize the bulletin: " + world["source"]
    texts = pd.DataFrame(
        dict(id=world["id"], document=world["id"], source=prompts, text=list(wrote[world["id"]]))
    )
    given = study.GivenTexts("own", "tiny", texts, pd.DataFrame(index=texts["id"]), {})
    study.read_given_texts(tmp_path / "back", given, str(TINY), ("conditional",), 80, 150, progress=False)
    own, back = (read_statistics(tmp_path / name) for name in ("logp", "back/conditional"))
    same = [list(a) == list(b) for a, b in zip(own["ids"], back["ids"])]
    assert sum(same) >= 4, "most texts have the same tokens again"
    for a, b, equal in zip(own["logp"], back["logp"], same):
        if equal:
            np.testing.assert_allclose(a, b, atol=2e-5)
