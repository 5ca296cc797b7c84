"""A call that works for each public function, to be tried with wrong values."""

import numpy as np
import pandas as pd

import uetrust as ut
from tests.helpers.banks import ABOUT, SAMPLES, echo
from uetrust.core.settings import root
from uetrust.generation.bank import fill_bank

QUALITY = [0.9, 0.2, 0.6, 0.4, 0.7, 0.1, 0.8, 0.3]
FIRST, SECOND = [0.1, 0.8, 0.3, 0.5, 0.2, 0.9, 0.4, 0.6], [0.2, 0.7, 0.1, 0.5, 0.3, 0.8, 0.6, 0.4]
PAIR, LABELLED = (
    dict(quality=QUALITY, uncertainty=FIRST),
    dict(quality=[1, 0, 1, 0], uncertainty=[1, 8, 3, 5]),
)
SCORED = pd.DataFrame(dict(human=QUALITY, msp=FIRST, mte=SECOND))
TEXTS = pd.DataFrame(
    dict(id=["a"], hypothesis=["It rained."], source=["It rained."], reference=["It rained."])
)
PREDICTED = dict(truth=QUALITY, metrics=pd.DataFrame(dict(judge=SECOND)))
INTERVALS = pd.DataFrame(dict(label=["msp"], value=[0.4], lo=[0.2], hi=[0.6], group="XSum"))
JUDGED = pd.DataFrame(dict(dataset=["a"] * 8 + ["b"] * 8, label=[1, 0] * 8, judge=QUALITY + FIRST))


def of_measures():
    "Calls of what evaluates scores and draws the result."
    tables = dict(quality=SCORED[["human"]], uncertainty=SCORED[["msp", "mte"]])
    matrices = dict(
        zip(("first", "second", "truth"), np.array([[QUALITY, FIRST], [FIRST, SECOND], [SECOND, QUALITY]]))
    )
    same = dict.fromkeys("augrc aurc prr prr_value rejection_curve".split(), PAIR)
    return same | dict(
        agreement=dict(table=SCORED),
        audit=dict(scores=SCORED, quality=["human"], uncertainty=["msp"]),
        auprc=LABELLED,
        auroc=LABELLED,
        benjamini_hochberg=dict(p=[0.1, 0.2]),
        ece=dict(quality=[1, 0, 1, 0], uncertainty=[-0.1, -0.8, -0.3, -0.5]),
        expected_accuracy=dict(data=JUDGED, domain=dict(a="x", b="y")),
        holm=dict(p=[0.1, 0.2]),
        kendall=dict(x=QUALITY, y=FIRST),
        plot_agreement=dict(tidy=ut.agreement(SCORED)),
        plot_curve=dict(curve=ut.rejection_curve(QUALITY, FIRST)),
        plot_interval_panels=dict(df=INTERVALS),
        plot_intervals=dict(df=INTERVALS),
        plot_prr=dict(table=pd.DataFrame(dict(msp=[0.4, 0.1]), index=["rouge", "judge"])),
        prr_bootstrap=tables | dict(draws=9),
        prr_difference=dict(quality=QUALITY, first=FIRST, second=SECOND),
        prr_difference_from_labels=PREDICTED | dict(first=FIRST, second=SECOND),
        prr_from_labels=PREDICTED | dict(uncertainty=FIRST),
        prr_table=tables,
        rank_intervals=dict(values=pd.Series([0.1, 0.2]), sd=0.1, draws=9),
        selective_accuracy=LABELLED | dict(coverage=0.5),
        spearman=dict(x=QUALITY, y=FIRST),
        swap_test=matrices | dict(draws=9),
    )


def of_texts(folder):
    "Calls of what reads, writes and scores texts."
    bank = folder / "bank"
    fill_bank(bank / "texts", SAMPLES, ABOUT, echo, progress=False)
    model, examples = ut.load_model(root() / "data/models/tiny-bart"), root() / "data/examples"
    two = ut.bulletins("test", 2)
    run = ut.ScoreRun(["a"], ut.load_scores(), greedy_logp=[np.array([-1.0])])
    server = ut.Endpoint("http://127.0.0.1:9/v1", "toy", retries=0)
    asked = dict(questions=[("wi_in", "fluency")], texts=TEXTS, cache=folder / "replies.sqlite")
    return dict(
        Decoding={},
        Endpoint=dict(url="http://127.0.0.1:9/v1", model="toy"),
        Page=dict(name="toy", out=str(folder)),
        ScoreRun=dict(samples=["a"]),
        bulletins=dict(split="test", n=2),
        cell_ledger=dict(paper="FFLM"),
        check_summaries=dict(summaries=two["reference"], bulletins=two),
        claim_ledger=dict(draws=0, shuffles=0),
        compute_metrics=dict(texts=TEXTS, models={}, metrics=["rouge_l"], progress=False),
        compute_score=dict(run=run, name="msp"),
        drift_check=dict(models={}, metrics=["rouge_l"]),
        generate_texts=dict(model=model, samples=two, settings=ut.Decoding(samples=1, max_new_tokens=3)),
        judge_scores=asked | dict(endpoint=server, progress=False),
        list_scores={},
        load_model=dict(name=root() / "data/models/tiny-bart"),
        load_samples=dict(dataset="bulletin:test:2"),
        load_scores={},
        playground={},
        read_bank=dict(folder=bank / "texts"),
        read_outputs=dict(path=examples / "summaries.jsonl"),
        read_scores=dict(path=examples / "pilot.csv"),
        read_texts=dict(path=examples / "summaries.jsonl"),
        run_notebook=dict(nb=folder / "nowhere.ipynb", target=folder / "done.ipynb"),
        run_pipeline=dict(profile_name="smoke", name="nobank", progress=False),
        score_card=dict(name="msp"),
        score_generations=dict(folder=bank, methods=["output_length"], samples=SAMPLES, progress=False),
        score_outputs=dict(outputs=examples / "summaries.jsonl", metrics=["rouge_l"]),
        score_tokens=dict(model=model, pairs=[("The council met.", "It met.")]),
        shipped_models={},
        wide_table=dict(scores=pd.DataFrame(dict(sample=["a"], name=["msp"], value=[1.0]))),
    )
