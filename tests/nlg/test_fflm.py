"""FFLM, CoP, HaRiM and CoCo: recorded numbers of the original code, its edge cases, its tuning, and masks
as pure functions."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.run import ScoreRun, compute_score
from uetrust.core.settings import oracles, root
from uetrust.data.bulletins import bulletin
from uetrust.models.likelihoods import (
    _words_with_first_tokens,
    coco_probabilities,
    directed_logp,
    fflm_probabilities,
)
from uetrust.models.load import load_model
from uetrust.nlg.fflm import (
    COCO_MASKINGS,
    FFLM_COMPONENTS,
    MIXING_GRIDS,
    _fflm_ablations,
    _hallucination_risk,
    _mean_probability_drop,
    balanced_accuracy_at,
    coco_maskings,
    content_words,
    cop_causal,
    fflm_components,
    fflm_tokens,
    harim,
    harim_causal,
    mask_words,
    mix_components,
    pos_tagged,
    probability_change,
    restore_capitals,
    sentence_indices,
    tune_fflm,
)
from uetrust.nlg.fflm import fflm as fflm_score


def close(got, want, tol=2e-5):
    np.testing.assert_allclose(got, want, rtol=0, atol=tol)


def values(run, name):
    return compute_score(run, name).set_index("sample")["value"]


@pytest.fixture(scope="module")
def models():
    if oracles() is None:
        pytest.skip("UETRUST_ORACLES is not at hand")
    seen = {}

    def get(name):
        if name not in seen:
            seen[name] = load_model(oracles() / "seed_systems/models" / name, device="cpu")
        return seen[name]

    return get


@pytest.fixture(scope="module")
def texts(oracle):
    return {p["id"]: p for p in oracle("seed_systems/pairs.json")}


# FFLM
OFFICIAL = dict(
    delta_Y_prior="fflm_y_prior",
    delta_Y_cond="fflm_y_cond",
    delta_X_prior="fflm_x_prior",
    fflm="fflm",
    cop="cop_causal",
    harim_negated="harim_causal",
)
DERIVED = dict(
    paper_weight=dict(weight="paper"),
    wo_w=dict(weight="none"),
    wo_log=dict(log=False),
    wo_w_and_log=dict(weight="none", log=False),
)
ORDER = ("delta_Y_prior", "delta_X_prior", "delta_Y_cond")


@pytest.fixture(scope="module")
def five(oracle, models, texts):
    rec = {record["id"]: record for record in oracle("seed_systems/fflm_records.json")["records"]}
    leaves, cut = fflm_probabilities(
        models("tiny_llama"), [texts[i]["summary"] for i in rec], [texts[i]["source"] for i in rec]
    )
    return rec, ScoreRun(list(rec), reg, **leaves), cut


@pytest.mark.parametrize("name", OFFICIAL)
def test_what_the_original_computes(five, name):
    rec, run, _ = five
    got = values(run, OFFICIAL[name])
    for bits in (32, 64):
        close(got, [record[f"official_float{bits}"][name] for record in rec.values()])


@pytest.mark.parametrize("form", DERIVED)
def test_ablations_of_the_weight_and_the_logarithm(five, form):
    rec, run, _ = five
    score_of = values(run, "fflm_paper" if form == "paper_weight" else f"fflm_{form}")
    for i, tokens in zip(rec, run["fflm_tokens"]):
        want = rec[i]["derived_float32"][form]
        close(fflm_components(tokens, **DERIVED[form]), [want[k] for k in ORDER])
        close([score_of[i], _fflm_ablations(tokens)[form]], want["fflm"])


def test_equal_weights_and_mean_log_likelihoods(five):
    rec, run, _ = five
    close(
        values(run, "fflm_equal"),
        [record["derived_float32"]["fflm_equal_weights"] for record in rec.values()],
    )
    for record, tokens in zip(rec.values(), run["fflm_tokens"]):
        want = record["derived_float32"]["mean_log_likelihood"]
        close(
            [np.log(tokens[k]).mean() for k in ("s2s", "lm", "prefix", "s2s_doc", "lm_doc")],
            [want[k] for k in ("Y_s2s", "Y_lm", "Y_prefix", "X_s2s", "X_lm")],
        )


def test_only_the_long_source_is_cut(five, oracle):
    rec, run, cut = five
    cut_off = dict(zip(rec, cut["fflm_s2s"].tolist()))
    assert {i for i, n in cut_off.items() if n} == {"p13_long"}
    record = rec["p13_long"]
    assert (
        cut_off["p13_long"] == 1 + record["n_source_tokens"] + 6 + record["n_summary_tokens"] - 2048
    )  # first id, separator of 6 tokens


def test_the_code_needs_every_token_visible(five, oracle):
    "With the original's mask newer libraries show the first token only, and give other numbers."
    wrong = oracle("seed_systems/fflm_records.json")["unpatched_run_on_newer_transformers_is_wrong"]["fflm"][
        "5.23.0"
    ]
    got = values(five[1], "fflm")
    assert all(abs(got[i] - w) > 1e-3 for i, w in wrong.items()) and len(wrong) == len(got)


def test_edge_cases(oracle, models, texts):
    """An empty side and a summary past the window have no score where the original gives not-a-number or
    breaks; a source of one token has one where the original crashes."""
    x, y, long = texts["p01"]["source"], texts["p01"]["summary"], texts["p13_long"]["source"]
    cases = {
        "empty summary": (x, ""),
        "empty source": ("", y),
        "one-token source": ("a", y),
        "summary longer than the window": (x, long),
        "summary is one token, source is the same token": ("a", "a"),
        "whitespace only summary": (x, " "),
    }
    rec = {
        case_record["case"]: case_record
        for case_record in oracle("seed_systems/fflm_records.json")["edge_cases"]
    }
    assert list(cases) == list(rec)
    leaves, cut = fflm_probabilities(
        models("tiny_llama"), [y for _, y in cases.values()], [x for x, _ in cases.values()]
    )
    run = ScoreRun(list(cases), reg, **leaves)
    for (case, case_record), n in zip(rec.items(), range(len(rec))):
        if "summary_tokens" in case_record and case != "summary longer than the window":
            assert (len(leaves["fflm_s2s"][n]), len(leaves["fflm_s2s_doc"][n])) == (
                case_record["summary_tokens"],
                case_record["source_tokens"],
            )
        for k, expected in case_record.get("components", {}).items():
            got = values(run, OFFICIAL[k])[case]
            assert np.isnan(got) if expected is None else got == pytest.approx(expected, abs=2e-5), (case, k)
    assert np.isfinite(
        values(run, "fflm")[
            ["one-token source", "summary is one token, source is the same token", "whitespace only summary"]
        ]
    ).all()
    notes = compute_score(run, "fflm").set_index("sample")["note"]
    assert (
        "at least 1 token, got 0" in notes["empty summary"]
        and "at least 1 token, got 0" in notes["empty source"]
        and "does not fit into the window" in notes["summary longer than the window"]
    )
    assert cut["fflm_s2s"].tolist() == [0, 0, 0, 94 + 2413 - (2048 - 7), 0, 0]


def test_a_tokens_weight_is_named():
    with pytest.raises(ValueError, match="not 'e'"):
        probability_change([0.5], [0.5], "e")


def test_a_probability_of_zero_counts_as_a_millionth():
    assert probability_change([0.5], [0.0], "none") == pytest.approx(
        np.log(0.5 / 1e-6)
    ) and probability_change([0.0], [0.5]) == pytest.approx(np.exp(1 - 1e-6) * np.log(1e-6 / 0.5))


def test_pairs_of_components_keep_their_shares(five):
    tokens = five[1]["fflm_tokens"][0]
    rows, components = _fflm_ablations(tokens), fflm_components(tokens)
    assert rows["fflm"] == fflm_score(tokens) and [rows[k] for k in FFLM_COMPONENTS] == components.tolist()
    close(
        [rows["y_prior, x_prior"], rows["y_prior, y_cond"], rows["x_prior, y_cond"]],
        [
            fflm_score(tokens, 0.5, 0.5, 0),
            fflm_score(tokens, 1 / 3, 0, 2 / 3),
            fflm_score(tokens, 0, 1 / 3, 2 / 3),
        ],
        1e-12,
    )


# Tuning and rating
NAMES = dict(
    fflm_s2s="s2s_tok_list",
    fflm_lm="lm_tok_list",
    fflm_prefix="prefix_tok_list",
    fflm_s2s_doc="s2s_tok_list_1",
    fflm_lm_doc="lm_tok_list_1",
)


@pytest.fixture(scope="module")
def synthetic(oracle):
    rec = oracle("seed_systems/fflm_evaluation.json")
    tokens = fflm_tokens(
        **{k: [np.atleast_1d(record[n]) for record in rec["input"]] for k, n in NAMES.items()}
    )
    return rec, tokens, np.array([fflm_components(tokens) for tokens in tokens])


def labels(rec):
    return np.array([record["label"] for record in rec["input"]])


def test_every_mix_of_the_grid(synthetic):
    rec, _, parts = synthetic
    val = np.array([record["cut"] == "val" for record in rec["input"]])
    faithful, components = labels(rec)[val] == 1, parts[val]
    assert (
        MIXING_GRIDS["code"] == [tuple(point) for point in rec["grid"]]
        and len(MIXING_GRIDS["paper"]) == 66
        and sorted(set(MIXING_GRIDS["paper"]) - set(MIXING_GRIDS["code"]))
        == [tuple(point) for point in rec["grid_points_lost_to_rounding"]]
    )
    for trace in rec["grid_trace"]:
        assert balanced_accuracy_at(
            mix_components(components, trace["alpha"], trace["beta"]), faithful, trace["threshold"]
        ) == pytest.approx(trace["val_bacc"], abs=1e-12)
    best = tune_fflm(components, faithful)
    assert (best.alpha, best.beta) == tuple(rec["chosen"])
    close(
        [best.threshold, best.balanced_accuracy], [rec["best_threshold"], rec["val_balanced_accuracy"]], 1e-9
    )
    scores = mix_components(parts[~val], best.alpha, best.beta)
    close(scores, rec["test_scores"], 1e-9)
    assert balanced_accuracy_at(scores, labels(rec)[~val] == 1, best.threshold) == pytest.approx(
        rec["test_balanced_accuracy"], abs=1e-12
    )


def test_rating(synthetic):
    rec, tokens, _ = synthetic
    scores, ratings = (
        [fflm_score(tokens) for tokens in tokens],
        [record["score"] for record in rec["rating_extra"]],
    )
    for name, correlation in dict(pearson=pearsonr, spearman=spearmanr, kendall=kendalltau).items():
        assert correlation(scores, ratings).statistic == pytest.approx(rec["rating"][name], abs=1e-9)


def test_zeros_and_single_tokens_occur_in_the_recorded_lists(synthetic):
    rec, tokens, _ = synthetic
    assert (
        sum((values == 0).any() for item in tokens for values in item.values()) == 1
        and sum(len(values) == 1 for item in tokens for values in item.values()) >= 1
    )


def test_one_kind_of_label_cannot_be_balanced():
    with pytest.raises(ValueError, match="one kind only"):
        tune_fflm(np.eye(3), [True] * 3)


def test_an_unknown_grid_is_refused():
    with pytest.raises(ValueError, match="no grid 'all'"):
        tune_fflm(np.eye(3), [True, False, True], "all")


def test_capitals_of_frank(oracle):
    for record in oracle("seed_systems/fflm_records.json")["recapitalisation"]:
        assert (
            restore_capitals(record["claim"], record["document"]) == record["after_re_upper"]
            and restore_capitals(record["claim"], "")[0] == record["after_capitalize"][0]
        )


# CoP and HaRiM
@pytest.fixture(scope="module")
def bart(models, texts, oracle):
    rec = oracle("seed_systems/s2s_likelihoods.json")
    ids = [record["id"] for record in rec["cop_bart"]["records"]]
    given = dict(hypothesis=[texts[i]["summary"] for i in ids], source=[texts[i]["source"] for i in ids])
    plain, _ = directed_logp(models("tiny_bart"), "bart", ["source_hypothesis", "prefix_hypothesis"], **given)
    cut_at_110, cut = directed_logp(
        models("tiny_bart"), "bart110", ["source_hypothesis", "empty_hypothesis"], **given, most=110
    )
    return rec, ScoreRun(ids, reg, **plain | cut_at_110), cut


def test_cop_of_a_bart(bart):
    rec, run, _ = bart
    close(values(run, "cop"), [record["cop"] for record in rec["cop_bart"]["records"]])
    for record, given_source, given_prefix in zip(
        rec["cop_bart"]["records"], run["bart_logp_source_hypothesis"], run["bart_logp_prefix_hypothesis"]
    ):
        close([given_source.mean(), given_prefix.mean()], [record["s2s"], record["prefix"]])
        if record["token_loss_s2s"]:
            close([-given_source, -given_prefix], [record["token_loss_s2s"], record["token_loss_prefix"]])


def test_harim_of_a_bart(bart):
    rec, run, cut = bart
    records = rec["harim_bart"]["records"]
    close(values(run, "harim_plus"), [record["harim_plus_lambda7"] for record in records])
    close(-values(run, "harim"), [record["fflm_appendix_harim_eq9"] for record in records])
    close(1 + values(run, "harim") / 2, [record["harim"] for record in records])
    for record, given_source, given_empty in zip(
        records, run["bart110_logp_source_hypothesis"], run["bart110_logp_empty_hypothesis"]
    ):
        close([np.exp(given_source), np.exp(given_empty)], [record["p_s2s"], record["p_lm_empty_source"]])
    assert cut["bart110_logp_empty_hypothesis"].tolist() == [0] * len(records)


def test_harim_reads_110_tokens_of_a_summary(models, texts):
    long = texts["p13_long"]["source"]
    statistics, cut = directed_logp(
        models("tiny_bart"),
        "bart110",
        ["source_hypothesis", "empty_hypothesis"],
        [long],
        [texts["p01"]["source"]],
        most=110,
    )
    n = len(models("tiny_bart").tokenizer(long, verbose=False).input_ids)
    assert [len(values[0]) for values in statistics.values()] == [110, 110] and [
        values.tolist() for values in cut.values()
    ] == [[n - 110]] * 2


def test_risk_is_highest_where_the_source_does_not_help():
    p = np.array([0.2])
    assert (
        _hallucination_risk(p, p) > _hallucination_risk(p, p / 2) > _hallucination_risk(p * 2, p / 2)
        and _hallucination_risk([1.0], [0.0]) == 0
        and harim(np.log(p), np.log(p)) == -_hallucination_risk(p, p)
    )
    for with_source, without in (([], []), ([0.5, 0.5], [0.5])):
        with pytest.raises(Undefined):
            _hallucination_risk(with_source, without)


# CoCo
HOW = dict(zip(COCO_MASKINGS, ("token", "span", "sent", "doc")))


def test_masks_are_those_of_the_original(oracle):
    compared = 0
    for record in oracle("seed_systems/s2s_likelihoods.json")["coco_bart"]["records"]:
        counted, hidden = coco_maskings(
            (record["summary_tokens"], record["summary_tags"]),
            (record["source_tokens"], None, record["source_sentences"]),
        )
        assert counted == record["masked_token_list"]
        for how, k in HOW.items():
            assert hidden[how] == record["variants"][k]["masked_document"], (record["id"], how)
            compared += 1
    assert compared == 32


def test_coco_of_a_bart(oracle, models, texts):
    rec = oracle("seed_systems/s2s_likelihoods.json")["coco_bart"]["records"]
    made = [
        coco_maskings(
            (record["summary_tokens"], record["summary_tags"]),
            (record["source_tokens"], None, record["source_sentences"]),
        )
        for record in rec
    ]
    leaves, cut = coco_probabilities(
        models("tiny_bart"),
        [texts[record["id"]]["summary"] for record in rec],
        [texts[record["id"]]["source"] for record in rec],
        [masked_texts for _, masked_texts in made],
    )
    run = ScoreRun(
        [record["id"] for record in rec], reg, coco_important=[counted for counted, _ in made], **leaves
    )
    assert leaves["coco_words"] == [record["merged_words"] for record in rec]
    for probabilities, record in zip(leaves["coco_p_source"], rec):
        close(probabilities, record["merged_first_piece_prob_source"])
    for how, k in HOW.items():
        table = compute_score(run, f"coco_{how}")
        for record, value, note in zip(rec, table["value"], table["note"]):
            if record["merged_words_used"]:
                close(value, record["variants"][k]["coco"])
            else:
                assert (
                    np.isnan(value)
                    and "no word of the summary counts" in note
                    and record["variants"][k]["coco"] == 0
                )  # upstream's 0
    assert [n for n in cut if cut[n].any()] == [] and sum(
        not record["merged_words_used"] for record in rec
    ) == 1


def test_words_of_odd_texts(models):
    model = models("tiny_bart")

    def of(text):
        return _words_with_first_tokens(model, model.tokenizer(text).input_ids)[1]

    assert of("") == [] and of("a  b") == ["a", "b"] and of(" a\nb café ") == ["a\nb", "café"]
    assert of("  a b") == ["a", "b"] and of(" ") == []  # The first blank is a token of its own


def test_a_leading_blank_is_not_the_first_piece_of_a_word(models, texts):
    "With and without it the pieces whose probability counts are the same: none is a lone blank."
    model, summary = models("tiny_bart"), texts["p01"]["summary"]
    ids = model.tokenizer("  " + summary).input_ids
    assert model.tokenizer.convert_ids_to_tokens(ids)[1] == "Ġ"
    first, words = _words_with_first_tokens(model, ids)
    pieces = model.tokenizer.convert_ids_to_tokens([ids[k] for k in first])
    assert words == summary.split() and all(piece not in ("Ġ", "▁") for piece in pieces)
    alone = model.tokenizer(" " + summary).input_ids
    before = _words_with_first_tokens(model, alone)[0]
    assert pieces == model.tokenizer.convert_ids_to_tokens([alone[k] for k in before])


def test_masking_more_hides_more():
    tokens = "the hall is closed today . rain fell .".split()
    where = sentence_indices(tokens, ["the hall is closed today.", "rain fell."])
    hidden = {
        how: np.array([token == "_" for token in mask_words(tokens, ["Hall"], how, where, "_").split()])
        for how in COCO_MASKINGS
    }
    assert [hidden_tokens.sum() for hidden_tokens in hidden.values()] == [1, 4, 6, 9]
    assert all((fewer <= more).all() for fewer, more in zip(list(hidden.values()), list(hidden.values())[1:]))
    assert all(mask_words([], ["a"], how, np.zeros(0, int)) == "" for how in COCO_MASKINGS) and content_words(
        ["of", "the"], ["ADP", "DET"]
    ) == ["of"]


def test_sentences_and_tokens_of_different_texts_are_refused():
    with pytest.raises(ValueError, match="not of the same text"):
        sentence_indices(["a", "b"], ["a."])
    with pytest.raises(ValueError, match="not of the same text"):
        sentence_indices(["a"], ["a."])
    with pytest.raises(ValueError, match="no masking 'word'"):
        mask_words(["a"], ["a"], "word")
    assert sentence_indices(["a.b", "c"], ["a.", "b c"]).tolist() == [0, 1]  # a token belongs where it begins


def test_only_whole_words_count():
    with pytest.raises(Undefined, match="no word"):
        _mean_probability_drop(["Hall", "hall."], ["hall"], np.ones(2), np.zeros(2))
    assert _mean_probability_drop(
        ["hall", "hall", "x"], ["hall"], np.array([0.5, 0.3, 1]), np.zeros(3)
    ) == pytest.approx(0.4)


def test_without_spacy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(LookupError, match="pip install spacy, then python -m spacy download en_core_web_sm"):
        pos_tagged("a")


def test_spacys_answer_is_taken_apart(monkeypatch):
    token = lambda text, tag: SimpleNamespace(text=text, pos_=tag, is_space=text.isspace())

    class Doc(list):
        sents = [SimpleNamespace(text="Rain fell.")]

    monkeypatch.setitem(
        sys.modules,
        "spacy",
        SimpleNamespace(
            load=lambda name: (
                lambda text: Doc(
                    token(*fields)
                    for fields in (("Rain", "NOUN"), ("\n", "SPACE"), ("fell", "VERB"), (".", "PUNCT"))
                )
            )
        ),
    )
    tokens, tags, sentences = pos_tagged("Rain\nfell.", "a-stand-in")
    assert (list(tokens), content_words(tokens, tags), sentences) == (
        ["Rain", "fell", "."],
        ["Rain", "fell"],
        ["Rain fell."],
    )


def test_a_missing_component_stops_the_tuning():
    with pytest.raises(ValueError, match="1 of 3 items have a missing component"):
        tune_fflm(np.array([[1, 2, 3], [1, np.nan, 3], [0, 0, 0]]), [True, False, True])


# The shipped models
def test_batches_and_order_change_nothing_and_a_reference_beats_word_salad():
    rows, rng = [bulletin("test", i) for i in range(4)], np.random.default_rng(1)
    references, sources = [item["reference"] for item in rows], [item["source"] for item in rows]
    salad = [" ".join(rng.permutation(text.split())) for text in references]
    model = load_model(root() / "data/models/tiny-llama", device="cpu")
    good, bad = (
        ScoreRun(range(4), reg, **fflm_probabilities(model, text, sources)[0]) for text in (references, salad)
    )
    back = ScoreRun(
        range(4), reg, **fflm_probabilities(model, references[::-1], sources[::-1], batch_tokens=1)[0]
    )
    for name in ("fflm", "fflm_y_prior", "cop_causal", "harim_causal"):
        close(values(good, name), values(back, name)[::-1], 2e-6)
    assert (values(good, "harim_causal") > values(bad, "harim_causal")).all()
    assert (
        np.isfinite(values(good, "fflm")).all()
        and cop_causal(good["fflm_tokens"][0]) == values(good, "cop_causal")[0]
        and harim_causal(good["fflm_tokens"][0]) < 0
    )
