"""The first page of a run: what is missing is named, and what has no data ends early."""

import os
import subprocess
import sys

import nbformat

from uetrust.core.settings import root
from uetrust.report.chapters import save_table
from uetrust.report.page import missing_files
from uetrust.report.site.write import write_report


def test_an_experiment_without_its_data_ends_early_and_the_report_says_so(tmp_path):
    "The real notebook in a checkout of its own: the run succeeds, and notebook and page name what is missing"
    for n in ("nbs", "uetrust", "data", "settings.ini"):
        (tmp_path / n).symlink_to(root() / n)
    env = os.environ | dict(
        UETRUST_MIRROR="/nonexistent", UETRUST_OFFLINE="1", UETRUST_CACHE=str(tmp_path / "cache")
    )
    run = [sys.executable, "-c", "import sys; from uetrust.cli.cli import main; sys.exit(main(sys.argv[1:]))"]
    out = tmp_path / "runs" / "smoke" / "notebooks" / "wrong_documents.ipynb"
    r = subprocess.run(
        [*run, "run", "nbs/experiments/ice/02_wrong_documents.ipynb", str(out), "profile=smoke"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "data not at hand: ice/data_sms.json" in r.stdout and "ended early" in r.stdout
    cells = [c for c in nbformat.read(out, 4).cells if c.cell_type == "code"]
    printed = [o.text for c in cells for o in c.outputs if o.output_type == "stream"]
    assert (
        len(printed) == 1
        and printed[0].startswith("data not at hand: ice/data_sms.json")
        and "were not run" in printed[0]
    )
    assert not any(o.output_type == "error" for c in cells for o in c.outputs)
    from uetrust.report.page import missing_files
    from uetrust.report.site.write import write_report

    folder = out.parents[1]
    assert "pages/wrong_documents.json" not in missing_files("smoke", folder)
    write_report("smoke", folder)
    page = (folder / "report" / "run.html").read_text()
    assert "Public data that are not at hand" in page and "data not at hand: ice/data_sms.json" in page


def test_report_names_what_is_missing(tmp_path):
    save_table("T9", tmp_path / "tables")
    made = sorted(path.relative_to(tmp_path) for path in (tmp_path / "tables").iterdir())
    assert not {str(path) for path in made} & set(missing_files("smoke", tmp_path))
    for path in made:  # Every file that a table consists of is expected
        (tmp_path / path).rename(tmp_path / "away")
        assert str(path) in missing_files("smoke", tmp_path)
        (tmp_path / "away").rename(tmp_path / path)
    (tmp_path / "tables" / "table09_cells.csv").unlink()
    missing = write_report("smoke", tmp_path)
    assert "tables/table09_cells.csv" in missing and missing == missing_files("smoke", tmp_path)
    assert f"{len(missing)} files are missing" in (tmp_path / "report" / "index.html").read_text()
    assert "table09_cells.csv" in (tmp_path / "report" / "run.html").read_text()
