"""From texts to quality scores: the same numbers as by hand, whatever the order and the batch; what is
missing has a name."""

import gc
import json
import weakref

import numpy as np
import pandas as pd
import pytest

from uetrust.core.run import required_inputs
from uetrust.core.segmentation import split_sentences
from uetrust.core.settings import oracles
from uetrust.data.bulletins import bulletins
from uetrust.generation.decoding import HE2024_DECODING
from uetrust.models import classifiers as ev
from uetrust.models import heads as hd
from uetrust.models import likelihoods as lk
from uetrust.models.encode import embed_texts
from uetrust.models.forward import Layout
from uetrust.models.load import load_model
from uetrust.nlg import alignment, fflm, heads, likelihood, nli, overlap, strings, unieval
from uetrust.scoring import metrics as g
from uetrust.scoring.cache import cached_metrics
from uetrust.statistics.scores import load_scores
from uetrust.statistics.texts.providers import shipped_models

reg = load_scores()


@pytest.fixture(scope="module")
def texts():
    "Four bulletins: a reference, another's reference, a source as its own summary, a short one"
    items = bulletins("test", 4)
    said = [items["reference"][0], items["reference"][0], items["source"][2], "It rained. No."]
    return pd.DataFrame(
        dict(id=list("abcd"), hypothesis=said, source=items["source"], reference=items["reference"])
    )


@pytest.fixture(scope="module")
def scored(texts):
    return g.compute_metrics(texts, shipped_models(), progress=False)


@pytest.fixture(scope="module")
def graded(scored):
    return scored.table


@pytest.fixture(scope="module")
def model():
    seen = {}
    return lambda name: (
        seen[name] if name in seen else seen.setdefault(name, load_model(shipped_models()[name]))
    )


def wide(table):
    return table.pivot(index="sample", columns="name", values="value")


def close(got, want, tol=2e-6):
    np.testing.assert_allclose(np.array(got, float), np.array(list(want), float), rtol=0, atol=tol)


def columns(texts):
    return list(texts["hypothesis"]), list(texts["source"]), list(texts["reference"])


def test_likelihoods_are_those_made_by_hand(texts, graded, scored, model):
    by_metric, (hypotheses, sources, references) = wide(graded), columns(texts)
    statistics, _ = lk.directed_logp(
        model("bart"),
        "bart",
        ["source_hypothesis", "reference_hypothesis", "prefix_hypothesis"],
        hypotheses,
        sources,
        references,
    )
    close(by_metric["bart_score"], map(likelihood.bart_score, statistics["bart_logp_source_hypothesis"]))
    close(
        by_metric["bart_score_precision"],
        map(likelihood.bart_score_precision, statistics["bart_logp_reference_hypothesis"]),
    )
    close(
        by_metric["cop"],
        map(fflm.cop, statistics["bart_logp_source_hypothesis"], statistics["bart_logp_prefix_hypothesis"]),
    )
    statistics, _ = lk.directed_logp(
        model("bart"), "x", ["hypothesis_reference"], hypotheses, None, references, layout=Layout(window=256)
    )
    close(
        by_metric["bart_score_he2024"],
        map(likelihood.bart_score_he2024, statistics["x_logp_hypothesis_reference"]),
    )
    statistics, cut = lk.directed_logp(
        model("bart"), "x", ["source_hypothesis", "empty_hypothesis"], hypotheses, sources, most=110
    )
    close(by_metric["harim_plus"], map(fflm.harim_plus, *statistics.values()))
    assert scored.cut["harim"] == {k.replace("x_", "bart110_"): c.sum() for k, c in cut.items()}
    statistics, _ = lk.directed_logp(
        model("t5"), "t5", ["hypothesis_reference"], hypotheses, None, references
    )
    close(
        by_metric["t5_score_recall"],
        map(likelihood.t5_score_recall, statistics["t5_logp_hypothesis_reference"]),
    )
    for way, sep, name in (
        ("source_hypothesis", " TL;DR: ", "gpt_score"),
        ("reference_hypothesis", " In other words , ", "gpt_score_precision"),
    ):
        statistics, _ = lk.directed_logp(
            model("gpt"),
            "gpt",
            [way],
            hypotheses,
            sources,
            references,
            layout=Layout(prefix_token=None, joined=True, sep=sep, window=1000),
        )
        close(by_metric[name], map(reg[name].fn, statistics[f"gpt_logp_{way}"]))
    tokens = fflm.fflm_tokens(**lk.fflm_probabilities(model("fflm"), hypotheses, sources)[0])
    for name in ("fflm", "fflm_paper", "cop_causal"):
        close(by_metric[name], map(reg[name].fn, tokens))


