"""Texts of lessons: bulletins that any clone has, or translations where they are at hand."""

import pytest

from uetrust.core.registry import reg
from uetrust.data.download import DataNotAtHand
from uetrust.report.lessons import texts as lesson
from uetrust.report.lessons.texts import LESSON_PAIRS, if_at_hand, lesson_bulletins, lesson_translations
from uetrust.statistics.scores import load_scores

load_scores()


def missing(*_, **__):
    raise DataNotAtHand("ro-en.tar.gz is not there")


def test_bulletins_are_cut_into_quality_and_uncertainty():
    found = lesson_bulletins()
    assert list(found.quality)[0] == "truth" and "msp" in found.uncertainty and not found.stand_in
    kinds = {name: reg[name].kind for name in [*found.quality, *found.uncertainty] if name in reg}
    assert {kinds[name] for name in found.quality if name in kinds} == {"nlg"}
    assert {kinds[name] for name in found.uncertainty if name in kinds} == {"ue"}
    assert len(found.quality) == len(found.uncertainty) == len(found.documents)
    assert f"{len(found.quality):,}" in found.name


@pytest.mark.parametrize("pair", LESSON_PAIRS)
def test_bulletins_stand_in_for_a_pair_that_is_not_at_hand(pair, monkeypatch, capsys):
    monkeypatch.setattr(lesson, "judged_translations", missing)
    found = lesson_translations(pair)
    assert found.stand_in and list(found.quality) == ["da_z", "hter", "chrf"]
    assert len(found.quality) == len(found.uncertainty) == len(found.documents) == 1000
    assert f"MLQE-PE {pair} is not at hand: 1,000 bulletins of" in capsys.readouterr().out


def test_a_section_without_its_file_is_passed_over_with_a_sentence(capsys):
    assert if_at_hand(missing, "x") is None and if_at_hand(int, "7") == 7
    assert "is passed over (ro-en.tar.gz is not there)" in capsys.readouterr().out
