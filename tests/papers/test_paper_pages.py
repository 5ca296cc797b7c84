"""Pages about the papers: sentences claim no more than their tables, and the pages keep to their form."""

import json

import nbformat
import numpy as np
import pandas as pd
import pytest

from uetrust.core.settings import root
from uetrust.papers.fflm import plots as fflm
from uetrust.papers.he2024 import human_tables as people
from uetrust.papers.ice import plots as ice
from uetrust.papers.threshold import sentences as threshold

FOLDERS = ("people", "ice", "fflm", "narcissism", "threshold", "ledger")
PAGES = [
    page for name in FOLDERS for page in sorted((root() / "nbs/experiments" / name).glob("[0-9]*.ipynb"))
]


def code_cells(page):
    return [cell for cell in nbformat.read(page, 4).cells if cell.cell_type == "code"]


def test_all_pages_are_looked_at():
    assert len(PAGES) == 21


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_cells_of_a_page_are_short(page):
    for cell in code_cells(page):
        lines = cell.source.splitlines()
        assert len(lines) <= 15 or all(not line or line[0] in "fi )" for line in lines), cell.source


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_where_its_numbers_come_from_and_what_to_change(page):
    cells = nbformat.read(page, 4).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    assert sum("page.opening(" in source for source in code) == 1 and "page.close(" in code[-1]
    assert [cell.source for cell in cells if cell.cell_type == "markdown"][-2] == "## Change this"
    parameters = next(cell.source for cell in cells if "parameters" in cell.metadata.get("tags", []))
    assert parameters.splitlines()[0].startswith("profile = ") and parameters.splitlines()[-1].startswith(
        "out = "
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_was_stored_without_errors(page):
    outputs = [output for cell in code_cells(page) for output in cell.outputs]
    assert any("Profile **" in json.dumps(output) for output in outputs)
    assert not any(output.output_type == "error" for output in outputs)


def test_an_undefined_prr_is_counted_and_no_perfect_method_is_promised():
    ends = pd.DataFrame(dict(no_prr=[0.19, 0.14, 0.12]), ["SOAF", "CO", "TME"])
    deviations = pd.DataFrame(dict(error=["EI"], null_sd=[0.25]))
    index = pd.MultiIndex.from_tuples([("power_sd", "EI"), ("power_sd", "CO")], names=["band", "error"])
    smallest = pd.DataFrame({100: [0.6, np.nan]}, index)
    said = people.undefined_sentence(ends, deviations, smallest)
    assert (
        said.startswith("In 19% of the draws of 100 summaries")
        and "no opinion is stated as fact" in said
        and "; for CO even a perfect method" in said
    )
    every = people.undefined_sentence(ends, deviations, smallest.fillna(0.9))
    assert every.endswith("±0.49 for extrinsic information (EI).")


def test_ways_that_were_not_run_are_named():
    said = threshold.coverage_sentence([("indata", "stump"), ("outdata", "isotonic")])
    assert said.startswith("13 of 15") and said.endswith("Missing: indata, stump; outdata, isotonic.")


def test_nothing_is_said_of_data_that_are_not_there():
    assert ice.record_sentence(None) == "" and people.missing_data_sentence(pd.DataFrame()) == ""
    assert fflm.stand_in_sentence(pd.DataFrame(dict(set=["FRANK"], doc=["a"]))) == ""


def test_texts_without_a_value_are_mentioned_once():
    about = dict(row="FFLM", group=["a", "b"], value=50.0, lo=40.0, hi=60.0, n=9)
    table = pd.DataFrame(about | dict(printed=np.nan, missing=[0, 3]))
    types = pd.DataFrame(columns=["group", "row", "type", "value"])
    got = {n: table.assign(column="spearman") for n in (2, 3, 4, 9)}
    said = fflm.fflm_sentences(dict(prompts=pd.DataFrame()), got, types, "toy")
    assert said[-1] == "FFLM is undefined for up to 3 texts of a set, which are left out." and len(said) == 2