def test_questions_are_those_asked_by_hand(texts, graded, model):
    by_metric, (hypotheses, sources, references) = wide(graded), columns(texts)
    x = dict(
        sentence=list(map(split_sentences, hypotheses)),
        hypothesis=hypotheses,
        source=sources,
        reference=references,
    )
    statistics, _ = lk.unieval_answers(
        model("unieval"), ["fluency", "coherence", "consistency", "relevance"], x
    )
    he, _ = lk.unieval_answers(
        model("unieval"),
        ["coherence", "consistency"],
        x,
        "yes_no_{}_he2024",
        HE2024_DECODING.prompt.removesuffix("{source}"),
    )
    close(by_metric["unieval_fluency"], map(unieval.unieval_fluency, statistics["yes_no_fluency"]))
    close(
        by_metric["unieval_overall"],
        [unieval.unieval_overall(**{k: a[i] for k, a in statistics.items()}) for i in range(4)],
    )
    close(
        by_metric["unieval_coherence_he2024"],
        map(unieval.unieval_coherence_he2024, he["yes_no_coherence_he2024"]),
    )
    assert len(statistics["yes_no_fluency"][3]) == 2


def test_pairs_are_those_read_by_hand(texts, graded, model):
    by_metric, (hypotheses, sources, references), nli_model = wide(graded), columns(texts), model("nli")
    close(
        by_metric["mnli_doc"],
        map(nli.mnli_doc, ev.nli_pairs(nli_model, list(zip(sources, hypotheses)), 512, "first")[0]),
    )
    close(
        by_metric["summac_he2024"],
        map(nli.summac_he2024, ev.nli_pairs(nli_model, list(zip(references, hypotheses)))[0]),
    )
    for name, how in (
        ("summac_zs", "sentence"),
        ("summac_conv", "sentence"),
        ("summac_zs_paragraph", "paragraph"),
    ):
        logits, _ = ev.nli_grids(
            nli_model,
            [nli.summac_grid(a, items, how) for a, items in zip(sources, hypotheses)],
        )
        close(by_metric[name].iloc[:3], map(reg[name].fn, logits[:3]))
    assert [len(x) for x in nli.summac_grid(sources[3], hypotheses[3])] == [
        len(split_sentences(sources[3])),
        0,
    ]
    assert graded.query("name=='summac_zs' and sample=='d'")["note"].item().startswith("nothing to compare")


def test_tokens_and_vectors_are_those_compared_by_hand(texts, graded, model):
    by_metric, (hypotheses, sources, references), nli_model = wide(graded), columns(texts), model("bertscore")
    close(
        by_metric["bertscore_f1"],
        map(alignment.bertscore_f1, ev.token_cosines(nli_model, list(zip(hypotheses, references)))[0]),
    )
    close(
        by_metric["ctc_embedding"],
        map(alignment.ctc_embedding, ev.token_cosines(nli_model, list(zip(hypotheses, sources)))[0]),
    )
    close(
        by_metric["bertscore_f1_idf"],
        map(
            alignment.bertscore_f1_idf,
            ev.token_cosines(nli_model, list(zip(hypotheses, references)))[0],
            ev.idf_weights(nli_model, hypotheses, references),
            ev.idf_weights(nli_model, references, references),
        ),
    )
    close(
        by_metric["embedding_spearman"],
        map(
            alignment.embedding_spearman,
            embed_texts(nli_model, hypotheses)[0],
            embed_texts(nli_model, references)[0],
        ),
    )
    close(by_metric["rouge_l"], map(overlap.rouge_l, hypotheses, references))
    close(
        by_metric["bleu_alignscore"],
        [
            strings.bleu_alignscore(split_sentences(a), split_sentences(items))
            for a, items in zip(hypotheses, sources)
        ],
    )


