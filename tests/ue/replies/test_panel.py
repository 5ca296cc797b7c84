"""A panel of judges: its four scores equal definitions by NumPy, and judges that are missing."""

import numpy as np
import pytest

from uetrust.core.checks import Undefined
from uetrust.ue.replies.panel import panel_largest, panel_least, panel_mean, panel_median

PANEL = {panel_mean: np.mean, panel_median: np.median, panel_least: np.min, panel_largest: np.max}


@pytest.mark.parametrize("score", PANEL)
def test_the_score_is_minus_that_of_the_judges(score):
    scores = np.random.default_rng(0).integers(1, 11, 5)
    assert score(scores) == pytest.approx(-PANEL[score](scores))
    assert score(scores + 1) == pytest.approx(score(scores) - 1), "better texts are more certain"


@pytest.mark.parametrize("score", PANEL)
def test_a_text_that_a_judge_left_out_has_no_score(score):
    with pytest.raises(Undefined, match="1 of 3 judges gave no score"):
        score(np.array([3, np.nan, 5]))
    with pytest.raises(Undefined, match="needs at least 1 judge, got none"):
        score(np.zeros(0))
