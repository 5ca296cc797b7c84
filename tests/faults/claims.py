"""Claims of texts that promise nothing, or not what they seem to: `uetrust refine`."""

from tests.faults.harness import fault

OPTIONS = "--truth right --uncertainty msp --document article".split()
GOOD = [f"a{i},{i % 3},{int(i % 4 > 0 or j < 1)},{i + j}" for i in range(12) for j in range(3)]


def put(folder, *rows, header="article,system,right,msp"):
    (folder / "claims.csv").write_text("\n".join([header, *rows]) + "\n")
    return ["refine", "claims.csv", *OPTIONS]


ROWS = {
    "labels of a half text": (("b,0,1,3", "b,0,,4"), "text b has labels for some claims only"),
    "a half right claim": (("b,0,0.5,3",), "truth must be 1 (supported) or 0 (wrong), found 0.5"),
    "a percentage": (("b,0,90,3",), "found 90"),
    "a claim of no text": ((",0,1,3",), "column 'article' is empty for 1 of 37 claims: row 37"),
    "a word as uncertainty": (("b,0,1,high",), "'high'"),
    "a word as label": (("b,0,yes,3",), "'yes'"),
}


for name, (rows, said) in ROWS.items():

    @fault("error", "claims.csv", said, cases={name: rows})
    def claims_with(folder, rows):
        return put(folder, *GOOD, *rows)


@fault("error", "claims.csv: text b has two groups, 0, 1: a group is a property of the text")
def a_text_with_two_groups(folder):
    return [*put(folder, *GOOD, "b,0,1,3", "b,1,1,3"), "--group", "system"]


@fault("error", "claims.csv: text b has a claim without a group")
def a_text_without_a_group(folder):
    return [*put(folder, *GOOD, "b,,1,3"), "--group", "system"]


@fault("error", "claims.csv: no text has labels: label each claim of some texts with 1 (right) or 0 (wrong)")
def no_labels(folder):
    return put(folder, *(f"a{i},0,,{i}" for i in range(9)))


@fault("error", "--out", "kept", "rename it")
def a_file_with_kept(folder):
    rows = [f"{row},1" for row in GOOD]
    return [*put(folder, *rows, header="article,system,right,msp,kept"), "--out", "out.csv"]


@fault("error", "claims.csv", "overwritten", cases={"out": "--out", "html": "--html"})
def the_file_itself_as(folder, option):
    return [*put(folder, *GOOD), option, "claims.csv"]


@fault("error", "claims.csv", "no column 'sytem'", "Did you mean 'system'?")
def a_misspelt_group(folder):
    return [*put(folder, *GOOD), "--group", "sytem"]


@fault("error", "Use --group", cases={"plural": "--groups", "other case": "--groups=system"})
def groups_are_asked_for_with(folder, option):
    return [*put(folder, *GOOD), option]


def says(text):
    def check(folder, outcome):
        assert text in outcome.out, outcome.out

    return check


@fault("right", check=says("msp: too few texts to promise anything: 2 of 9 needed. No claim is kept."))
def two_texts(folder):
    return put(folder, "a,0,1,2", "a,0,0,3", "b,0,1,1")


@fault("right", check=says("no scored claim of the 20 texts is wrong, so every claim is kept."))
def only_right_claims(folder):
    return put(folder, *(f"a{i},0,1,{i}" for i in range(20)))


@fault("error", "needs a number above 0 and below 1", cases={v: v for v in ("0", "1", "nan", "-1", "ten")})
def an_alpha_of(folder, value):
    return [*put(folder, *GOOD), f"--alpha={value}"]


@fault("error", "needs a number above 0 and below 1", cases={v: v for v in ("0", "1", "nan")})
def a_delta_of(folder, value):
    return [*put(folder, *GOOD), f"--delta={value}"]
