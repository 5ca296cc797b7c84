"""Settings that are not what they seem: `uetrust fill` and `uetrust plan` in a project of their own."""

import shutil
from pathlib import Path

from tests.faults.harness import fault

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = "id,source\na,The mayor opened the harbour on monday .\nb,The council rejected a plan .\n"
INI = f"""[common]
seed = 42
draws = 20
nli =
encoder =

[dataset.mine]
data = mine.csv

[generator.toy]
model = {REPOSITORY}/data/models/tiny-llama
samples = 1
max_new_tokens = 4
batch = 2
passes = conditional
prompt = {{source}}

[profile.p]
banks = mine--toy
"""
FILL = ["fill", "mine--toy", "--profile", "p"]


def project(folder, text=INI):
    "A project with these settings and two sources."
    (folder / "nbs" / "experiments").mkdir(parents=True)
    (folder / "mine.csv").write_text(SOURCES)
    content = text if isinstance(text, bytes) else text.encode()
    (folder / "settings.ini").write_bytes(content)
    return FILL


def changed(folder, pair):
    old, new = pair
    assert INI.count(old) == 1, old
    return project(folder, INI.replace(old, new))


def add(section, line):
    "Put a line below a section's header."
    return f"[{section}]\n", f"[{section}]\n{line}\n"


@fault("right", limit=60)
def the_project_as_it_should_be(folder):
    return project(folder)


@fault("right", limit=60)
def a_byte_order_mark(folder):
    return project(folder, b"\xef\xbb\xbf" + INI.encode())


@fault("right", limit=60)
def windows_line_ends(folder):
    return project(folder, INI.replace("\n", "\r\n"))


@fault("right", limit=60, cases={"items": ("profile.p", "items = 1"), "nothing": ("profile.p", "items =")})
def a_file_with_a_number_of(folder, given):
    return changed(folder, add(*given))


@fault("right", limit=60)
def a_percent_sign_in_a_prompt(folder):
    return changed(folder, ("prompt = {source}", "prompt = %s 100 % %(x)s {source}"))


@fault("right", limit=60)
def the_same_file_from_a_folder_below(folder):
    project(folder)
    (folder / "nbs" / "settings.ini").mkdir()
    return FILL


@fault("error", "settings.ini", "line 12", "second", "generator.toy", cases={"generator": "generator.toy"})
def a_section_twice(folder, section):
    return project(folder, INI.replace("samples = 1\n", f"[{section}]\nsamples = 1\n"))


@fault("error", "settings.ini", "line", "samples", "generator.toy", "stands once")
def a_key_twice(folder):
    return changed(folder, ("samples = 1\n", "samples = 1\nsamples = 2\n"))


@fault("error", "settings.ini", "line 1", "before any section")
def no_section_header(folder):
    return project(folder, "seed = 42\n" + INI)


@fault("error", "settings.ini", "line 12", "stray")
def a_stray_line(folder):
    return changed(folder, ("samples = 1\n", "stray words\n"))


@fault("error", "settings.ini", "line", cases={"open": "[generator.toy\n", "empty": "[]\n"})
def a_header(folder, header):
    return changed(folder, ("[generator.toy]\n", header))


@fault("error", "settings.ini", "UTF-8", cases={"utf-16": "utf-16", "utf-32": "utf-32", "latin-1": "latin-1"})
def an_encoding(folder, name):
    return project(folder, ("# häuser\n" + INI).encode(name))


@fault("error", "settings.ini", "line 2", "NUL")
def a_nul_character(folder):
    return project(folder, INI.replace("seed", "se\0ed"))


@fault("error", "settings.ini", "'p'", "no profile")
def an_empty_file(folder):
    return project(folder, "")


@fault("error", "settings.ini", "folder")
def a_folder_in_its_place(folder):
    project(folder)
    (folder / "settings.ini").unlink()
    (folder / "settings.ini").mkdir()
    return FILL


