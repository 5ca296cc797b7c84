"""Examples of ICE as its authors published them."""

import random

from uetrust.papers.ice import live as runs
from uetrust.papers.ice import live as st

# The published files: example index and score of fold 0
FOLD_0 = dict(
    uniform=dict(
        coherence={854: 0.83, 600: 0.92, 1041: 0.75, 823: 0.75},
        consistency={850: 1, 599: 1, 1055: 1, 822: 1},
        relevance={859: 0.67, 594: 1, 1041: 0.83, 817: 0.17},
        fluency={860: 1, 597: 1, 1045: 0.92, 821: 1},
    ),
    as_coded=dict(
        coherence={855: 0.25, 597: 0.67, 1042: 0.42, 828: 0.83},
        consistency={858: 0.42, 593: 0.67, 1053: 1, 830: 0.17},
        relevance={857: 0.67, 601: 0.5, 1041: 0.83, 830: 0.25},
        fluency={863: 0.42, 601: 0.17, 1054: 1, 817: 0.67},
    ),
)
SMALL = st.ICEStudy(k=(0, 1, 2, 4), sets=2, held=2, judged=12)


def numbers(q, chat):  # A judge that knows the truth, with more noise after fewer examples
    n = q["prompt"].count("Summary: ") - 1
    noise = random.Random(q["prompt"]).gauss(0, 2 / (1 + n))
    return dict(
        choices=[
            dict(
                index=0,
                text=f" {min(max(TRUTH.get(q['prompt'].rsplit('Summary: ', 1)[1], 0.5) + noise, 0), 1):.2f}",
            )
        ],
        usage=dict(prompt_tokens=len(q["prompt"].split()), completion_tokens=3),
    )


TRUTH = {}


def study(pool, e):
    return (plan := st.ice_questions(pool, SMALL)), runs.ice_requests(
        e, pool, plan, st.shown_examples(pool, SMALL)
    )
