"""A disk that cannot be written: every command that writes says so, and what is finished can be read."""

from tests.faults import judge, models, notebooks, score, settings
from tests.faults.harness import SERVERS, fault, run_command, start_answers

SLOW = 60  # Seconds for what loads a model
ROWS = "id,quality,msp\na,0.9,0.1\nb,0.2,0.8\nc,0.6,0.3\nd,0.4,0.5\ne,0.7,0.2\n"
AUDIT = "audit scores.csv --quality quality --uncertainty msp --html page.html"


def scores(folder):
    (folder / "scores.csv").write_text(ROWS)


def audit_page(folder):
    scores(folder)
    return AUDIT.split()


def score_table(folder):
    return score.write(folder, score.GOOD, "--metric", "rouge_l")


def generate(folder):
    return models.generate(folder)


def notebook(folder):
    return notebooks.notebook(folder, "print(1)")


def fill(folder):
    return settings.project(folder)


def read(folder):
    made = run_command(models.generate(folder), folder, limit=SLOW)
    assert made.code == 0, made.err
    return [*models.READ.split(), "model"]


def compare(folder):
    made = run_command(models.generate(folder), folder, limit=SLOW)
    assert made.code == 0, made.err
    return ["compare", "bank", "--nli", models.MODELS / "tiny-nli"]


def texts_of_people(folder):
    return ["people", "--pair", "ru-en", "--texts", "texts.csv"]


WRITERS = [audit_page, score_table, generate, notebook, fill]
WRITERS += [read, compare, texts_of_people]
for writer in WRITERS:

    @fault("error", "change its rights", readonly=True, limit=SLOW, cases={writer.__name__: writer})
    def without_rights(folder, writer):
        return writer(folder)


@fault("error", "mine.jsonl.replies.sqlite", "--cache", readonly=True)
def judge_replies_without_rights(folder):
    return judge.ask(folder, start_answers(judge.good))[:-4]  # Without --out and --retries


def nothing_asked(folder, outcome):
    assert not SERVERS[-1].calls


@fault("error", "--out", "change its rights", readonly=True, check=nothing_asked)
def judge_table_without_rights(folder):
    "The replies could be kept elsewhere, the table could not: nothing is asked and paid."
    cache = folder.parent / f"{folder.name}.replies.sqlite"
    return judge.ask(folder, start_answers(judge.good), "--cache", cache)


@fault("right", readonly=True, limit=SLOW)
def a_finished_bank_is_read(folder):
    made = run_command(models.generate(folder), folder, limit=SLOW)
    assert made.code == 0, made.err
    return [*models.GENERATE.split(), "model"]


def linked_table(folder):
    scores(folder)
    (folder / "x.csv").symlink_to("old.csv")
    (folder / "old.csv").write_text("old")
    return "prr scores.csv --quality quality --uncertainty msp --out x.csv".split()


def exam(folder):
    return ["exam", "--questions", "1", "--out", "exam.md"]


def old_exam(folder):
    (folder / "exam.md").write_text("old")
    return exam(folder)


def next_labels(folder):
    scores(folder)
    return "next-labels scores.csv --metric quality --uncertainty msp --n 2 --out next.csv".split()


for writer in (linked_table, exam, old_exam, next_labels):

    @fault("error", "change its rights", readonly=True, limit=SLOW, cases={writer.__name__: writer})
    def without_rights_for(folder, writer):
        return writer(folder)
