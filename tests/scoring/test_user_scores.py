"""Tables of users as they are read: names of samples, missing columns, numbers as people write them."""

import json

import pandas as pd
import pytest

from uetrust.scoring.user_scores import numeric_scores, read_noted_scores, read_scores, require_columns


def test_names_of_two_columns_and_fields_inside_objects_are_read(tmp_path):
    rows = [dict(id="a", by=f"M{i}", marks=dict(fluent=i), u=i / 2) for i in range(3)]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = read_scores(tmp_path / "s.jsonl", "id+by")
    assert list(found.index) == ["a/M0", "a/M1", "a/M2"] and list(found["marks.fluent"]) == [0, 1, 2]


def test_a_long_table_becomes_one_row_per_sample(tmp_path):
    wide = pd.DataFrame(dict(sample=list("abc"), msp=[1.0, 2, 3], rouge=[0.3, 0.2, 0.1]))
    wide.melt("sample", var_name="name").to_csv(tmp_path / "long.csv", index=False)
    found = read_noted_scores(tmp_path / "long.csv").scores
    assert found["msp"].tolist() == [1, 2, 3] and list(found.index) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "text, id, said",
    [
        ("u\n1\n2\n", None, "has 2 samples; a ranking needs at least 3"),
        ("id,u\na,1\n,2\nc,3\n", "id", "'id' is empty in row 2; every sample needs a name"),
        ("name,u\na,1\nb,2\nc,3\n", "nome", "has no column 'nome'. Did you mean 'name'? It has"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_what_is_wrong(tmp_path, text, id, said):
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(ValueError) as error:
        read_scores(tmp_path / "mine.csv", id)
    assert str(error.value).startswith("mine.csv") and said in str(error.value)


def test_numbers_that_are_written_with_marks_are_refused_and_other_text_stays():
    words = pd.DataFrame(dict(judge=["1", "2.5", "unknown"]), list("abc"))
    assert numeric_scores(words, "mine.csv")["judge"].tolist() == [1, 2.5, "unknown"]
    for cell, hint in (("5 %", "percent"), ("1 234", "thousands"), ("1e400", "infinity")):
        with pytest.raises(ValueError, match=f"mine.csv: 'judge' of sample b is '{cell}': .*{hint}"):
            numeric_scores(pd.DataFrame(dict(judge=["1", cell, "x"]), list("abc")), "mine.csv")
    assert require_columns(words, ["judge"], "mine.csv") == ["judge"]
