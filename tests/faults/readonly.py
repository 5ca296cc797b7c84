"""A disk that cannot be written: every command that writes says so, and what is finished can be read."""


from faults import judge, models, notebooks, score, settings
from faults.harness import fault, run_command, start_answers

SLOW = 60  # Seconds for what loads a model
ROWS = "id,quality,msp\na,0.9,0.1\nb,0.2,0.8\nc,0.6,0.3\nd,0.4,0.5\ne,0.7,0.2\n"
AUDIT = "audit scores.csv --quality quality --uncertainty msp --html page.html"


def scores(folder):
    (folder / "scores.csv").write_text(ROWS)


def audit_page(folder):
    scores(folder)
    return AUDIT.split()


def score_table(folder):
    return score.write(folder, score.GOOD, "--metrics", "rouge_l")


def judge_cache(folder):
    return judge.ask(folder, start_answers(judge.good))


def judge_table(folder):
    "The replies are kept elsewhere, the table is not."
    cache = folder.parent / f"{folder.name}.replies.sqlite"
    return judge.ask(folder, start_answers(judge.good), "--cache", cache)


def generate(folder):
    return models.generate(folder)


def notebook(folder):
    return notebooks.notebook(folder, "print(1)")


def fill(folder):
    return settings.project(folder)


def canaries(folder):
    return ["canaries", "out"]


def report(folder):
    settings.project(folder)
    return ["report", "--profile", "p"]


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


WRITERS = [audit_page, score_table, judge_cache, judge_table, generate, notebook, fill, canaries, report]
WRITERS += [read, compare, texts_of_people]
for writer in WRITERS:

    @fault("error", "cannot be written", readonly=True, limit=SLOW, cases={writer.__name__: writer})
    def without_rights(folder, writer):
        return writer(folder)
