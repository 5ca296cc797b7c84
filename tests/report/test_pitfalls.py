"""Pitfalls of an audit at the edges of what counts as one, and panels as values."""

from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest

from tests.helpers.audit_edges import judged, pairs
from uetrust.evaluation.prr import prr
from uetrust.report.pitfalls import PITFALLS, Audited, Panel, audit_panel, audit_panels


def found_by(pitfall, quality, uncertainty=None, main=None, **more):
    "What one pitfall says of columns: (columns, numbers, sentence) of each finding"
    quality = pd.DataFrame(quality).astype(float)
    unsure = pd.DataFrame(uncertainty or dict(u=np.arange(len(quality)))).astype(float)
    return list(PITFALLS[pitfall][2](Audited(quality, unsure, main or quality.columns[0], **more)))


def spread(n):
    return np.arange(n) / n


# Values that are codes
@pytest.mark.parametrize("code", [-1, -9, -99, -100, -999, -1000, -9999, 99, 999, 9999, 99999])
def test_every_code_that_people_use_for_missing_is_found_and_no_neighbour_of_it(code):
    ((columns, numbers, sentence),) = found_by("sentinels", dict(q=[*spread(9), code]))
    assert columns == ["q"] and numbers == dict(values=1, of=10, lowest=0, highest=spread(9)[-1])
    assert f"q is {code:g} for 1 of 10 texts; all others lie in [0, 0.889]: make it missing" == sentence
    for near in {code - 1, code + 1} - {-1000, -999, -100, -99}:
        assert found_by("sentinels", dict(q=[*spread(9), near])) == []


@pytest.mark.parametrize(
    "values, codes",
    [
        ([90, 92, 94, 99], 1),  # 5 beyond the highest, more than half of the span of 4
        ([90, 94, 98, 99], 0),  # 1 beyond, less than half of 8
        ([80, 90, 92, 99], 1),  # 7 beyond, more than half of 12
        ([80, 88, 93, 99], 0),  # 6 beyond, less than half of 13
        ([-7, -5, -3, -9], 0),  # 2 below, exactly half of 4
        ([95, 93, 97, 99], 0),  # 2 above, exactly half of 4
        ([-6, -5, -3, -9], 1),
        ([0.5, 0.7, -99], 0),  # Two others are too few to say what is usual
    ],
)
def test_a_code_lies_half_a_span_beyond_all_other_values(values, codes):
    assert len(found_by("sentinels", dict(a=[1.0] * len(values), q=values))) == codes


def test_every_column_is_searched_for_codes():
    found = found_by("sentinels", dict(a=[1, 2, 3, 4], q=[1, 2, 3, 999]), dict(u=[1, 2, 3, -99]))
    assert [columns for columns, *_ in found] == [["q"], ["u"]]
    gaps = [np.nan, 1, 2, 3]
    assert found_by("sentinels", dict(q=[np.nan] * 4, r=gaps), dict(u=[np.nan, 1, 2, 999.0])) == []


@pytest.mark.parametrize(
    "values, replies",
    [
        ([-1, 0, 3, 5], 1),
        ([-1, -1, 0, 2], 2),
        ([-1, 1, 3, 5.5], 0),  # Not a scale of whole numbers
        ([-2, -1, 3, 5], 0),
        ([-1, -1, -1], 0),  # Nothing else says that it is a scale
        ([0, 1, 2], 0),
    ],
)
def test_minus_1_on_a_scale_of_whole_numbers_is_a_failed_reply(values, replies):
    found = found_by("failed_replies", dict(judge=values), dict(u=values))
    assert [numbers for _, numbers, _ in found] == [dict(replies=replies, of=len(values))] * (replies > 0)
    assert all(f"judge is -1 for {replies} of {len(values)} texts" in sentence for *_, sentence in found)


# Ties, copies, constants, rare labels
@pytest.mark.parametrize(
    "at, tied, findings",
    [
        (-1, 9, 0),  # The one bad text is the most certain or the 9th, but fewer than a tenth are tied
        (-1, 10, 1),
        (200, 10, 0),  # It is the last or the 10th from the end: PRR 1 or .90
        (200, 12, 1),  # PRR 1 or .88
    ],
)
def test_a_tenth_of_tied_values_that_move_the_prr_by_a_tenth_is_reported(at, tied, findings):
    quality, unsure = np.arange(100) > 0, np.r_[np.full(tied, at), np.arange(100 - tied)]
    found = found_by("ties", dict(q=quality), dict(u=unsure))
    assert len(found) == findings
    for columns, numbers, sentence in found:
        bounds = prr(quality.astype(float), unsure.astype(float))
        assert columns == ["u"] and numbers == dict(
            tied_share=tied / 100, lowest=bounds.tie_lo, highest=bounds.tie_hi
        )
        assert f"{tied}% of the values of u are tied" in sentence


