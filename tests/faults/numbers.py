"""Numbers at the ends of what float64 holds, and samples too few to say anything: `uetrust prr`."""

import json

import numpy as np

from tests.faults.harness import fault

RNG = np.random.default_rng(0)
UNCERTAINTY = RNG.permutation(12) / 8.0  # Exact in binary, and so are the qualities
QUALITY = RNG.permutation(12) / 16.0 - UNCERTAINTY


def table(folder, quality, uncertainty=UNCERTAINTY, *options):
    rows = [f"s{i},{q!r},{u!r}" for i, (q, u) in enumerate(zip(map(float, quality), map(float, uncertainty)))]
    (folder / "scores.csv").write_text("\n".join(["id,quality,msp", *rows]) + "\n")
    return [
        *["prr", "scores.csv", "--id", "id", "--quality", "quality", "--uncertainty", "msp", "--json"],
        *options,
    ]


def found(outcome):
    (row,) = json.loads(outcome.out)
    return row


def by_definition(quality=QUALITY, uncertainty=UNCERTAINTY):
    "PRR from its definition, and the numbers beside it, for qualities of an ordinary size."
    from uetrust import prr

    risk = quality.max() - quality

    def area(order):
        return np.mean(np.cumsum(risk[order]) / np.arange(1, len(risk) + 1))

    value = (risk.mean() - area(np.argsort(uncertainty))) / (risk.mean() - area(np.argsort(risk)))
    rest = prr(quality, uncertainty)
    return dict(value=value, se=rest.se, lo=rest.lo, hi=rest.hi, p=rest.p, null_sd=rest.null_sd)


def same_as_ordinary(folder, outcome):
    row, wanted = found(outcome), by_definition()
    for name, number in wanted.items():
        assert abs(row[name] - number) < 1e-9, (name, row[name], number)
    assert "float64" not in row["note"]


def perfect(folder, outcome):
    row = found(outcome)
    assert row["value"] == 1 and row["p"] < 0.001 and row["null_sd"] > 0, row


def says_digits_are_lost(folder, outcome):
    assert "steps of float64" in found(outcome)["note"], outcome.out


def says_there_is_no_interval(folder, outcome):
    row = found(outcome)
    assert row["se"] is None and row["lo"] is None and row["hi"] is None, row
    assert "3 pairs" in row["note"]


@fault(
    "right",
    cases={f"times 2 to the {power}": power for power in (510, 515, 900, 1022, -538, -900, -1018)},
    check=same_as_ordinary,
)
def quality_of_another_size(folder, power):
    return table(folder, QUALITY * 2.0**power)


@fault("right", cases={str(shift): shift for shift in (1e6, 1e9)}, check=same_as_ordinary)
def offset_that_is_held(folder, shift):
    return table(folder, QUALITY + shift)


@fault("right", cases={str(size): size for size in (1e155, 1e307, 1e308, 1e-163, 1e-300)}, check=perfect)
def perfect_order_of_another_size(folder, size):
    return table(folder, -np.arange(12.0) / 12 * size, np.arange(12.0))


@fault("right", check=perfect)
def qualities_at_both_ends_of_float64(folder):
    return table(folder, np.linspace(1, -1, 12) * 1.7e308, np.arange(12.0))


@fault("right", cases={"1e15": (1, 1e15), "1e-320": (1e-320, 0)}, check=says_digits_are_lost)
def digits_that_float64_lost(folder, given):
    factor, shift = given
    return table(folder, QUALITY / 3 * factor + shift)


@fault("error", "scores.csv", "constant quality")
def offset_that_leaves_nothing(folder):
    return table(folder, QUALITY + 1e18)


@fault(
    "right",
    cases=dict(perfect=[3, 2, 1], reverse=[1, 2, 3], between=[2, 3, 1]),
    check=says_there_is_no_interval,
)
def three_samples(folder, uncertainty):
    return table(folder, [1, 2, 3], uncertainty)


@fault("error", "quality", "infinity")
def quality_beyond_float64(folder):
    argv = table(folder, QUALITY)
    path = folder / "scores.csv"
    path.write_text(path.read_text().replace("s3,", "s3,1e309,.1\ns99,", 1))
    return argv


@fault(
    "right", check=lambda folder, outcome: found(outcome)["n"] == 60_000, memory=6 * 2**30
)  # 13 GiB when each cluster has a row
def many_clusters(folder):
    rng = np.random.default_rng(1)
    n = 60_000
    rows = [f"{q!r},{u!r},{c}" for q, u, c in zip(*rng.random((2, n)).tolist(), rng.integers(20_000, size=n))]
    (folder / "scores.csv").write_text("\n".join(["quality,msp,document", *rows]) + "\n")
    return [
        *["prr", "scores.csv", "--quality", "quality", "--uncertainty", "msp"],
        *["--clusters", "document", "--json"],
    ]


@fault(
    "error",
    "quality",
    "off its scale [1.0, 5.0]",
    "s4 =",
    cases={"above": 5.5, "far above": 99, "below": 0.5},
)
def score_off_its_declared_scale(folder, score):
    quality = np.arange(12.0) % 5 + 1
    quality[4] = score
    return table(folder, quality, UNCERTAINTY, "--scale", "quality=1:5")


# Options of planning

PLANS = {
    "--level": "power T --quality quality --uncertainty msp",
    "--power": "power T --quality quality --uncertainty msp",
    "--texts": "dose T --truth quality --metric other --uncertainty msp third",
    "--target": "dose T --truth quality --metric other --uncertainty msp third",
    "--tau": "guarantee T --quality quality --uncertainty msp",
    "--alpha": "guarantee T --quality quality --uncertainty msp --tau 0",
    "--delta": "guarantee T --quality quality --uncertainty msp --tau 0",
    "--n": "next-labels T --metrics quality --uncertainty msp",
    "--seed": "next-labels T --metrics quality --uncertainty msp",
}
IMPOSSIBLE = dict.fromkeys(PLANS, ("2", "0", "nan")) | {
    "--texts": ("-5", "0", "nan", "1" + "0" * 400),
    "--target": ("0.5", "1", "nan"),
    "--tau": ("nan", "inf", "-1" + "0" * 400),
    "--n": ("-3", "0", "1e3"),
    "--seed": ("-1", "nan", "1" + "0" * 400),
}


@fault("error", "needs", cases={f"{o} {v[:6]}": (o, v) for o, values in IMPOSSIBLE.items() for v in values})
def an_impossible(folder, given):
    option, value = given
    table(folder, QUALITY)
    path = folder / "scores.csv"
    head, *rows = path.read_text().split()
    lines = [f"{head},other,third", *(f"{row},{i % 5},{i % 7}" for i, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n")
    return [*PLANS[option].replace("T", "scores.csv").split(), f"{option}={value}"]


@fault("error", "drawn", cases={str(p): p for p in (2, 0, -0.1)})
def a_label_drawn_with_probability(folder, probability):
    table(folder, QUALITY)
    path = folder / "scores.csv"
    head, *rows = path.read_text().split()
    lines = [f"{head},label,drawn", *(f"{row},{i % 2},{probability}" for i, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n")
    words = (
        "next-labels scores.csv --metrics quality --uncertainty msp --n 2 --labels label --probability drawn"
    )
    return words.split()


@fault("error", "question", cases={str(n)[:6]: n for n in (-1, 0, 10**9, 10**400)})
def an_exam_of(folder, questions):
    return ["exam", f"--questions={questions}"]