def test_trained_heads_are_those_read_by_hand(texts):
    if oracles() is None:
        pytest.skip("UETRUST_ORACLES is not at hand")
    at, (hypotheses, sources, references) = oracles() / "metrics" / "models", columns(texts)
    align, ctc = (
        at / "heads" / f for f in ("alignscore_heads.safetensors", "ctc_disc_classifier.safetensors")
    )
    table = g.compute_metrics(
        texts,
        dict(
            factcc=at / "tiny_bert_factcc",
            bleurt=at / "tiny_bert_regression",
            ctc_regression=at / "tiny_bert_regression",
            embedding=at / "tiny_sbert",
            anli=at / "tiny_bert_nli",
            true_nli=at / "tiny_t5",
            alignscore=(at / "tiny_roberta", align),
            ctc=(at / "tiny_roberta", ctc),
            ctc_relevance=(at / "tiny_roberta", ctc),
        ),
        progress=False,
    ).table
    by_metric, roberta, regressor = (
        wide(table),
        load_model(at / "tiny_roberta"),
        load_model(at / "tiny_bert_regression"),
    )
    close(
        by_metric["factcc"],
        map(
            heads.factcc,
            ev.factcc_logits(load_model(at / "tiny_bert_factcc"), list(zip(sources, hypotheses)))[0],
        ),
    )
    close(
        by_metric["factcc_sentences"],
        [
            heads.factcc_sentences(
                ev.factcc_logits(
                    load_model(at / "tiny_bert_factcc"), [(a, c) for c in split_sentences(items)]
                )[0]
            )
            for a, items in zip(sources, hypotheses)
        ],
    )
    close(by_metric["bleurt"], ev.regression_values(regressor, list(zip(references, hypotheses)))[0])
    close(
        by_metric["ctc_regression"],
        ev.regression_values(regressor, list(zip(sources, hypotheses)), cut="longest")[0],
    )
    e = ev.sentence_encoder(at / "tiny_sbert")
    close(
        by_metric["embedding_kendall"],
        map(
            alignment.embedding_kendall,
            ev.sentence_embeddings(e, hypotheses)[0],
            ev.sentence_embeddings(e, references)[0],
        ),
    )
    close(
        by_metric["anli"],
        map(nli.anli, ev.nli_pairs(load_model(at / "tiny_bert_nli"), list(zip(sources, hypotheses)))[0]),
    )
    close(
        by_metric["true_nli"],
        map(nli.true_nli, hd.true_nli_logp(load_model(at / "tiny_t5"), list(zip(sources, hypotheses)))[0]),
    )
    logits, _ = hd.alignscore_logits(
        roberta,
        align,
        [(heads.alignscore_chunks(a), split_sentences(items)) for a, items in zip(sources, hypotheses)],
    )
    close(by_metric["alignscore"], map(heads.alignscore, logits["align_three"]))
    kept, back = (
        hd.ctc_word_logits(roberta, ctc, list(zip(a, items)))[0]
        for a, items in ((hypotheses, sources), (references, hypotheses))
    )
    close(by_metric["ctc_relevance"], map(alignment.ctc_relevance, kept, back))


def test_every_applicable_score_is_there_once_and_the_others_say_why(texts, graded, scored):
    missing = scored.missing
    assert set(graded["name"]) | set(missing) == set(reg.of("nlg")) and not set(graded["name"]) & set(missing)
    assert not graded.duplicated(["sample", "name"]).any() and len(graded) == 4 * graded["name"].nunique()
    assert (graded["value"].isna() == (graded["note"] != "")).all()
    assert missing["alignscore"] == ["a model for 'alignscore'"] and missing["dae"] == [
        "dae_arcs, which nothing here makes"
    ]
    for n in ("coco_token", "ner_overlap"):
        assert n not in missing or "pip install spacy" in missing[n][0]
    assert ("coco" in scored.models) == ("coco_token" not in missing)
    assert scored.models["summac"].startswith("tiny-nli ") and scored.models["bart"] == scored.models["harim"]