@fault(
    "error",
    "settings.ini",
    "no section is called so",
    cases={"misspelt": "genrator.x", "without a name": "profile", "other": "DEFAULT", "dot": "dataset."},
)
def an_unknown_section(folder, header):
    return changed(folder, ("[profile.p]", f"[{header}]\nx = 1\n[profile.p]"))


@fault(
    "error",
    "settings.ini",
    "has no key",
    cases={s: s for s in ("profile.p", "dataset.mine", "generator.toy")},
)
def an_unknown_key_in(folder, section):
    return changed(folder, add(section, "smaples = 3"))


@fault("error", "settings.ini", "[profile.p]", "bnks", "banks")
def a_misspelt_key_of_common(folder):
    return changed(folder, add("common", "bnks = a"))


WRONG = {
    "batch": ("8.5", "x", "0", "-1", "1e3", "1000000000"),
    "samples": ("many", "-1", "1000000000", "nan", "99999999999999999999999"),
    "temperature": ("nan", "0", "-1", "inf", "hot"),
    "top_p": ("high", "2", "0", "nan", "-0.1"),
    "top_k": ("-1", "few"),
    "max_new_tokens": ("0", "long"),
    "beam_members": ("-1", "0", "1000000000"),
    "beams": ("-1", "1000000000"),
    "budget": ("nan", "-1"),
    "price_in": ("-1", "free"),
    "per_call": ("-1",),
    "items": ("-1", "all"),
    "max_prompt": ("0",),
    "passes": ("conditinal", "all"),
    "compare": ("everything",),
    "likelihood": ("bert",),
    "verbal_scale": ("1", "1 2 3"),
    "prompt": ("no place for the text", "{source}{source}"),
    "preset": ("he2042",),
    "like": ("nobody", "toy"),
}
LINES = {f"{key} = {value}": (key, value) for key, values in WRONG.items() for value in values}


def _with_line(folder, key, value):
    lines = [line for line in INI.splitlines() if not line.startswith(f"{key} ")]
    at = lines.index("[generator.toy]")
    return project(folder, "\n".join([*lines[: at + 1], f"{key} = {value}", *lines[at + 1 :]]) + "\n")


for key, values in WRONG.items():

    @fault("error", key, cases={f"{key} = {value}": (key, value) for value in values})
    def a_generator_with(folder, pair):
        return _with_line(folder, *pair)


PROFILES = {
    "items": ("0", "-1", "few"),
    "train_items": ("0",),
    "draws": ("0", "many", "10000000000"),
    "seed": ("-1", "x"),
}
for key, values in PROFILES.items():

    @fault("error", "settings.ini", "[profile.p]", key, cases={f"{key} = {value}": value for value in values})
    def a_profile_with(folder, value, key=key):
        return changed(folder, add("profile.p", f"{key} = {value}"))


DATA = {
    "empty": "",
    "a folder": "nbs",
    "missing": "other.csv",
    "another kind": "settings.ini",
    "no split": "bulletin:8",
    "no number": "bulletin:test:x",
    "zero": "bulletin:test:0",
    "negative": "bulletin:test:-3",
    "unknown split": "bulletin:tset:3",
    "misspelt": "buletin:test:3",
    "10^11 bulletins": "bulletin:test:100000000000",
    "10^30 bulletins": "bulletin:test:1" + "0" * 30,
}


@fault("error", cases=DATA)
def a_dataset_of(folder, data):
    return changed(folder, ("data = mine.csv", f"data = {data}"))


@fault("error", "dataset.mine", "data")
def a_dataset_without_data(folder):
    return changed(folder, ("data = mine.csv\n", ""))


@fault("error", "focus", "dataset.mine", "train", limit=30)
def the_pass_focus_without_training_texts(folder):
    return changed(folder, ("passes = conditional", "passes = conditional focus"))


@fault("error", "tiny-encoder", "entailment", limit=30)
def an_nli_model_of_another_kind(folder):
    return changed(folder, ("nli =\n", f"nli = {REPOSITORY}/data/models/tiny-encoder\n"))