def test_ties_are_looked_for_under_the_main_quality_and_in_columns_without_values():
    same = dict(u=[1.0] * 20, gone=[np.nan] * 20)
    found = found_by("ties", dict(q=spread(20), other=spread(20)), same)
    assert [columns for columns, *_ in found] == [["u"]] and found[0][1]["tied_share"] == 1


@pytest.mark.parametrize("copies, findings", [(1, 0), (2, 1)])
def test_more_than_one_copy_in_a_hundred_is_reported(copies, findings):
    values = np.r_[np.arange(200 - copies - 1), np.zeros(copies + 1)]
    found = found_by("duplicates", dict(q=values), dict(u=values))
    assert len(found) == (copies + 1 > 2)
    for _, numbers, sentence in found:
        assert numbers == dict(rows=200, different=200 - copies - 1)
        assert (
            f"200 rows are {199 - copies} different rows: errors are too small; remove the copies" in sentence
        )


@pytest.mark.parametrize("levels", [9, 10, 11, 49])
def test_coarse_rows_repeat_by_nature(levels):
    values = np.arange(100) % levels
    assert found_by("duplicates", dict(q=values), dict(u=values)) == []


@pytest.mark.parametrize("times, findings", [(1, 0), (2, 1), (3, 1), (10, 1)])
def test_fine_uncertainties_that_all_occur_several_times_are_rows_of_one_text(times, findings):
    unsure = np.repeat(np.random.default_rng(0).normal(size=30), times)
    quality = np.arange(len(unsure)) % 5
    found = found_by("duplicates", dict(q=quality), dict(u=unsure, v=np.round(unsure, 1)))
    assert len(found) == findings
    for _, numbers, sentence in found:
        assert numbers == dict(rows=30 * times, different=30) and "30 different texts" in sentence


def test_a_fine_score_of_few_values_does_not_repeat_regularly():
    "An entropy of ten samples has 42 values, some of them rare."
    counts = np.random.default_rng(0).geometric(0.15, size=200)
    assert found_by("duplicates", dict(q=counts % 2), dict(u=np.log(counts + 1.5))) == []


