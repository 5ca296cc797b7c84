"""Checks of scores: a scale has two ends, samples are aligned by name, keys stay out of messages."""

import base64
import json
import re
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.safety_cases import pieces
from uetrust.core.checks import align_samples, check_scale, masked
from uetrust.evaluation.prr import prr


def test_a_sample_that_one_table_lacks_is_a_missing_pair():
    quality = pd.Series([1.0, 2, 3, 4], list("abcd"))
    got = prr(quality, pd.Series([3.0, 2, 1, 4], list("dcbx")))
    assert got.n == 3 and got.note.startswith("2 of 5 pairs missing")
    left, right = align_samples(quality.to_frame("q"), pd.DataFrame({"u": [1.0, 2]}, ["d", "x"]))
    assert list(left.index) == list(right.index) == list("abcdx")
    assert left["q"].isna().tolist() == [False] * 4 + [True] and right["u"].isna().sum() == 3


@pytest.mark.parametrize("value", [0.5, 10.5, np.nextafter(10, 11), np.nextafter(1, 0)])
def test_a_score_off_either_end_of_its_scale_is_an_error(value):
    quality = pd.Series([8.0, value, 9, 1, 10], list("vwxyz"), name="judge")
    with pytest.raises(ValueError, match=r"'judge' lies off its scale \[1, 10\] for 1 of 5 samples: w = "):
        check_scale(quality, 1, 10)
    with pytest.raises(ValueError, match="off its scale"):
        prr(quality, pd.Series(range(5), list("vwxyz"), dtype=float), scale=(1, 10))
    check_scale(quality.drop("w"), 1, 10)


# Keys

LETTERS = st.characters(min_codepoint=33, max_codepoint=126)
KEYS = st.text(LETTERS, min_size=16, max_size=64).map(lambda text: f"sk-{text}")
SPELLINGS = dict(
    plain=str,
    json=lambda key: json.dumps(key)[1:-1],
    json_twice=lambda key: json.dumps(json.dumps(key)),
    address=lambda key: quote(key, safe=""),
    representation=repr,
    base64=lambda key: base64.b64encode(b"user:" + key.encode()).decode(),
    hexadecimal=lambda key: key.encode().hex(),
)


@pytest.mark.parametrize("name", SPELLINGS)
@given(key=KEYS, first=st.integers(0, 40), last=st.integers(1, 70))
def test_no_piece_of_a_key_is_shown(name, key, first, last):
    spelled = SPELLINGS[name](key)
    shown = masked(f"wrong key {spelled[first:last]}, sorry", key)
    assert not any(piece in shown for piece in pieces(key))
    if name in ("base64", "hexadecimal"):  # What can be decoded from what is left
        left = re.findall(r"[\w+/=-]+", shown.replace("***", " "))
        assert all(len(word) < 14 + 8 for word in left)
    assert shown.startswith("wrong key ") and shown.endswith(", sorry")


@pytest.mark.parametrize("shown", ["{}", "{} first", "at last {}", "once {} and again {}.", "{},{} and {}"])
def test_every_key_of_a_text_is_masked_and_all_between_stays(shown):
    key = "sk-very-secret-0123456789"
    assert masked(shown.replace("{}", key), key) == shown.replace("{}", "***")


@given(key=KEYS, text=st.text(st.characters(codec="utf-8"), max_size=200))
def test_other_texts_stay_as_they_are(key, text):
    if not any(piece.lower() in text.lower() for piece in pieces(key)):
        assert masked(text, key) == text or len(text) >= 8
