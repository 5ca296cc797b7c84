"""What the tests of claims share."""

import pandas as pd

from uetrust.papers.he2024.claim_language import NoisyTables
from uetrust.papers.he2024.published import printed_claims, printed_tables

TABLES, CLAIMS = printed_tables(), {claim.id: claim for claim in printed_claims().itertuples()}


def claim(**fields):
    return CLAIMS["4.2-01"]._replace(**fields)


PRR = pd.DataFrame(
    [[0.1, 0.2, 0.3, 0.4], [0.15, 0.1, 0.4, 0.3], [0.4, 0.3, 0.2, -0.2]],
    ["CTC", "SummaC", "ROUGE-L"],
    ["NumSets", "ECC", "LexSim", "EigV"],
)
TOY = NoisyTables({"T5": PRR, "T9": PRR, "T11": PRR.T})


# --- broken and undecidable claims


def one(**fields):
    return pd.DataFrame([claim(**fields)._asdict()]).drop(columns="Index")