@pytest.mark.parametrize("column", ["source", "reference"])
def test_a_missing_column_is_named_and_costs_no_other_score(texts, graded, column):
    scores = g.compute_metrics(
        texts.drop(columns=column),
        {k: shipped_models()[k] for k in ("bart", "nli", "bertscore")},
        progress=False,
    )
    table = scores.table
    needs = {n for n, by_metric in scores.missing.items() if f"the column {column}" in by_metric}

    def of(leaf):
        return (
            (leaf,)
            if leaf in g.TEXT_COLUMNS
            else g.STATISTICS[g.COMPUTED_BY[leaf]].gives[leaf]
            if leaf in g.COMPUTED_BY
            else ()
        )

    assert needs == {n for n in reg.of("nlg") if any(column in of(leaf) for leaf in required_inputs(n))}
    both = wide(table)
    close(both, wide(graded)[both.columns].to_numpy())


def test_the_order_of_rows_changes_nothing(texts, graded, scored):
    scores = g.compute_metrics(texts.iloc[[2, 0, 3, 1]], shipped_models(), progress=False)
    table = scores.table
    assert (
        table["sample"].iloc[:4].tolist() == list("cadb")
        and table["name"].unique().tolist() == graded["name"].unique().tolist()
    )
    close(wide(table), wide(graded).to_numpy())
    assert scores.cut == scored.cut


def test_the_batch_changes_nothing(texts, graded):
    off = (
        (
            wide(g.compute_metrics(texts, shipped_models(), progress=False, batch_tokens=1).table)
            - wide(graded)
        )
        .abs()
        .max()
    )
    weight = (
        off.index.str.startswith("fflm").astype(float) * (np.e - 1) + 1
    )  # FFLM multiplies each token, and so its rounding, by up to e
    assert (off <= 2e-6 * weight).all() and len(off) > 60


def test_of_several_references_the_one_that_suits_best_counts(texts, graded, scored):
    "As graded with one reference at a time; only what is compared with references is computed for each"
    own, other = list(texts["reference"]), list(texts["reference"].iloc[[0, 0, 1, 0]])
    both = texts.drop(columns="reference").assign(
        references=[[x] if x == y else [x, y] for x, y in zip(own, other)]
    )
    scores = g.compute_metrics(both, shipped_models(), progress=False)
    table = scores.table
    assert list(table["name"].unique()) == list(graded["name"].unique()) and table["sample"].iloc[
        :4
    ].tolist() == list("abcd")
    one = (
        both.explode("references")
        .rename(columns=dict(references="reference"))
        .assign(id=lambda d: d["id"] + d.groupby("id").cumcount().astype(str))
    )
    apart, got, first = (
        wide(g.compute_metrics(one, shipped_models(), progress=False).table),
        wide(table),
        wide(graded),
    )
    each = apart.groupby(apart.index.str[0])

    def takes_all(leaf):
        return (
            leaf in g.COMPUTED_BY
            and g.STATISTICS[g.COMPUTED_BY[leaf]].takes_reference_lists
            and "reference" in g.STATISTICS[g.COMPUTED_BY[leaf]].gives[leaf]
        )

    mean = [n for n in got if any(map(takes_all, required_inputs(n)))]
    best = got.columns.difference([*mean, "bleu", "ter"])
    assert (
        len(one) == 7
        and len(mean) == 9
        and all(reg[n].sign == 1 or each[n].nunique().max() == 1 for n in best)
    )
    close(got[best], each[best].max().to_numpy(), 2e-6 * np.e)
    close(got[mean], each[mean].mean().to_numpy())  # As in BARTScore's code
    close(
        got["bleu"],
        [
            overlap.bleu(hypotheses, statistics)
            for hypotheses, statistics in zip(both["hypothesis"], both["references"])
        ],
    )
    moved = {n for n in got if not np.allclose(got[n], first[n], rtol=0, atol=1e-4, equal_nan=True)}
    assert {"rouge_l", "bart_score_precision", "bertscore_f1", "bleu"} <= moved and not {
        "summac_zs",
        "bart_score",
        "unieval_fluency",
    } & moved
    assert scores.cut.keys() == scored.cut.keys()


def test_a_text_has_a_score_where_one_of_its_references_gives_one(texts):
    table = g.compute_metrics(
        texts.iloc[:2].drop(columns="reference").assign(references=[["", texts["reference"][0]], ["", ""]]),
        {},
        ["rouge_l"],
        progress=False,
    ).table
    assert table["value"].tolist()[:1] == [1.0] and table["value"].isna().tolist() == [False, True]
    fine, empty = table["note"]
    assert fine == "" and empty.startswith("the reference has no word")


