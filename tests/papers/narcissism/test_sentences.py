"""Sentences of the self-bias study: a writer of empty texts leaves a note and no number."""

import numpy as np

from uetrust.papers.narcissism import live as live
from uetrust.papers.narcissism import sentences


def test_a_writer_of_empty_texts_leaves_a_note_and_no_number(judges, texts, tmp_path):
    two = {name: judges[name] for name in ("tiny-llama", "tiny-bart")}
    silent = texts.assign(hypothesis=texts["hypothesis"].where(texts["generator"] != "tiny-llama", ""))
    panels, gone = sentences.panels_by_dataset(dict(bulletin=silent), two, tmp_path)
    key = ("bulletin", "reference-free")
    assert panels[key].empty and len(gone[key]) == 4
    found = live.self_bias(panels[key], left_out=gone[key])
    assert found["documents"] == 0 and np.isnan(found["value"]) and np.isnan(found["p"])
    assert found["note"] == "none of 4 documents has every score: summaries without one are 4 of tiny-llama"
    said = sentences.panel_sentence(key, panels[key], two, gone[key])
    assert "does not exist here: none of 4 documents has every score" in said and "nan" not in said
    each = sentences.judge_by_judge(panels, dict(bulletin=silent), {})
    assert list(each["evaluator"].unique()) == list(two) and each["residual"].isna().all()
    assert not any("nan" in line for line in sentences.judge_sentences(each))
    assert sentences.plot_panel(panels[key], gone[key]).texts
