"""The playground in a real browser: its arithmetic is Python's, its panels move, nothing leaves the page."""

import json
import random
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tests.helpers.browser import ROOT, page_problems
from uetrust import playground, prr, prr_difference, prr_table, rejection_curve
from uetrust.evaluation import cells
from uetrust.evaluation.atlas import prr_atlas
from uetrust.evaluation.measures import spearman_uq
from uetrust.evaluation.pairs import auroc
from uetrust.evaluation.thresholds import auc, hindsight_accuracy, learn_thresholds
from uetrust.report.playground import (
    _panel_numbers,
    _panel_state,
    _playground_module,
    playground_file,
    playground_panels,
    write_playground,
)

TOLERANCE = 1e-12  # Of a number, or of 1 where it is smaller
SINGLE = {
    "structured_uncertainty",
    "prior_networks",
}  # Their random order is in single precision, as released
SINGLE_TOLERANCE = 1e-5  # In per cent
CASES = 1000
PANELS = list(playground_panels())
FIELDS = ("value", "se", "lo", "hi", "null_sd", "tie_sd", "tie_lo", "tie_hi")


@pytest.fixture(scope="module")
def js(watched):
    "`js('name', argument, ...)`: a function of math.js, run in the browser"
    blob = "src => import(URL.createObjectURL(new Blob([src], {type: 'text/javascript'})))"
    watched.page.goto("about:blank")
    watched.page.evaluate(f"{blob}.then(found => {{ window.math = found }})", playground_file("math.js"))
    return lambda name, *args: watched.page.evaluate("([name, args]) => math[name](...args)", [name, args])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    "A page with nothing but the playground"
    folder = tmp_path_factory.mktemp("playground")
    write_playground(folder)
    page = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Playground</title>
    <meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
    <style>html {color-scheme: light dark} body {margin: 0; background: light-dark(#fff, #17191d)}</style>
    <link rel="stylesheet" href="playground.css"><script src="playground.js" defer></script></head>
    <body><main><h1 style="color: light-dark(#000, #fff)">Playground</h1><div data-playground></div></main>"""
    (folder / "playground.html").write_text(page)
    return folder / "playground.html"


def differs(ours, theirs, tolerance=TOLERANCE):
    "Largest difference in units of the tolerance; NaN stands for NaN only"
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    assert ours.shape == theirs.shape
    same = (np.isnan(ours) & np.isnan(theirs)) | (ours == theirs)
    with np.errstate(invalid="ignore"):
        away = np.abs(ours - theirs) / np.maximum(1, np.abs(theirs)) / tolerance
    return float(np.where(same, 0, np.where(np.isnan(away), np.inf, away)).max(initial=0))


# Arithmetic
def dropped_digits(quality, left_out=0):
    """How many times the tolerance both languages are off, where values are large against their range

    With `left_out` 1, against the range that is left without the text at either end, as in a jackknife.
    """
    present = np.sort(quality[~np.isnan(quality)])
    ranges = [np.ptp(part) for part in (present[left_out:], present[: len(present) - left_out]) if len(part)]
    return max(1, np.abs(present).max(initial=0) / min([r for r in ranges if r > 0], default=np.inf))


def quality_of(rng, n):
    kinds = (
        lambda: rng.normal(size=n),
        lambda: rng.standard_cauchy(n),
        lambda: np.exp(5 * rng.normal(size=n)),
        lambda: rng.integers(0, 2, n).astype(float),
        lambda: rng.integers(1, 6, n).astype(float),
        lambda: 1e6 + rng.random(n),
        lambda: 1e-200 * rng.random(n),
        lambda: np.full(n, 0.1),
    )
    return kinds[rng.integers(len(kinds) - 1) if rng.random() < 0.97 else -1]()


def uncertainty_of(rng, n):
    scores = rng.normal(size=n)
    kinds = (
        scores,
        np.round(scores),
        np.ones(n),
        rng.standard_cauchy(n),
        np.where(scores > 1, np.inf, scores),
    )
    return kinds[rng.choice(5, p=[0.35, 0.3, 0.05, 0.2, 0.1])]


def case(rng):
    "Quality, two uncertainties and options; some with missing values, most of few texts"
    n = int(rng.integers(0, 12)) if rng.random() < 0.3 else int(rng.integers(4, 150))
    columns = [quality_of(rng, n), uncertainty_of(rng, n), uncertainty_of(rng, n)]
    if rng.random() < 0.4:
        columns = [np.where(rng.random(n) < 0.1, np.nan, column) for column in columns]
    options = dict(ties=str(rng.choice(["average", "input", "best", "worst"])))
    area = rng.choice(3)
    options |= (dict(area="sum"), dict(max_rejection=float(rng.choice([0.3, 0.5, 0.9]))), {})[area]
    return columns, options


@pytest.fixture(scope="module")
def cases():
    rng = np.random.default_rng(20)
    return [case(rng) for _ in range(CASES)]


@pytest.fixture
def no_permutations(monkeypatch):
    "p-values are not part of the playground, and the permutations behind them take most of the time"
    monkeypatch.setattr(cells, "permutation_p", lambda weights, risk: np.full(len(weights), np.nan))


def lists(columns):
    return [column.tolist() for column in columns]


PLAIN = "(key, value) => typeof value === 'number' && !Number.isFinite(value) ? String(value) : value"


def many(watched, body, arguments):
    "One call for all cases, as text because it is faster: `body` is JavaScript of one case"
    values = f"JSON.stringify({json.dumps(arguments)}.map({body}), {PLAIN})"
    return json.loads(watched.page.evaluate(values))


def test_prr_and_its_errors_are_those_of_python(watched, js, cases, no_permutations):
    given = [[*lists(columns[:2]), options] for columns, options in cases]
    found = many(watched, "([q, u, o]) => math.prr(q, u, o)", given)
    worst, defined = dict.fromkeys(FIELDS, 0.0), 0
    for (columns, options), ours in zip(cases, found):
        theirs = prr(*columns[:2], **options)
        assert ours["n"] == theirs.n
        defined += not np.isnan(theirs.value)
        for name in FIELDS:
            dropped = dropped_digits(columns[0], left_out=name in ("se", "lo", "hi"))
            away = differs(ours[name], getattr(theirs, name)) / dropped
            worst[name] = max(worst[name], away)
    assert defined > 0.8 * CASES
    assert max(worst.values()) < 1, worst


def test_differences_are_those_of_python(watched, js, cases):
    found = many(
        watched, "([q, a, b]) => math.prrDifference(q, a, b)", [lists(columns) for columns, _ in cases]
    )
    for (columns, _), ours in zip(cases, found):
        theirs = prr_difference(*columns)
        assert ours["n"] == theirs.n
        for name in ("value", "se", "p"):
            dropped = dropped_digits(columns[0], left_out=name != "value")
            assert differs(ours[name], getattr(theirs, name)) < dropped, (name, columns)


def complete(columns):
    "Complete pairs with a quality and an uncertainty that vary"
    quality, uncertainty = columns[:2]
    both = ~(np.isnan(quality) | np.isnan(uncertainty))
    quality, uncertainty = quality[both], uncertainty[both]
    if len(quality) > 2 and np.ptp(quality) > 0 and len(set(uncertainty)) > 1:
        return quality, uncertainty


def test_curves_and_rank_measures_are_those_of_python(watched, js, cases):
    pairs = [pair for columns, _ in cases if (pair := complete(columns))]
    assert len(pairs) > 0.7 * CASES
    body = "([q, u, y]) => [math.rejectionCurve(q, u), math.spearman(q, u), math.auroc(y, u), math.auc(y, u)]"
    labels = [(quality > np.median(quality)) * 1.0 for quality, _ in pairs]
    found = many(watched, body, [lists([*pair, y]) for pair, y in zip(pairs, labels)])
    for (quality, uncertainty), y, (curve, rho, ours, other) in zip(pairs, labels, found):
        theirs = rejection_curve(quality, uncertainty)
        scale = max(1, float(np.abs(theirs["random_hi"]).max()))  # Risks have the unit of quality
        for name in ("coverage", "risk", "oracle", "random_lo", "random_hi"):
            assert differs(np.array(curve[name]) / scale, theirs[name] / scale) < 1, name
        assert differs(rho, spearman_uq(quality, uncertainty)) < 1
        assert differs(other, auc(y, uncertainty)) < 1
        if 0 < y.sum() < len(y):
            assert differs(ours, auroc(y, uncertainty)) < 1


def test_every_definition_is_that_of_python(watched, js, cases, no_permutations):
    "A quarter of the cases: each needs thousands of shuffles in Python."
    pairs = [pair for columns, _ in cases[: CASES // 4] if (pair := complete(columns))]
    pairs.sort(key=lambda pair: len(pair[0]))  # Python keeps the shuffles of the last sizes
    found, seen = many(watched, "([q, u]) => math.prrAtlas(q, u)", [lists(pair) for pair in pairs]), set()
    for pair, ours in zip(pairs, found):
        theirs = prr_atlas(*pair).set_index("definition")["value"]
        assert list(ours) == list(theirs.index)
        for name, value in theirs.items():
            seen |= {name} if np.isfinite(value) else set()
            tolerance = SINGLE_TOLERANCE if name in SINGLE else TOLERANCE
            assert differs(ours[name], value, tolerance) < dropped_digits(pair[0]), (name, ours[name], value)
    assert seen == set(theirs.index)


def test_a_grid_is_the_table_of_python(js, no_permutations):
    rng = np.random.default_rng(3)
    quality, uncertainty = rng.normal(size=(60, 4)), np.round(rng.normal(size=(60, 5)))
    ours = js("prrGrid", quality.T.tolist(), uncertainty.T.tolist())
    theirs = prr_table(pd.DataFrame(quality), pd.DataFrame(uncertainty))
    assert differs(np.ravel(ours["values"]), theirs["value"]) < 1
    assert differs(ours["nullSd"] * 5, theirs["null_sd"]) < 1


def test_thresholds_are_those_of_python(watched, js):
    rng, given = np.random.default_rng(4), []
    for _ in range(200):
        n = int(rng.integers(4, 200))
        labels = np.r_[0, 1, rng.integers(0, 2, n - 2)]
        given.append((np.round(rng.normal(size=n) + rng.normal() * labels, int(rng.integers(1, 5))), labels))
    body = "([x, y]) => [math.logisticThreshold(x, y).at, math.hindsightAccuracy(x, y)]"
    for (x, y), (at, best) in zip(given, many(watched, body, [lists(pair) for pair in given])):
        theirs = learn_thresholds(x[:, None], y).at[0]
        assert differs(at, theirs, 1e-9) < 1  # Newton's steps end where the gradient is 1e-8 of the texts
        assert differs(best, hindsight_accuracy(x[:, None], y)[0]) < 1


@pytest.mark.parametrize("seed", [0, 1, 50, 2**32 - 1])
def test_draws_are_those_of_numpy(watched, js, seed):
    body = """seed => { const rng = new math.RandomState(seed);
      return [rng.rand(700), rng.randn(701), rng.shuffle([...Array(300).keys()]), rng.rand(3)] }"""
    uniform, normal, shuffled, after = watched.page.evaluate(body, seed)
    rng, order = np.random.RandomState(seed), np.arange(300)
    assert uniform == rng.rand(700).tolist() and differs(normal, rng.randn(701)) < 1
    rng.shuffle(order)
    assert shuffled == order.tolist() and after == rng.rand(3).tolist()


@pytest.mark.parametrize(
    "quality,says", [([1, np.inf, 3], "infinity at position 1"), ([1, 2], "2 and 3 values")]
)
def test_bad_input_is_an_error(watched, js, quality, says):
    with pytest.raises(Exception, match=says):
        js("prr", quality, [1, 2, 3])


# Panels
def opened(watched, site, fragment=""):
    page = watched.open(site)
    page.goto("about:blank")
    watched.wrong = []
    page.goto(site.as_uri() + fragment)
    return page


def shown(page):
    cells = page.evaluate("[...document.querySelectorAll('td')].map(e => [e.dataset.name, e.dataset.value])")
    return {name: float(value) for name, value in cells}


def address(page):
    "As the page has it; Playwright's own copy comes a moment later"
    return page.evaluate("location.href")


def drawn_state(panel, rng):
    "A state of the sliders, and what it stands for in an address"
    state = {}
    for control in playground_panels()[panel]["controls"]:
        if "choices" in control:
            state[control["name"]] = rng.choice(control["choices"])
        elif "step" in control:
            most = dict(n=state.get("n"), **{"n / 2": state.get("n", 0) // 2}).get(
                control["max"], control["max"]
            )
            steps = rng.randint(0, round((most - control["min"]) / control["step"]))
            state[control["name"]] = round(control["min"] + steps * control["step"], 6)
    return _panel_state(panel, state)


@pytest.mark.parametrize("panel", [panel for panel in PANELS if panel != "own"])
def test_the_python_of_a_panel_gives_its_numbers(watched, site, panel):
    "The first state and seven drawn ones, each restored from its address; the shown code is executed"
    rng = random.Random(panel)
    for state in [_panel_state(panel, {})] + [drawn_state(panel, rng) for _ in range(7)]:
        page = opened(watched, site, playground(panel, **state).fragment)
        names = {}
        exec(compile(page.text_content("code"), panel, "exec"), names)
        ours, theirs = shown(page), names["numbers"]
        assert list(ours) == list(theirs) and watched.wrong == []
        for name, value in theirs.items():
            tolerance = (
                SINGLE_TOLERANCE if name in SINGLE else 1e-9 if name.startswith("power") else TOLERANCE
            )
            assert differs(ours[name], value, tolerance) < 1, (name, ours[name], value, state)
        assert _panel_numbers(panel, state) == pytest.approx(theirs, nan_ok=True)
        assert page.inner_text(".says").count("NaN") == 0


NARROW = [
    ("chance", dict(n=1000, bad=20, shared=0.95)),
    ("thresholds", dict(n=50, separation=2, shift=3, good=10, draw=27)),
]


@pytest.mark.parametrize("panel,state", NARROW)
def test_no_bar_of_a_histogram_leaves_its_figure(watched, site, panel, state):
    page = opened(watched, site, playground(panel, **state).fragment)
    bars = page.evaluate("[...document.querySelectorAll('rect.fill')].map(e => +e.getAttribute('y'))")
    top = page.evaluate("Math.min(...[...document.querySelectorAll('.grid')].map(e => e.getAttribute('y1')))")
    assert len(bars) > 80 and min(bars) > 19.99 and top > 19.99


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_is_clean_at_both_widths_and_in_both_schemes(watched, site, panel):
    for name in PANELS:
        (site.parent / f"{name}.html").write_text(
            site.read_text().replace("<head>", f"<head><script>location.hash = 'panel={name}'</script>")
        )
    assert page_problems(watched, site.parent / f"{panel}.html") == []


def test_the_keyboard_moves_a_slider_and_the_number_changes(watched, site):
    page = opened(watched, site, "#panel=drag&n=12&position=3")
    before = shown(page)["PRR"]
    page.get_by_label("Position of the worst text").focus()
    page.keyboard.press("ArrowLeft")
    assert shown(page)["PRR"] < before and "position 2" in page.inner_text(".says")
    page.keyboard.press("End")
    assert shown(page)["PRR"] == pytest.approx(1) and "position=12" in address(page)
    assert page.get_by_role("img").get_attribute("aria-label") == page.inner_text(".says")


def test_all_controls_are_reached_by_the_tabulator(watched, site):
    page = opened(watched, site, "#panel=ties")
    reached = set()
    for _ in range(25):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    controls = page.evaluate("[...document.querySelectorAll('input, select')].map(e => e.id)")
    assert set(controls) < reached and {"A", "SUMMARY"} < reached
    names = page.evaluate("[...document.querySelectorAll('input, select')].map(e => e.labels.length)")
    assert names == [1] * len(controls)


def test_the_worst_text_is_dragged(watched, site):
    page = opened(watched, site, "#panel=drag&n=12&position=3")
    before, box = shown(page)["PRR"], page.locator(".handle").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 30, steps=5)
    page.mouse.up()
    after = shown(page)["PRR"]
    assert after > before and "position=3" not in address(page)
    page.mouse.move(box["x"] + 300, box["y"])
    assert shown(page)["PRR"] == after  # Let go
    assert watched.wrong == []


def test_a_link_restores_the_state(watched, site):
    page = opened(watched, site, "#panel=noise&n=150&methods=7")
    page.get_by_label("Another draw").focus()
    page.keyboard.press("ArrowRight")
    link, before = page.get_by_text("Link to this state").get_attribute("href"), shown(page)
    assert "draw=1" in link and address(page).endswith(link)
    page.get_by_role("link", name="Long texts").click()
    page.wait_for_selector("text=Long texts >> nth=1")
    assert "correlation of metric and truth" in shown(page)
    page.go_back()
    page.wait_for_selector("text=A heat map of nothing >> nth=1")
    assert shown(page) == before == shown(opened(watched, site, link))


@pytest.mark.parametrize(
    "fragment", ["#panel=drop", "#x", "#panel=drag&n=1000&position=-3&area=x&others=%3Cb%3E"]
)
def test_an_address_that_nobody_wrote_gives_a_panel(watched, site, fragment):
    page = opened(watched, site, fragment)
    assert -20 < shown(page)["PRR"] <= 1 and watched.wrong == []
    assert page.locator("b").count() == 0


def test_a_slider_whose_end_depends_on_another_stays_inside(watched, site):
    page = opened(watched, site, "#panel=drag&n=20&position=20")
    page.get_by_label("Texts", exact=True).focus()
    page.keyboard.press("Home")
    assert "n=4&position=4" in address(page)


def test_motion_is_reduced_where_requested(watched, site):
    page = opened(watched, site, "#panel=drag")
    seconds = "getComputedStyle(document.querySelector('.handle')).transitionDuration"
    assert page.evaluate(seconds) != "0s"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(seconds) in ("0s", "1e-05s")
    page.emulate_media(reduced_motion="no-preference")


# Own file
def put(page, path):
    page.get_by_label("File").set_input_files(path)
    page.wait_for_function("document.querySelector('td') || document.querySelector('.failed')")


def scores(n=30):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        dict(id=[f"text {i}" for i in range(n)], rouge=rng.random(n), msp=rng.normal(size=n))
    )
    table.loc[[3, 8], "rouge"] = np.nan
    return table


@pytest.mark.parametrize("name", ["own.csv", "own.tsv", "own.jsonl"])
def test_a_file_of_ones_own(watched, site, tmp_path, monkeypatch, name):
    "It is read, the columns are chosen, and the shown Python gives the same numbers of the same file"
    table = scores()
    if name.endswith("jsonl"):
        table.to_json(tmp_path / name, orient="records", lines=True)
    else:
        table.to_csv(tmp_path / name, index=False, sep="\t" if name.endswith("tsv") else ",")
    page = opened(watched, site, "#panel=own")
    put(page, tmp_path / name)
    assert page.get_by_label("Quality").input_value() == "rouge"
    assert page.get_by_label("Uncertainty", exact=True).input_value() == "msp"
    page.get_by_label("Larger uncertainty").select_option("larger is more certain")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(page.text_content("code"), name, "exec"), names)
    ours = shown(page)
    assert list(ours) == list(names["numbers"]) and ours["texts without a score"] == 2
    for key, value in names["numbers"].items():
        assert differs(ours[key], value) < 1, key
    assert watched.wrong == []


def test_a_file_is_dropped(watched, site):
    page = opened(watched, site, "#panel=own")
    text = scores().to_csv(index=False)
    page.evaluate(
        """text => { const carried = new DataTransfer(); carried.items.add(new File([text], "dropped.csv"));
        document.querySelector("section section").dispatchEvent(
          new DragEvent("drop", {dataTransfer: carried, bubbles: true, cancelable: true})) }""",
        text,
    )
    page.wait_for_selector("td")
    assert shown(page)["texts used"] == 28 and '"dropped.csv"' in page.text_content("code")


UNUSABLE = {
    "": "no text",
    "quality,uncertainty\n": "a heading and no row",
    "quality,uncertainty\n1,2\n3\n": "line 3 has 1 cells and the heading 2",
    'quality,uncertainty\n1,"2\n': "never closed",
    "quality,uncertainty\n1,2\ngood,3\n4,5\n": 'column "quality" holds "good" in row 2',
    "quality,uncertainty\n1,2\n,3\n4,5\n": "at least 3 are needed: 3 rows, of which 2 have both",
    "quality,uncertainty\n1,2\n1,3\n1,5\n": "all 3 texts have the same quality",
    "quality,uncertainty\n1,2\nInfinity,3\n1,5\n": "infinity at position 1",
}


@pytest.mark.parametrize("text", UNUSABLE)
def test_a_file_that_cannot_be_used_says_what_was_found(watched, site, tmp_path, text):
    (tmp_path / "scores.csv").write_text(text)
    page = opened(watched, site, "#panel=own")
    put(page, tmp_path / "scores.csv")
    assert UNUSABLE[text].lower() in page.inner_text(".says").lower() and watched.wrong == []
    assert shown(page) == {}


@pytest.mark.parametrize(
    "line,says",
    [("{not", "line 2 is not JSON: {not"), ("[1, 2]", "line 2 is not an object"), ("7", "line 2 is not")],
)
def test_a_line_that_is_no_object_is_named(watched, site, tmp_path, line, says):
    (tmp_path / "scores.jsonl").write_text(f'{{"quality": 1, "uncertainty": 2}}\n{line}\n')
    page = opened(watched, site, "#panel=own")
    put(page, tmp_path / "scores.jsonl")
    assert says in page.inner_text(".says")


def test_quoted_cells_and_markup_stay_text(watched, site, tmp_path):
    bad = "<img src=x onerror='window.ran = true'>"
    heading = f'"{bad}, with ""quotes""",uncertainty\r\n'
    (tmp_path / "scores.csv").write_text(heading + "".join(f"{i % 5},{i % 3}\r\n" for i in range(9)))
    page = opened(watched, site, "#panel=own")
    put(page, tmp_path / "scores.csv")
    assert shown(page)["texts used"] == 9 and page.evaluate("window.ran") is None
    assert page.get_by_label("Quality").input_value() == f'{bad}, with "quotes"'
    assert page.locator("img").count() == 0 and watched.wrong == []


def test_nothing_of_the_page_can_become_markup_or_a_request():
    source = "".join(playground_file(name) for name in ("math.js", "panels.js"))
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", source
    )
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|localStorage|cookie", source)


# In a notebook
def test_a_widget_and_python_share_the_state(watched, site):
    "The module as anywidget uses it: a slider moves the model, and the model moves the slider"
    page = opened(watched, site)
    page.set_content("<title>a notebook</title>")
    page.evaluate(
        """async src => {
          const made = await import(URL.createObjectURL(new Blob([src], {type: "text/javascript"})));
          const values = {panel: "drag", state: {n: 6, position: 1}}, heard = {};
          window.saved = [];
          window.model = {get: name => values[name], set: (name, value) => { values[name] = value },
            save_changes: () => saved.push(values.state), off: () => {}, heard, values,
            on: (name, f) => { heard[name] = f }};
          const el = document.body.appendChild(document.createElement("div"));
          made.default.render({model, el});
        }""",
        _playground_module(),
    )
    page.get_by_label("Position of the worst text").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("saved.at(-1).position") == 2
    assert page.get_by_text("Link to this state").count() == 0  # A notebook has no address for it
    page.evaluate("() => { model.values.state = {n: 6, position: 6}; model.heard['change:state']() }")
    assert shown(page)["PRR"] == pytest.approx(1) and watched.wrong == []


def test_a_kernel_shows_the_widget_and_no_kernel_the_picture():
    nbformat, client = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("anywidget")
    lines = ("from uetrust import playground", "p = playground('drag', n=6)")
    lines += ("p.widget.state = {**p.state, 'position': 6}", "p")
    cells = [nbformat.v4.new_code_cell("\n".join(lines)), nbformat.v4.new_code_cell("p.numbers['PRR']")]
    ran = client.execute(nbformat.v4.new_notebook(cells=cells), kernel_name="python3")
    first, second = (cell.outputs[-1]["data"] for cell in ran.cells)
    assert {"application/vnd.jupyter.widget-view+json", "image/svg+xml"} <= set(first)
    assert float(second["text/plain"]) == pytest.approx(1)
    assert set(playground("drag")._repr_mimebundle_()) == {"image/svg+xml", "text/plain"}


def test_a_picture_is_small_and_its_text_is_escaped():
    picture = playground("own", file="<b>.csv")._repr_mimebundle_()["image/svg+xml"]
    assert "&lt;b&gt;" in picture and "<b>" not in picture
    for panel in PANELS:
        assert len(json.dumps(playground(panel)._repr_mimebundle_())) < 6000


# Report and site
REPORT_ELSEWHERE = """
import sys
from pathlib import Path
from uetrust.cli import cli, pages
from uetrust.core import settings
settings.work_dir, pages.require_checkout = lambda: Path(sys.argv[1]), lambda what: None
sys.exit(cli.main(["report", "--profile", "smoke"]))
"""


def test_a_report_comes_with_the_playground(tmp_path):
    done = subprocess.run([sys.executable, "-c", REPORT_ELSEWHERE, tmp_path], capture_output=True, text=True)
    assert done.returncode and "files are missing" in done.stderr  # Nothing of the run is there
    assert "data-playground" in (tmp_path / "runs" / "smoke" / "report" / "playground.html").read_text()


@pytest.fixture(scope="module")
def docs_site(tmp_path_factory):
    "A site of two pages: an index, and a lesson that ends with a panel"
    import sys

    import nbformat

    sys.path.insert(0, str(ROOT / "scripts"))
    import build_docs

    work = tmp_path_factory.mktemp("site")
    (work / "nbs" / "lessons").mkdir(parents=True)
    panel = playground("drag", n=6, position=6)
    output = nbformat.v4.new_output("execute_result", panel._repr_mimebundle_(), execution_count=1)
    lesson = [nbformat.v4.new_markdown_cell("# Lesson"), nbformat.v4.new_code_cell("panel", outputs=[output])]
    index = [nbformat.v4.new_markdown_cell("# Index")]
    for path, cells_ in (("index.ipynb", index), ("lessons/01_lesson.ipynb", lesson)):
        nbformat.write(nbformat.v4.new_notebook(cells=cells_), work / "nbs" / path)
    assert build_docs.build(work / "nbs", work) == 0
    return work / "html"


def test_the_site_has_the_playground(watched, docs_site):
    page = opened(watched, docs_site / "playground.html", "#panel=thresholds&shift=3")
    assert "AUC on the new texts" in shown(page)
    page.get_by_label("Scores of the new texts").focus()
    page.keyboard.press("ArrowLeft")
    assert "shift=2.9" in address(page) and watched.wrong == []
    assert page_problems(watched, docs_site / "playground.html") == []
    assert 'href="playground.html"' in (docs_site / "index.html").read_text()
    assert "playground.js" not in (docs_site / "index.html").read_text()


def test_a_panel_of_a_lesson_lives_on_the_site(watched, docs_site):
    "Its picture gives way to the panel; where no script runs the picture stays"
    file = docs_site / "lessons" / "01_lesson.html"
    page = opened(watched, file)
    assert shown(page)["PRR"] == pytest.approx(1) and "PRR" in file.read_text()
    page.get_by_label("Position of the worst text").focus()
    page.keyboard.press("Home")
    before = shown(page)
    assert before["PRR"] < 0 and address(page) == file.as_uri()
    page.get_by_text("Link to this state").click()
    page.wait_for_url("**/playground.html#panel=drag*position=1*")
    assert shown(page) == before and watched.wrong == []
    assert page_problems(watched, file) == []