def test_each_checkpoint_is_loaded_once_and_only_what_is_asked_is_made(texts, monkeypatch):
    opened, real = [], g.open_model
    monkeypatch.setattr(g, "open_model", lambda key, *a, **kw: opened.append(key[0]) or real(key, *a, **kw))
    scores = g.compute_metrics(
        texts, shipped_models(), ["bart_score", "summac_zs", "harim", "rouge_l"], progress=False
    )
    assert [path.rsplit("/", 1)[-1] for path in opened] == ["tiny-bart", "tiny-nli"]
    assert {k: set(statistics) for k, statistics in scores.cut.items()} == dict(
        bart={"bart_logp_source_hypothesis"},
        harim={"bart110_logp_source_hypothesis", "bart110_logp_empty_hypothesis"},
        summac={"nli_source_sentences"},
    )
    scores = g.compute_metrics(
        texts,
        shipped_models() | dict(summac=shipped_models()["nli"]),
        ["mnli_doc", "summac_zs"],
        progress=False,
    )
    assert scores.models.keys() == {"mnli", "summac"} and len(opened) == 3


def test_a_model_is_gone_before_the_next_one_comes(texts, monkeypatch):
    """Without the garbage collector: nothing may hold a model in a circle, neither a score nor an error
    that became a note"""
    nets, held, real = [], [], g.open_model

    def noted(name, got):
        return nets.append((name, weakref.ref(got[0].model))) or got

    def opened(key, *given, **kw):
        held.extend(name for name, net in nets if net() is not None)
        return noted(key[0], real(key, *given, **kw))

    monkeypatch.setattr(g, "open_model", opened)
    gc.collect()
    gc.disable()
    try:
        g.compute_metrics(texts, shipped_models(), progress=False)
    finally:
        gc.enable()
    assert (
        len(nets) == len({str(statistics) for statistics in shipped_models().values()})
        and held == []
        and nets[-1][1]() is None
    )


def test_what_does_not_fit_is_counted(texts):
    long = texts.iloc[:1].assign(source=" ".join([texts["source"][0]] * 60))
    scores = g.compute_metrics(long, shipped_models(), ["mnli_doc", "bart_score"], progress=False)
    nli_model = load_model(shipped_models()["nli"])
    assert scores.cut["mnli"] == {
        "nli_source_hypothesis": ev.nli_pairs(
            nli_model, [(long["source"][0], long["hypothesis"][0])], 512, "first"
        )[1].sum()
    }
    assert scores.cut["mnli"]["nli_source_hypothesis"] > 100


def test_empty_texts_are_scored_or_noted(texts):
    table = g.compute_metrics(texts.iloc[:2].assign(hypothesis=""), shipped_models(), progress=False).table
    assert (table["value"].isna() == (table["note"] != "")).all()
    by_metric = wide(table)
    assert (
        by_metric["unieval_fluency"].isna().all()
        and by_metric["rouge_l"].eq(0).all()
        and by_metric["unieval_fluency_he2024"].eq(0).all()
    )


