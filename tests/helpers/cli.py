"""What the tests of cli share."""

from uetrust.cli.cli import main


def call(capsys, *argv):
    code = main([str(a) for a in argv])
    out = capsys.readouterr()
    return code, out.out, out.err
