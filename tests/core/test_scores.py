"""Score tables: equal texts are computed once and every text gets its value."""

from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.scores import unique_texts


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=9))
def test_unique_gives_back_every_text(texts):
    distinct, index = unique_texts(texts)
    assert [distinct[i] for i in index] == texts and len(set(distinct)) == len(distinct)