FILES = {
    "a.csv": "id,summary,document\n007,NA,Rain fell.\n",
    "a.jsonl": json.dumps(dict(id="007", hypothesis="NA", source="Rain fell.")) + "\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_it_stands(tmp_path, name):
    (tmp_path / name).write_text(FILES[name])
    assert g.read_texts(tmp_path / name).to_dict("records") == [
        dict(id="007", hypothesis="NA", source="Rain fell.")
    ]


def test_a_file_may_hold_several_references(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        json.dumps(dict(summary="Rain fell.", references=["Snow fell.", "Rain fell."]))
        + "\n"
        + json.dumps(dict(summary="Snow.", references=["Rain."]))
        + "\n"
    )
    assert g.compute_metrics(g.read_texts(tmp_path / "a.jsonl"), {}, ["rouge_l"], progress=False).table[
        "value"
    ].tolist() == [
        1.0,
        0.0,
    ]
    texts = g.read_texts(tmp_path / "a.jsonl")
    texts.to_parquet(tmp_path / "a.parquet")
    again = g.read_texts(tmp_path / "a.parquet")
    assert again.to_dict("list") == texts.to_dict("list") and cached_metrics(
        tmp_path / "kept", again, {}, ["rouge_l"], progress=False
    ).table["value"].tolist() == [1.0, 0.0]
    (tmp_path / "a.csv").write_text("summary,references\na,b\n")
    with pytest.raises(
        ValueError, match="references must be a list of one text or more; it is not for row 1"
    ):
        g.compute_metrics(g.read_texts(tmp_path / "a.csv"), {}, ["rouge_l"], progress=False)


@pytest.mark.parametrize(
    "text,says",
    [
        (
            "text\nRain\n",
            r"a.csv has no column for the texts to score; it has \['text'\]. Accepted are id: id; "
            r"hypothesis: hypothesis or summary; source: source or document; reference: reference",
        ),
        ("summary,hypothesis\na,b\n", "has both hypothesis and summary"),
        ("summary\n", "is empty"),
    ],
)
def test_a_file_that_does_not_fit_says_what_would(tmp_path, text, says):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=says):
        g.read_texts(tmp_path / "a.csv")


@pytest.mark.parametrize(
    "change,says",
    [
        (dict(id="a"), "occur twice: a"),
        (dict(source=[1, 2, 3, 4]), "source must be a text; it is not for a, b"),
        (dict(hypothesis=[1, 2, 3, 4]), "hypothesis must be a text"),
    ],
)
def test_texts_that_are_none_are_refused(texts, change, says):
    with pytest.raises(ValueError, match=says):
        g.compute_metrics(texts.assign(**change), {}, progress=False)


def test_a_text_without_source_or_reference_takes_nothing_from_the_others(texts):
    metrics, models = ["rouge_l", "summac_zs", "bart_score", "bart_score_recall"], shipped_models()
    whole = g.compute_metrics(texts, models, metrics, progress=False).table
    texts = texts.assign(source=[None, *texts["source"][1:]], reference=[*texts["reference"][:-1], None])
    found = g.compute_metrics(texts, models, metrics, progress=False).table
    first, last = texts["id"].iloc[0], texts["id"].iloc[-1]
    gone = {(first, "summac_zs"), (first, "bart_score"), (last, "rouge_l"), (last, "bart_score_recall")}
    rows, whole = found.set_index(["sample", "name"]), whole.set_index(["sample", "name"])
    assert set(rows.index[rows["value"].isna()]) == gone | set(whole.index[whole["value"].isna()])
    assert rows.at[(first, "bart_score"), "note"] == "this text has no source"
    kept = [row for row in rows.index if row not in gone]
    assert rows.loc[kept, "value"].equals(whole.loc[kept, "value"])


def test_a_model_that_fails_for_a_text_leaves_the_others(texts, monkeypatch):
    from uetrust.models import likelihoods

    real, bad = likelihoods.directed_logp, texts["hypothesis"].iloc[2]

    def fails(model, name, directions, hypotheses, *rest, **kw):
        if bad in hypotheses:
            raise RuntimeError("no room")
        return real(model, name, directions, hypotheses, *rest, **kw)

    given = (texts, shipped_models(), ["rouge_l", "bart_score"])
    whole = g.compute_metrics(*given, progress=False).table
    monkeypatch.setattr(likelihoods, "directed_logp", fails)
    with pytest.raises(RuntimeError, match="no room"):
        g.compute_metrics(*given, progress=False)
    found = g.compute_metrics(*given, progress=False, errors="note").table
    wrong = (found["name"] == "bart_score") & (found["sample"] == texts["id"].iloc[2])
    assert found["note"][wrong].tolist() == ["failed: RuntimeError: no room"]
    assert found["value"].isna().tolist() == (wrong | whole["value"].isna()).tolist()
    assert found["value"][~wrong].equals(whole["value"][~wrong])
    with pytest.raises(ValueError, match="errors must be one of 'raise', 'note'"):
        g.compute_metrics(*given, progress=False, errors="ignore")


def test_a_table_without_rows_is_refused(texts):
    with pytest.raises(ValueError, match="there is no text to score"):
        g.compute_metrics(texts.iloc[:0], {}, ["rouge_l"], progress=False)
