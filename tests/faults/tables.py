"""Tables of scores that are not what they seem: `uetrust prr`."""

from faults.harness import fault

HEADER = "id,judge,msp\n"
ROWS = ["a,5,.1\n", "b,4,.2\n", "c,3,.3\n", "d,1,.9\n"]
ASK = ["prr", "scores.csv", "--id", "id", "--quality", "judge", "--uncertainty", "msp"]


def write(folder, text):
    (folder / "scores.csv").write_text(text)
    return ASK


@fault("error", "scores.csv", "line 2", "4 fields", "3")
def trailing_comma(folder):
    return write(folder, HEADER + "".join(row.strip() + ",\n" for row in ROWS))


@fault("right")
def clean_table(folder):
    return write(folder, HEADER + "".join(ROWS))