@fault(
    "error",
    "no model folder",
    cases={"model": ("model = ", "model = /nowhere"), "nli": ("nli =", "nli = /no")},
)
def a_checkpoint_that_is_not_there(folder, pair):
    return changed(folder, pair)


@fault("error", "'mine--other'", "mine--toy")
def a_bank_that_no_profile_has(folder):
    project(folder)
    return ["fill", "mine--other", "--profile", "p"]


@fault("error", "'q'", "no profile")
def a_profile_that_is_not_there(folder):
    project(folder)
    return ["plan", "q"]


@fault("error", "profile 'q'", cases={"report": ["report"], "open": ["report", "--open"]})
def a_report_of_no_profile(folder, words):
    project(folder)
    return [*words, "--profile", "q"]


@fault("error", "studies", "nothing_such")
def a_study_that_is_not_there(folder):
    changed(folder, add("profile.p", "studies = nothing_such"))
    return ["plan", "p"]


@fault("right", limit=60, cases={name: name for name in ("0", "1")})
def drawn_texts(folder, number):
    return changed(folder, ("samples = 1", f"samples = {number}"))


@fault("right", limit=60)
def no_drawn_texts_and_a_pass_over_them(folder):
    return project(
        folder, INI.replace("samples = 1", "samples = 0").replace("conditional", "conditional sample_hidden")
    )


@fault("right", limit=60)
def no_drawn_texts_with_the_shipped_passes(folder):
    shipped = "conditional vocabulary hidden sample_hidden processed unconditional attention"
    return project(
        folder,
        INI.replace("samples = 1", "samples = 0")
        .replace("conditional", shipped)
        .replace("nli =\n", f"nli = {REPOSITORY}/data/models/tiny-nli\n")
        .replace("encoder =\n", f"encoder = {REPOSITORY}/data/models/tiny-encoder\n"),
    )


@fault("error", "bank mine--toy", "has 2 texts", "at least 8", "items in [profile.p]", limit=60)
def a_page_about_two_texts(folder):
    project(folder)
    page = folder / "nbs" / "experiments" / "02_methods.ipynb"
    shutil.copy(REPOSITORY / "nbs" / "experiments" / "banks" / page.name, page)
    return ["run", page, "out.ipynb", "profile=p", "bank=mine--toy"]


NAMES = {
    "two dots": "..",
    "a dot": ".",
    "a folder": "a/b",
    "above": "../up",
    "root": "/tmp/up",
    "backslash": "a\\b",
}
RENAMES = {
    f"{kind} {said}": (kind, name)
    for kind in ("dataset", "generator", "profile")
    for said, name in NAMES.items()
    if kind == "dataset" or said in ("two dots", "above")
}


def nothing_made(folder, outcome):
    assert not list(folder.parent.rglob("banks")) and not list(folder.parent.glob("up*"))


@fault("error", "settings.ini", "has no /", cases=RENAMES, check=nothing_made)
def a_name_that_leaves_its_folder(folder, given):
    kind, name = given
    old = dict(dataset="mine", generator="toy", profile="p")[kind]
    bank = f"{name}--toy" if kind == "dataset" else f"mine--{name}" if kind == "generator" else "mine--toy"
    text = INI.replace(f"[{kind}.{old}]", f"[{kind}.{name}]").replace("mine--toy", bank)
    project(folder, text)
    return ["fill", bank, "--profile", name if kind == "profile" else "p"]


HUGE = {"large": "1" + "0" * 400, "small": "-1" + "0" * 400}
HUGE_KEYS = "samples max_new_tokens batch top_k beams per_call max_prompt".split()


@fault(
    "error",
    "settings.ini",
    "[generator.toy]",
    cases={f"{key} {name}": (key, value) for key in HUGE_KEYS for name, value in HUGE.items()},
)
def a_number_of_400_digits(folder, given):
    return _with_line(folder, *given)


@fault("error", "settings.ini", "items", cases=HUGE)
def items_of_400_digits(folder, value):
    return changed(folder, add("profile.p", f"items = {value}"))
