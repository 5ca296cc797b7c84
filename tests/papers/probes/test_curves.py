"""Learning curves: stored rows, labels that are enough, and texts that no label was given for."""

import numpy as np
import pandas as pd
import pytest

from uetrust.papers.bulletins.world import MAIN_GENERATORS
from uetrust.papers.people.promises import stored_inference
from uetrust.papers.probes import curves as p
from uetrust.scoring.trained.features import TRAINED_METHODS


@pytest.fixture
def made():
    "Texts whose states know the truth, and whose MSP does not"
    rng = np.random.default_rng(0)
    names = [f"test-{i}" for i in range(120)]
    truth = pd.Series(np.clip(rng.normal(0.9, 0.3, 120), 0, 1), names)
    scores = pd.DataFrame(dict(msp=rng.normal(size=120), discrete_semantic_entropy=-truth), names)
    states = pd.DataFrame(rng.normal(size=(120, 4)) - 3 * truth.to_numpy()[:, None], names)
    return p.ProbedTexts(
        truth, scores, dict.fromkeys(("p_ik", "semantic_entropy_probe", "haloscope"), states)
    )


def test_no_label_of_a_judged_text_is_seen(made):
    rows = p.draw_prr(made, 0, (20, 60), 60, methods=("p_ik", "semantic_entropy_probe"))
    new = np.random.default_rng(0).permutation(120)[:60]
    changed = made.quality.copy()
    changed.iloc[new] = np.random.default_rng(1).permutation(changed.iloc[new])
    other = p.draw_prr(made._replace(quality=changed), 0, (20, 60), 60, methods=("p_ik",))
    by = ["method", "labels"]
    assert rows.set_index(by)["prr"]["p_ik", 60] > 0.5 > abs(other.set_index(by)["prr"]["p_ik", 60])
    assert set(rows["method"]) == {"msp", p.CHOSEN, "p_ik", "semantic_entropy_probe"}


def test_labels_to_beat_counts_from_the_last_loss():
    rows = [
        dict(generator="g", method=method, labels=size, draw=draw, prr=prr)
        for draw, probe in enumerate([(1, 0, 1), (1, 1, 1), (0, 1, 0)])
        for size, prr_of_probe in zip((10, 20, 40), probe)
        for method, prr in (("msp", 0.5), ("probe", prr_of_probe))
    ]
    found = p.labels_to_beat(pd.DataFrame(rows)).iloc[0]
    assert (found["lo"], found["labels"], found["hi"]) == (10, 40, np.inf)
    assert found["gain"] == pytest.approx(1 / 6)
    assert p.label_words(found.to_frame().T.infer_objects(), 40).loc["probe", "g"] == "40 [10, not within 40]"


def test_stored_curves_have_every_method_and_draw():
    rows, moved = stored_inference("labels"), stored_inference("labels_transfer")
    assert tuple(rows["generator"].unique()) == MAIN_GENERATORS
    for generator, part in rows.groupby("generator"):
        seq2seq = generator != "tiny-llama"
        assert set(part["method"]) == {"msp", p.CHOSEN, *TRAINED_METHODS} - (
            {"lookback_lens"} if seq2seq else set()
        )
        assert set(part["labels"]) == set(p.CURVE_SIZES) and part["draw"].nunique() >= 20
        assert part.groupby(["method", "labels"]).size().nunique() == 1
    assert rows["prr"].notna().all() and rows["prr"].between(-1.5, 1).all()
    table = p.transfer_table(moved)
    assert (table["own"] > table["moved"]).all() and len(moved.groupby(["learned", "judged"])) == 9


def test_methods_are_sorted_by_the_labels_that_they_need():
    rows = [("wepr", 25), ("wepr", 100), ("p_ik", np.inf), ("p_ik", 1500), ("lens", np.inf)]
    rows += [("probe", np.inf), ("probe", np.inf)]
    found = p.quick_never_some(pd.DataFrame(rows, columns=["method", "labels"]))
    assert found == (["wepr"], ["lens (tried on 1 generator)", "probe"], ["p_ik on 1 of 2 generators"])