def test_texts_of_one_document_are_reported_whatever_their_levels():
    document = pd.Series(np.arange(100) // 2)
    ((_, numbers, sentence),) = found_by("duplicates", dict(q=np.arange(100) % 2), document=document)
    assert numbers == dict(rows=100, different=50)
    assert sentence == "100 rows are 50 documents: errors, null intervals and p-values are by document"
    assert found_by("duplicates", dict(q=np.arange(100) % 2), document=pd.Series(range(100))) == []
    assert found_by("duplicates", dict(q=np.arange(100) % 2), document=pd.Series([0, *range(99)])) == []


def test_a_constant_metric_has_its_value_in_the_sentence():
    found = found_by("constant", dict(q=[1, 2, 3], judge=[np.nan, 3, 3], gone=[np.nan] * 3, two=[1, 1, 2]))
    assert found == [(["judge"], dict(value=3, n=2), "judge is 3 for every text: no PRR exists")]


@pytest.mark.parametrize("rare, n, findings", [(19, 100, 1), (20, 100, 0), (20, 1000, 0), (21, 1100, 1)])
def test_a_label_of_fewer_than_20_texts_or_2_percent_is_rare(rare, n, findings):
    label = np.arange(n) < rare
    for values in (label, ~label):
        found = found_by("base_rate", dict(q=spread(n), right=values))
        assert len(found) == findings
        for columns, numbers, sentence in found:
            assert columns == ["right"] and numbers == dict(rare=rare, of=n)
            assert f"right has {rare} of {n} texts ({rare / n:.1%}) in its rarer class" == sentence
    assert found_by("base_rate", dict(q=np.r_[label[1:], 2])) == [], "three values are no label"


# Length and direction
def orthogonal(n):
    "Three columns that do not correlate"
    rng = np.random.default_rng(0)
    base = pd.DataFrame(rng.normal(size=(n, 3)))
    whole, _ = np.linalg.qr(base - base.mean())
    return whole


@pytest.mark.parametrize("strength, findings", [(0.5, 1), (0.15, 0)])
def test_length_must_pull_both_by_a_fifth(strength, findings):
    whole = orthogonal(2000)
    words = whole[:, 0]
    other = np.sqrt(1 - strength**2)
    quality = -strength * words + other * whole[:, 1]
    unsure = strength * words + other * whole[:, 2] + 0.2 * other * (-whole[:, 1]) * (strength < 0.2)
    found = found_by("length", dict(q=quality), dict(u=unsure), length=pd.Series(words))
    assert len(found) == findings
    for columns, numbers, sentence in found:
        assert columns == ["u", "q"] and abs(numbers["at_equal_length"]) < abs(numbers["together"]) / 2
        r = pd.DataFrame(dict(u=unsure, q=quality, w=words)).corr("spearman")
        assert (numbers["with_length"], numbers["quality_with_length"], numbers["together"]) == (
            pytest.approx((r.at["u", "w"], r.at["q", "w"], r.at["u", "q"]))
        )
        assert f"u and q correlate by {r.at['u', 'q']:.2f} (Spearman), at equal length by" in sentence


def test_few_texts_need_a_stronger_pull_of_length():
    "Of 20 texts a correlation of 2.6 / sqrt(20) = .58 is chance; the same of 2,000 texts is not."
    rng = np.random.default_rng(1)
    for n, findings in ((20, 0), (2000, 1)):
        words = rng.normal(size=n)
        quality, unsure = -0.5 * words + rng.normal(size=(n)), 0.5 * words + rng.normal(size=n)
        assert len(found_by("length", dict(q=quality), dict(u=unsure), length=pd.Series(words))) == findings


def test_a_method_that_is_length_has_nothing_left_at_equal_length():
    words = pd.Series(np.arange(100.0))
    ((_, numbers, _),) = found_by("length", dict(q=-words), dict(u=words), length=words)
    assert numbers["at_equal_length"] == 0 and numbers["together"] == -1


def lengthy(noise=0.3, sign=1, seed=0):
    "Words, a token F1 that they pull down, labels that they leave alone, and a method that is little else"
    rng = np.random.default_rng(seed)
    words = rng.integers(1, 60, 400)
    human, f1 = (rng.random(400) < 0.7).astype(float), 1 / words + 0.05 * rng.random(400)
    unsure = sign * (words + 17 * noise * rng.normal(size=400))
    return pd.DataFrame(dict(human=human, token_f1=f1, words=words, u=unsure))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_method_that_is_a_length_is_reported_with_what_the_length_alone_has(sign):
    df = lengthy(sign=sign)
    found = judged(df, "u", ["human", "token_f1"], length="words").findings.set_index("pitfall")
    numbers, reported = found.loc["length_alone", ["numbers", "sentence"]]
    alone, people = (prr(df[name], sign * df["words"]) for name in ("token_f1", "human"))
    assert numbers == pytest.approx(
        dict(with_length=df[["u", "words"]].corr("spearman").iloc[0, 1], prr=alone.value, lo=alone.lo)
        | dict(hi=alone.hi, by_people=people.value, by_people_lo=people.lo, by_people_hi=people.hi)
    )
    assert "under token_f1, which divides by the number of words, the length alone has PRR" in reported
    assert f"{people.value:.2f} [{people.lo:.2f}, {people.hi:.2f}] by human on 400 texts" in reported


@pytest.mark.parametrize("noise, findings", [(0.3, 1), (0.6, 0)])
def test_a_method_is_a_length_from_a_rank_correlation_of_9_tenths(noise, findings):
    df = lengthy(noise)
    more = dict(length=df["words"].astype(float), by_people=True)
    assert len(found_by("length_alone", df[["human", "token_f1"]], dict(u=df["u"]), **more)) == findings


def test_a_length_that_says_nothing_under_the_metric_is_no_finding():
    df = lengthy()
    more = dict(length=df["words"].astype(float), by_people=True)
    noise = df.assign(metric=np.random.default_rng(9).random(400))[["human", "metric"]]
    assert found_by("length_alone", noise, dict(u=df["u"]), **more) == []
    assert found_by("length_alone", df[["human"]], dict(u=df["u"]), **more) == []
    named = dict(reference=df["token_f1"])  # What is named the truth is what people say
    assert found_by("length_alone", named, dict(u=df["u"]), **more) == []
    assert found_by("length_alone", df[["human", "token_f1"]], dict(u=df["u"])) == []


def test_without_labels_by_people_the_audit_says_so():
    df = lengthy().rename(columns=dict(token_f1="overlap"))
    ((columns, numbers, sentence),) = found_by(
        "length_alone", df[["overlap"]], dict(u=df["u"]), length=df["words"].astype(float)
    )
    assert columns == ["u", "overlap"] and "by_people" not in numbers
    assert "under overlap the length alone" in sentence and "without labels by people" in sentence


def test_a_direction_is_wrong_where_the_whole_interval_and_chance_say_so():
    rng = np.random.default_rng(2)
    quality = rng.normal(size=60)
    for noise, findings in ((0.5, 1), (6.0, 0)):
        found = found_by(
            "direction", dict(q=quality, other=-quality), dict(u=quality + noise * rng.normal(size=60))
        )
        assert len(found) == findings
    assert found_by("direction", dict(q=quality), dict(u=-quality)) == []
    few = found_by("direction", dict(q=[1.0, 2, 3, 4, 5]), dict(u=[1.0, 2, 3, 4, 5]))
    assert few == [], "of five texts the reverse order is no proof"


@pytest.mark.parametrize("n, methods, compared", [(9, 2, False), (10, 2, True), (30, 1, False)])
def test_two_methods_and_ten_texts_can_be_compared(n, methods, compared):
    quality, unsure = pairs(n, methods)
    found = Audited(pd.DataFrame(dict(q=quality)), pd.DataFrame(unsure), "q")
    assert (found.compared is not None) == compared
    if not compared:
        assert found.best == list(found.main_prr["method"])


def test_a_label_can_be_compared_and_a_constant_cannot():
    _, unsure = pairs(40)
    label = pd.DataFrame(dict(q=(np.arange(40) % 2).astype(float), flat=1.0))
    assert Audited(label, pd.DataFrame(unsure), "q").compared is not None
    assert Audited(label, pd.DataFrame(unsure), "flat").compared is None


def test_methods_are_ordered_by_the_main_quality_and_those_without_prr_are_left_out():
    quality, unsure = pairs(50, 3)
    unsure |= dict(gone=np.full(50, np.nan))
    found = Audited(pd.DataFrame(dict(q=quality, r=-quality)), pd.DataFrame(unsure), "q")
    assert list(found.main_prr["method"]) == ["u0", "u1", "u2"] and set(found.main_prr["metric"]) == {"q"}
    assert list(found.main_prr.index) == [0, 1, 2]


# What it says
def test_a_panel_is_a_value_with_plain_numbers():
    panel = Panel("Title", pd.DataFrame(dict(a=[1])), "Said.")
    assert panel.to_dict() == dict(title="Title", sentence="Said.", page="", table=[dict(a=1)])
    with pytest.raises(FrozenInstanceError):
        panel.title = "Other"


def test_two_panels_cannot_have_one_name():
    name = next(iter(audit_panels()))

    def find(audited):
        return None

    find.__name__, find.__module__ = name, "elsewhere"
    with pytest.raises(ValueError, match=f"two panels are named '{name}': in uetrust.report.*, elsewhere"):
        audit_panel(find)
    modules = [panel.__module__ for panel in audit_panels().values()]
    assert modules == sorted(modules) and len(set(modules)) > 3


@pytest.mark.parametrize(
    "times, findings",
    [
        ([4] * 12, 1),
        ([3, 6] * 6, 1),  # 1.5 around a mean of 4.5
        ([2, 6] * 6, 0),  # 2 around a mean of 4: half of it
        ([2] * 9 + [10] * 3, 0),  # 3.5 around a mean of 4
        ([4] * 9, 0),  # Nine values that repeat may be a coarse score
    ],
)
def test_texts_are_seen_by_their_uncertainty_where_each_occurs_about_equally_often(times, findings):
    unsure = np.repeat(np.random.default_rng(0).normal(size=len(times)), times)
    found = found_by("duplicates", dict(q=np.arange(len(unsure))), dict(u=unsure))
    assert [numbers["different"] for _, numbers, _ in found] == [len(times)] * findings
