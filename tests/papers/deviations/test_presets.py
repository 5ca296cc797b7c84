"""The register names every field of every preset, with the value that the preset has."""

from dataclasses import replace

import pandas as pd
import pytest

from uetrust.core import settings as s
from uetrust.nlg.likelihood import NARCISSISM_MODELS
from uetrust.papers.deviations import presets as p
from uetrust.papers.deviations import register as r


def test_no_preset_differs_from_the_register():
    assert p.register_complaints() == []


def changed_profile(name, **values):
    whole = s.section
    return lambda kind, of: whole(kind, of) | (values if (kind, of) == ("profile", name) else {})


CHANGES = {  # Field -> preset, and how it is changed
    "decoding.samples": (
        "he2024",
        lambda m: m.setattr(p, "HE2024_DECODING", replace(p.HE2024_DECODING, samples=5)),
    ),
    "judge.seed": ("he2024", lambda m: m.setitem(p.JUDGE_SETTINGS_HE2024, "seed", 1)),
    "metric.bart": (
        "threshold",
        lambda m: m.setattr(s, "section", changed_profile("threshold", metric_models="bart=other")),
    ),
    "profile.ice_judged": ("ice", lambda m: m.setattr(s, "section", changed_profile("ice", ice_judged="20"))),
    "study.size": ("ice", lambda m: m.setattr(p.ICEStudy.__new__, "__defaults__", (5, *p.ICEStudy()[1:]))),
    "mixing": ("fflm", lambda m: m.setattr(p, "FFLM_MIXING_WEIGHTS", (1, 0, 0))),
    "model.GPT2": (
        "narcissism",
        lambda m: m.setitem(NARCISSISM_MODELS, "GPT2", replace(NARCISSISM_MODELS["GPT2"], checkpoint="gpt2")),
    ),
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_preset_that_is_changed_by_one_field_is_named(field, monkeypatch):
    preset, change = CHANGES[field]
    change(monkeypatch)
    said = [line for line in p.register_complaints() if f"field {field} of preset {preset}" in line]
    assert said and "mend the one that is wrong" in said[0], p.register_complaints()


def test_a_row_too_many_and_a_row_too_few_are_named(monkeypatch):
    rows = r.deviations()
    few = rows[rows["field"] != "decoding.seed"]
    twice = rows.iloc[[0]].assign(field="decoding.samples")
    extra = rows.iloc[[0]].assign(field="decoding.sauce", setting="hot")
    monkeypatch.setattr(r, "_register", lambda: pd.concat([few, twice, extra]))
    said = "\n".join(p.register_complaints())
    assert "has no row for field decoding.seed of preset he2024, which has '42'" in said
    assert "has the field decoding.samples of preset he2024 twice" in said
    assert "says 'hot' for field decoding.sauce of preset he2024, the preset has no such field" in said
