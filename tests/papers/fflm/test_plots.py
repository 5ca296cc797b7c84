"""Figures and sentences of the FFLM study: nothing of data that are not there."""

import numpy as np
import pandas as pd

from uetrust.papers.fflm import plots as fflm
from uetrust.papers.ice import plots as ice


def test_nothing_is_said_of_data_that_are_not_there():
    assert ice.record_sentence(None) == ""
    assert fflm.stand_in_sentence(pd.DataFrame(dict(set=["FRANK"], doc=["a"]))) == ""


def test_texts_without_a_value_are_mentioned_once():
    about = dict(row="FFLM", group=["a", "b"], value=50.0, lo=40.0, hi=60.0, n=9)
    table = pd.DataFrame(about | dict(printed=np.nan, missing=[0, 3]))
    types = pd.DataFrame(columns=["group", "row", "type", "value"])
    got = {n: table.assign(column="spearman") for n in (2, 3, 4, 9)}
    said = fflm.fflm_sentences(dict(prompts=pd.DataFrame()), got, types, "toy")
    assert said[-1] == "FFLM is undefined for up to 3 texts of a set, which are left out." and len(said) == 2


def test_every_table_of_results_has_its_own_caption_of_the_right_task():
    captions = {number: fflm.caption_of(number) for number in (*range(2, 11), 12, 13)}
    assert len(set(fflm.CAPTIONS.values())) == len(captions)
    for number, caption in captions.items():
        assert caption.endswith(f", beside Table {number}")
        assert ("etection" in caption) == (number in (2, 9, 10, 12))
        assert ("ating" in caption) == (number in (3, 4, 7, 13))
    assert "prompts" in captions[7] and "BART" in captions[8]
