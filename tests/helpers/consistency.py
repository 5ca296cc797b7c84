"""What the tests of consistency share."""

import json

ODD = (
    "Größe – “né” 12 °C\u2028naïve 東京"  # accents, quotes, a line separator that is no line break of a file
)


def lines(rows):
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n"


def article(i):
    return f"Article {i}.\n\n It says {ODD}."
