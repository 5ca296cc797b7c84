"""Tools on the command line: exams, and parts of the bench."""

from uetrust.cli.cli import main
from uetrust.report.lessons.exam import exam_markdown


def test_exam_on_the_command_line(tmp_path, capsys):
    assert main(["exam", "--seed", "7", "--questions", "3"]) == 0
    assert capsys.readouterr().out == exam_markdown(7, 3)
    assert main(["exam", "--out", str(tmp_path / "a.md")]) == 0
    assert (tmp_path / "a.md").read_text() == exam_markdown(7, 10)
    assert main(["exam", "--questions", "0"]) == 2
    assert "at least 1 question" in capsys.readouterr().err


def test_a_table_of_all_parts_of_the_bench_is_refused(tmp_path, capsys):
    assert main(["bench", "--out", str(tmp_path / "x.csv")]) == 2
    assert "the table of one part" in capsys.readouterr().err
