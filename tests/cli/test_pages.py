"""The report on the command line."""

from uetrust.cli.cli import main


def test_a_report_is_shown_without_being_written_again(tmp_path, monkeypatch, capsys):
    import webbrowser

    from uetrust.core import settings

    shown = []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    monkeypatch.setattr(settings, "out_dir", lambda name: tmp_path)
    (tmp_path / "report").mkdir()
    page = tmp_path / "report" / "index.html"
    page.write_text("as it was")
    assert main(["report", "--profile", "smoke", "--open"]) == 0
    assert shown == [page.as_uri()]
    assert page.read_text() == "as it was"
    assert page.as_uri() in capsys.readouterr().out
