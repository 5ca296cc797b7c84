"""Scores of files that other tools wrote, through the command that users type."""

import io
import json
import re
import sys

import numpy as np
import pandas as pd
import pytest

from tests.helpers.outputs import FOLDER
from tests.helpers.reply_files import explained
from uetrust.cli.cli import main
from uetrust.core.settings import root
from uetrust.data.outputs import read_outputs
from uetrust.generation.bank import read_bank
from uetrust.scoring import files
from uetrust.scoring.files import truncated_entropy
from uetrust.ue.similarity import rouge_tokenizer


def test_everything_that_replies_allow_is_computed(replies, tmp_path, capsys):
    "Neither methods nor metrics named: at least 37 methods; one row per text, one column per score."
    from uetrust.statistics.scores import load_scores

    out = tmp_path / "scores.parquet"
    assert main(["score", str(replies), "--out", str(out)]) == 0
    said, table, reg = capsys.readouterr().out, pd.read_parquet(out), load_scores()
    methods = [name for name in table.columns if name in reg and reg[name].kind == "ue"]
    assert len(table) == 60 and table["id"].is_unique and len(methods) >= 37
    assert table[methods].notna().all().all() and "trained on synthetic bulletins" in said
    assert "mte: entropies of the 3 likeliest tokens and the rest as one, a lower bound" in said
    first = json.loads(replies.read_text().split("\n")[0])["response"]["body"]["choices"]
    logp = [at["logprob"] for at in first[0]["logprobs"]["content"]]
    drawn = [sum(at["logprob"] for at in other["logprobs"]["content"]) for other in first[1:]]
    row = table.iloc[0]
    assert row["msp"] == pytest.approx(-sum(logp)) and row["mcse"] == pytest.approx(-np.mean(drawn))
    top = np.array(
        [[other["logprob"] for other in at["top_logprobs"]] for at in first[0]["logprobs"]["content"]]
    )
    assert row["mte"] == pytest.approx(truncated_entropy(top).mean())


def as_vllm(line):
    "A chat completion as vLLM dumps it"

    def output(one):
        tokens = one["logprobs"]["content"]
        at = [
            {
                str(k): dict(logprob=top["logprob"], decoded_token=top["token"])
                for k, top in enumerate(token["top_logprobs"])
            }
            for token in tokens
        ]
        return dict(index=one["index"], text=one["message"]["content"], logprobs=at, token_ids=[0] * len(at))

    asked = json.loads(line)
    outputs = [output(one) for one in asked["response"]["body"]["choices"]]
    prompt = asked["request"]["messages"][0]["content"]
    return json.dumps(dict(request_id=asked["custom_id"], prompt=prompt, finished=True, outputs=outputs))


def test_the_same_replies_dumped_by_vllm_have_the_same_scores(replies, tmp_path, capsys):
    dump, tables = tmp_path / "dump.jsonl", []
    dump.write_text("\n".join(map(as_vllm, replies.read_text().splitlines())) + "\n")
    for file in (replies, dump):
        assert main(["score", str(file), "--method", "all", "--csv"]) == 0
        tables.append(pd.read_csv(io.StringIO(capsys.readouterr().out)))
    assert tables[0].shape[0] == 60 and tables[0].shape[1] > 37
    pd.testing.assert_frame_equal(*tables)


def test_a_run_of_helm_is_read_from_its_folder(capsys):
    said = []
    for path in (FOLDER / "helm", FOLDER / "helm" / "scenario_state.json"):
        assert main(["score", str(path), "--method", "msp", "--metric", "rouge_l", "--csv"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] and said[0].startswith("id,") and "msp,rouge_l" in said[0]


@pytest.mark.parametrize(
    "names, warned",
    {
        "--method msp lex_sim": False,
        "--method deg_mat": True,
        "--method token_sar": True,
        "--method cocoa_msp": True,
        "--metric rouge_l": False,
        "--metric summac_zs": True,
    }.items(),
)
def test_the_shipped_models_are_warned_of_where_a_score_rests_on_them(names, warned, capsys):
    assert main(["score", str(FOLDER / "inspect.eval"), *names.split()]) == 0
    assert ("trained on synthetic bulletins" in capsys.readouterr().out) == warned


def test_tokens_and_their_alternatives_are_compared_in_both_directions(monkeypatch):
    "Forward: the token entails its alternative. Backward: the alternative entails the token."
    from uetrust.models import classifiers, load

    def nli_pairs(model, pairs):
        classes = [2 if ("The", "the") == pair else 0 if pair[0] == "the" else 1 for pair in pairs]
        return np.eye(3, dtype="float32")[classes], np.arange(len(pairs)) == 0  # One input is cut

    monkeypatch.setattr(load, "load_model", lambda name, dtype: name)
    monkeypatch.setattr(classifiers, "nli_pairs", nli_pairs)
    outputs, cut = read_outputs(FOLDER / "vllm_request_outputs.jsonl"), {}
    found = files._computed(
        outputs.records,
        list(map(files._fields_of, outputs.records)),
        ["ccp_forward", "ccp_backward"],
        dict(nli="x"),
        cut,
        "raise",
        {},
    )
    record = outputs.records[0]
    words = [token.strip() for token in record.text.tokens]
    others = [[word.strip() for word, _ in at] for at in record.text.top_logprobs]
    for i, (word, row) in enumerate(zip(words, others)):
        for name, pairs in dict(
            ccp_forward=[(word, other) for other in row], ccp_backward=[(other, word) for other in row]
        ).items():
            classes = nli_pairs(None, pairs)[0].argmax(1)
            classes[[one == other for one, other in pairs]] = 2  # A word entails itself
            assert list(found[name][0][i]) == list(classes), (name, word)
    assert not np.array_equal(found["ccp_forward"][0], found["ccp_backward"][0])
    assert cut == dict(ccp_forward=1)


def test_a_model_is_opened_once_and_a_text_that_it_fails_for_costs_no_other(tmp_path, monkeypatch, capsys):
    "Items with and without log-probabilities share a model; the one that it cannot read has a reason."
    from uetrust.models import classifiers

    opened, open_model, logits = [], files.open_model, classifiers.entailment_logits

    def fails(model, pairs, **options):
        if any("hail" in text for pair in pairs for text in pair):
            raise RuntimeError("no hail today")
        return logits(model, pairs, **options)

    monkeypatch.setattr(files, "open_model", lambda *key: opened.append(key[0]) or open_model(*key))
    monkeypatch.setattr(classifiers, "entailment_logits", fails)
    rows = [
        dict(id="a", summary="Rain fell.", samples=["Rain fell.", "Fire."], logprobs=[-0.5]),
        dict(id="b", summary="Snow fell.", samples=["Snow fell.", "hail"]),
        dict(id="c", summary="Dogs ran.", samples=["Dogs ran.", "Cats ran."]),
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert main(["score", str(tmp_path / "x.jsonl"), "--method", "deg_mat", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(opened) == 1 and [row["deg_mat"] is None for row in told["scores"]] == [False, True, False]
    assert any("deg_mat failed on 1 text" in note and "no hail today" in note for note in told["notes"])


SAME_MEANING = dict(  # Scores of five equal samples, whatever the NLI model says of a text and itself
    num_sets=1,
    num_sets_lin=1,
    discrete_semantic_entropy=0,
    semantic_entropy=0,
    deg_mat=0,
    deg_mat_contra=0,
    eigv=1,
    eigv_contra=1,
    ecc=0,
    ecc_contra=0,
    luq=0,
    selfcheck_nli=0,
    selfcheck_nli_text=0,
    semantic_density=-1,
)


@pytest.mark.parametrize("text", ["Paris", "Rain fell on the hall. The mayor left.", "北京"])
def test_equal_samples_have_one_meaning_in_every_method(text, tmp_path, capsys):
    samples = [text, f"{text} ", text.replace(" ", "  "), text, text]
    row = dict(id="b", hypothesis=text, samples=samples, logprobs=[-0.5], sample_logprobs=[[-0.5]] * 5)
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps(row) + "\n")
    names = [name for name in SAME_MEANING if name != "selfcheck_nli" or "." not in text]
    assert main(["score", str(file), "--method", *names, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["scores"]
    for name in names:
        assert found[name] == pytest.approx(SAME_MEANING[name], abs=1e-9), name


def test_an_input_that_did_not_fit_is_told(tmp_path, capsys):
    file, long = tmp_path / "x.jsonl", "The mayor opened the bridge on Friday. " * 400
    rows = [dict(id=f"{i}", summary=long, samples=[f"No {i}. {long}", "Rain."]) for i in range(3)]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert main(["score", str(file), "--method", "deg_mat"]) == 0
    (n,) = re.findall(r"note: nli: (\d+) inputs did not fit the model", capsys.readouterr().out)
    assert int(n) > 3 and int(n) % 3 == 0


def test_every_reference_of_a_text_counts(tmp_path, capsys):
    file = tmp_path / "x.jsonl"
    rows = [dict(id="a", summary="It rained.", references=["Snow fell.", "It rained."])]
    rows += [dict(id="b", summary="It rained.", references=["Snow fell."])]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert main(["score", str(file), "--metric", "rouge_l", "--json"]) == 0
    assert [row["rouge_l"] for row in json.loads(capsys.readouterr().out)["scores"]] == [1, 0]


def test_explain_tells_a_lack_of_models_from_a_lack_of_inputs(capsys):
    outputs = read_outputs(FOLDER / "openai_batch_output.jsonl")
    assert files.FileTexts(outputs).remedy("nli", {}) == "--model nli=CHECKPOINT"
    bare = read_outputs(FOLDER / "openai_no_logprobs.jsonl")
    assert files.FileTexts(bare).remedy("ccp_forward", {}) == "ask the server again with logprobs=true"


def test_explain_tells_what_only_the_model_itself_can_give_and_how_it_gives_it(capsys):
    file = FOLDER / "openai_batch_output.jsonl"
    found = {name: row["remedy"] for name, row in explained(capsys, file).items()}
    read = "the model itself must read its texts: uetrust bank generate BANK "
    read += "--model CHECKPOINT --data FILE, then uetrust read BANK --read {} --model CHECKPOINT --data FILE"
    assert found["msp_he2024"] == read.format("processed") and found["pmi"] == read.format("unconditional")
    fill = "add {} to passes in settings.ini, then uetrust fill DATASET--GENERATOR"
    assert found["rauq"] == fill.format("attention")
    assert found["rauq_entropy"] == f"{fill.format('attention')}; {read.format('vocabulary')}"
    assert files.FileTexts(read_outputs(file)).remedy("dae_arcs", {}) == "nothing here makes it yet"


def test_items_that_lack_a_part_have_no_value_and_the_others_do(tmp_path, capsys):
    file = tmp_path / "x.jsonl"
    rows = [dict(id="a", summary="Rain.", logprobs=[-0.5]), dict(id="b", summary="Snow.", human=3)]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert main(["score", str(file), "--method", "msp", "output_length", "--json"]) == 0
    a, b = json.loads(capsys.readouterr().out)["scores"]
    assert (a["msp"], b["msp"], a["output_length"], b["human"], a["human"]) == (0.5, None, 1, 3, None)


def test_the_entropy_of_the_likeliest_tokens_is_a_lower_bound():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(20), 50)
    whole, ordered = -(p * np.log(p)).sum(1), np.sort(np.log(p), 1)[:, ::-1]
    bounds = [truncated_entropy(ordered[:, :k]) for k in (1, 5, 19)]
    assert (bounds[0] < bounds[1]).all() and (bounds[1] < whole).all()
    assert truncated_entropy(ordered[:, :19]) == pytest.approx(whole)


ENTAILED = ["deg_mat", "ecc_contra", "num_sets", "selfcheck_nli", "selfcheck_nli_text"]


def same_from_a_file(folder, bank, nli, capsys):
    "The texts of a bank, given as a file, get the scores of the bank from an NLI model."
    texts = read_bank(bank).astype({"sample": str})
    drawn = texts[texts["kind"] == "sample"].groupby("sample", sort=False)["text"].agg(list)
    main_texts = texts[texts["kind"] == "greedy"].set_index("sample")["text"]
    table = pd.DataFrame(dict(hypothesis=main_texts, samples=drawn)).rename_axis("id").reset_index()
    table.to_json(folder / "texts.jsonl", orient="records", lines=True)
    asked = ["--method", *ENTAILED, "--json"]
    found = []
    for argv in ([bank, "--data", "bulletin:test:4"], [str(folder / "texts.jsonl"), "--model", f"nli={nli}"]):
        assert main(["score", *argv, *asked]) == 0
        rows = pd.DataFrame(json.loads(capsys.readouterr().out)["scores"])
        found.append(
            rows if "name" in rows else rows.melt("id", var_name="name").rename(columns=dict(id="sample"))
        )
    of_bank, of_file = (one.pivot(index="sample", columns="name", values="value") for one in found)
    assert set(of_bank) == set(of_file) == set(ENTAILED)
    np.testing.assert_allclose(of_file.loc[of_bank.index, list(of_bank)], of_bank, rtol=1e-5, atol=1e-6)


def test_generate_read_compare_score_and_prr_chain_on_one_path(tmp_path, capsys):
    "The order of README on one folder; each step adds methods."
    from uetrust.core.settings import root

    models, bank, out = root() / "data" / "models", str(tmp_path / "bank"), str(tmp_path / "scores.csv")
    ask = ["--model", str(models / "tiny-bart"), "--data", "bulletin:test:4"]
    counts = []

    def scored(*options):
        assert main(["score", bank, "--data", "bulletin:test:4", "--json", *options]) == 0
        counts.append(len({row["name"] for row in json.loads(capsys.readouterr().out)["scores"]}))

    assert main(["generate", bank, *ask, "--samples", "2", "--max-new-tokens", "8"]) == 0
    capsys.readouterr()
    scored()
    assert main(["read", bank, "--read", "conditional", *ask]) == 0
    assert "read by" in capsys.readouterr().out
    scored()
    compare = ["compare", bank, "--nli", str(models / "tiny-nli"), "--encoder", str(models / "tiny-encoder")]
    assert main(compare) == 0 and capsys.readouterr().out.count("ok ") == 3
    scored("--out", out)
    assert counts == sorted(set(counts)) and counts[2] > 40
    assert main(["prr", out, "--quality", "source_length", "--uncertainty", "msp", "--json"]) == 0
    assert {row["n"] for row in json.loads(capsys.readouterr().out)} == {4}
    scored()
    for asked in (["prr", "--uncertainty", "msp", "lex_sim"], ["audit"]):  # The same path, not a file
        assert main([asked[0], bank, "--quality", "rouge_l", *asked[1:], "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert {row["metric"] for row in (told if isinstance(told, list) else told["prr"])} == {"rouge_l"}
    assert main(["score", bank, "--data", "bulletin:test:4"]) == 0
    said = capsys.readouterr().out
    assert "rouge_l " in said and re.search(r"\d+ other scores lack", said) and "synthetic bulletins" in said
    assert main(["score", bank, "--out", out, "--method", "msp"]) == 0
    assert "synthetic bulletins" not in capsys.readouterr().out
    same_from_a_file(tmp_path, bank, models / "tiny-nli", capsys)
    assert main(["compare", bank]) == 2 and "name who compares" in capsys.readouterr().err
    assert main(["compare", str(tmp_path), "--nli", "x"]) == 2 and "holds no bank" in capsys.readouterr().err


def test_the_table_of_formats_agrees_with_what_is_computed(capsys):
    "At most as many methods as the table says; on complete files just as many."
    from uetrust.data.outputs import OUTPUT_FORMATS
    from uetrust.scoring.files import formats_table

    table = formats_table().set_index("file")["methods"]
    for name, kind, complete in (
        ("inspect.eval", "inspect", True),
        ("vllm_request_outputs.jsonl", "vllm", True),
        ("samples_bulletins.jsonl", "lm-eval", True),
        ("uqlm_blackbox.csv", "uqlm", False),
    ):
        n = sum(row["possible"] == 4 for row in explained(capsys, FOLDER / name).values())
        most = table[OUTPUT_FORMATS[kind].title]
        assert n == most if complete else n < most


LISTED = "top_k_entropy top_k_entropy_lower top_k_entropy_upper top_k_negentropy top_k_negentropy_min".split()
LISTED += "deepconf deepconf_lowest deepconf_bottom deepconf_tail".split()
DRAWN = "exact_match_consistency cosine_consistency bertscore_consistency bs_detector_observed".split()
DRAWN += "consistency_and_confidence monte_carlo_probability".split()


def test_fifteen_methods_more_than_before_need_what_a_reply_of_openai_holds(capsys, tmp_path):
    "55 before; each is scored on the example replies, and the table of formats counts them."
    from uetrust.data.outputs import OUTPUT_FORMATS
    from uetrust.scoring.files import formats_table

    example, out = root() / "data" / "examples" / "replies.jsonl", tmp_path / "s.csv"
    told, names = explained(capsys, example), [*LISTED, *DRAWN]
    assert {told[name]["possible"] for name in names} == {40}, "with the small models of the repository"
    assert main(["score", str(example), "--method", ",".join(names), "--out", str(out)]) == 0
    scores = pd.read_csv(out)[names]
    assert len(scores) == 40 and scores.notna().all().all() and scores.nunique().drop(DRAWN[0]).min() > 30
    assert (scores["top_k_entropy_lower"] <= scores["top_k_entropy_upper"]).all()
    rows = formats_table().set_index("file")["methods"]
    assert rows[OUTPUT_FORMATS["openai"].title] >= 55 + len(names)
    capsys.readouterr()
    assert "top_logprobs" in str(explained(capsys, without_lists(example, tmp_path))["deepconf"])


def without_lists(file, folder):
    "The replies without the likeliest tokens"
    replies = [json.loads(line) for line in file.read_text().splitlines()]
    for reply in replies:
        for choice in reply["response"]["body"]["choices"]:
            choice["logprobs"].pop("top_logprobs", None)
    path = folder / "replies.jsonl"
    path.write_text("\n".join(map(json.dumps, replies)))
    return path


@pytest.mark.parametrize("case", ["tokens", "lists above 0", "lists that sum to more than 1"])
def test_raw_logits_are_refused_with_file_sample_value_and_remedy(case, capsys, tmp_path):
    def row(i):
        bad = case != "tokens" and [{"a": 7.5, "b": 3.0}] or [{"a": -0.1, "b": -3.0}]
        if case == "lists that sum to more than 1":
            bad = [{"a": -0.1, "b": -0.2}]
        logp = [8.6] if case == "tokens" else [-0.1]
        return dict(id=f"doc-{i}", hypothesis="a", tokens=["a"], logprobs=logp, top_logprobs=bad)

    file = tmp_path / "logits.jsonl"
    file.write_text("\n".join(json.dumps(row(i)) for i in range(2)))
    assert main(["score", str(file), "--method", "deepconf"]) == 2
    error = capsys.readouterr().err
    found = {"tokens": "8.6", "lists above 0": "7.5"}.get(case, "1.724")
    for part in ("logits.jsonl", "'doc-0'", found, "raw logits", "log_softmax"):
        assert part in error, error
    assert error.count("\n") == 1


def test_scores_whose_package_is_not_installed_are_left_out(monkeypatch, capsys, tmp_path):
    rouge_tokenizer.cache_clear()
    monkeypatch.setitem(sys.modules, "nltk", None)
    monkeypatch.setitem(sys.modules, "nltk.stem.porter", None)
    out = tmp_path / "s.csv"
    assert main(["score", str(FOLDER / "openai_batch_output.jsonl"), "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert re.search(r"note: \d+ scores are left out, which need the package nltk", told)
    assert "pip install 'uetrust[lexical]'" in told and "warning: lex_sim" not in told
    columns = list(pd.read_csv(out))
    assert "msp" in columns and "lex_sim_rouge_1" not in columns


ANSWERS = [
    dict(id="q1", system="a", answer="Paris", reference="Paris", human=1),
    dict(id="q1", system="b", answer="In Paris.", reference="Paris", human=1),
    dict(id="q1", system="c", answer="Rome", reference="Paris", human=0),
    dict(id="q2", system="a", answer="Ann", reference="Bob", human=0),
    dict(id="q2", system="b", answer=None, reference="Bob", human=0),
    dict(id="q2", system="c", answer=None, reference="Bob", human=0),
]
OF_ANSWERS = ["exact_match", "lexical_match", "token_f1"]


def test_scores_of_several_judges_become_one(tmp_path, capsys):
    table, out = tmp_path / "texts.csv", tmp_path / "scores.csv"
    table.write_text("id,response,gpt,llama,human\na,Rome,5,2,3\nb,Paris,4,,4\nc,Oslo,1,1,\n")
    names = ["panel_mean", "panel_median", "panel_least", "panel_largest"]
    options = ["--column", "judges=gpt+llama", "--method", *names, "--out", str(out)]
    assert main(["score", str(table), *options]) == 0
    scores = pd.read_csv(out)
    assert scores["gpt"].tolist() == [5, 4, 1] and "human" in scores  # A judge's own column stays
    assert scores[names].iloc[0].tolist() == [-3.5, -3.5, -2, -5] and scores[names].iloc[1].isna().all()
    assert "no value for 1 of 3 texts, the first 'b': 1 of 2 judges gave no score" in capsys.readouterr().out
    lines = tmp_path / "texts.jsonl"
    lines.write_text('{"id": "a", "response": "Rome", "judges": [1, 4]}\n')
    assert main(["score", str(lines), "--column", "judges=judges", "--method", "panel_mean", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "a,-2.5"
    lines.write_text('{"id": "a", "response": "Rome", "judges": ["good", 4]}\n')
    assert main(["score", str(lines), "--column", "judges=judges", "--method", "panel_mean"]) == 2
    assert "judges of item 'a': judges must be numbers, found ['good', 4]" in capsys.readouterr().err
    table.write_text("id,response,gpt,judges\na,Rome,5,gpt;claude\nb,Oslo,NA,gpt\n")
    assert main(["score", str(table), "--column", "judges=gpt", "--method", "panel_mean", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["a,5,-5", "b,,"]


OF_SYSTEMS = ["other_systems_f1", "other_systems_jaccard", "other_systems_cosine"]


def answers_scored(capsys, file, *options):
    "Rows by name, and the notes"
    names = ["--method", *OF_SYSTEMS, "answer_length", "--metric", *OF_ANSWERS]
    assert main(["score", str(file), *names, "--json", *options]) == 0
    told = json.loads(capsys.readouterr().out)
    return {row["id"]: row for row in told["scores"]}, told["notes"]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_rows_of_several_systems_are_compared_with_each_other(ending, tmp_path, capsys):
    "F1 of Paris with in Paris is 2/3, and 0 with Rome; a missing answer stands beside none."
    file, df = tmp_path / f"x.{ending}", pd.DataFrame(ANSWERS)
    writers = dict(jsonl=lambda: df.to_json(file, orient="records", lines=True))
    writers |= dict(csv=lambda: df.to_csv(file, index=False), parquet=lambda: df.to_parquet(file))
    writers[ending]()
    rows, notes = answers_scored(capsys, file)
    assert list(rows) == ["q1/a", "q1/b", "q1/c", "q2/a"]
    assert [(row["document"], row["system"]) for row in rows.values()] == [
        ("q1", "a"),
        ("q1", "b"),
        ("q1", "c"),
        ("q2", "a"),
    ]
    f1 = [rows[name]["other_systems_f1"] for name in rows]
    assert f1[:3] == pytest.approx([2 / 3, 2 / 3, 1]) and all(
        rows["q2/a"][name] is None for name in OF_SYSTEMS
    )
    assert [row["other_systems_jaccard"] for row in rows.values()][:3] == pytest.approx([3 / 4, 3 / 4, 1])
    assert all(0 <= rows[name]["other_systems_cosine"] <= 2 for name in list(rows)[:3])
    assert [row["answer_length"] for row in rows.values()] == [1, 2, 1, 1]
    metrics = [[row[name] for row in rows.values()] for name in OF_ANSWERS]
    assert metrics[:2] == [[1, 0, 0, 0], [1, 1, 0, 0]] and metrics[2] == pytest.approx([1, 2 / 3, 0, 0])
    assert any("2 of 6 records left out: 2 missing texts ('q2/b', 'q2/c')" in note for note in notes)
    said = "2 items are answered by 3 systems (a, b, c); 1 of the texts have no answer of another system"
    assert any(said in note for note in notes)
    alone = f"{', '.join(OF_SYSTEMS)}: no value for 1 of 4 texts, the first 'q2/a': no other system has an"
    assert any(alone in note for note in notes), notes


def test_the_question_tells_items_apart_where_there_are_no_ids(tmp_path, capsys):
    rows = [{"question": row["id"]} | {k: v for k, v in row.items() if k != "id"} for row in ANSWERS]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    by_question, _ = answers_scored(capsys, tmp_path / "x.jsonl")
    (tmp_path / "y.jsonl").write_text("\n".join(map(json.dumps, ANSWERS)) + "\n")
    by_id, _ = answers_scored(capsys, tmp_path / "y.jsonl")
    assert list(by_question) == ["row 1", "row 2", "row 3", "row 4"]
    assert [{**row, "id": ""} for row in by_question.values()] == [
        {**row, "id": ""} for row in by_id.values()
    ]


@pytest.mark.parametrize("columns", [["system=model"], ["system=model", "id=id+model"]], ids=str)
def test_another_column_may_name_the_systems(columns, tmp_path, capsys):
    rows = [{"model": row["system"]} | {k: v for k, v in row.items() if k != "system"} for row in ANSWERS]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    found, _ = answers_scored(capsys, tmp_path / "x.jsonl", "--column", *columns)
    (tmp_path / "y.jsonl").write_text("\n".join(map(json.dumps, ANSWERS)) + "\n")
    assert found == answers_scored(capsys, tmp_path / "y.jsonl")[0]


def test_systems_without_a_common_item_lack_each_other(tmp_path, capsys):
    "Methods of several systems say what they lack; ids stay as they are."
    file = tmp_path / "x.jsonl"
    rows = [dict(row, id=f"{i}") for i, row in enumerate(ANSWERS)]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    found, _ = answers_scored(capsys, file)
    assert list(found) == ["0", "1", "2", "3"] and found["0"]["system"] == "a"
    assert not set(OF_SYSTEMS) & set(found["0"]) and found["1"]["answer_length"] == 2
    assert main(["score", str(file), "--method", "other_systems_f1"]) == 2
    said = capsys.readouterr().err
    assert "nothing that was asked for can be computed" in said and "other_texts" in said
    remedy = explained(capsys, file)["other_systems_cosine"]["remedy"]
    assert "a row for each id and system" in remedy
    bare = files.FileTexts(read_outputs(FOLDER / "openai_no_logprobs.jsonl"))
    assert bare.remedy("other_texts", {}) == remedy


@pytest.mark.parametrize(
    "system, says",
    {
        "a": "these stand twice: 'q1' of a. A row is the answer of one system to one item.",
        "": "these rows name no system: q1. Where several systems answer an item",
        None: "these rows name no system: q1. Where several systems answer an item",
    }.items(),
)
def test_systems_that_are_not_told_apart_are_refused(system, says, tmp_path, capsys):
    rows = [ANSWERS[0], ANSWERS[1] | dict(system=system), *ANSWERS[2:]]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert main(["score", str(tmp_path / "x.jsonl"), "--method", "answer_length"]) == 2
    assert f"x.jsonl: {says}" in capsys.readouterr().err


def test_an_audit_clusters_by_question_and_counts_no_length_as_a_method(tmp_path, capsys):
    rng, rows = np.random.default_rng(0), []
    for i in range(40):
        said = [f"word{k} " * n for k, n in rng.integers([0, 1], [3, 4], (3, 2))]
        rows += [
            dict(id=f"q{i}", system=system, answer=text, reference="word0", human=float("word0" in text))
            for system, text in zip("abc", said)
        ]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    out = str(tmp_path / "s.csv")
    names = ["--method", "other_systems_f1", "answer_length", "--metric", "token_f1"]
    assert main(["score", str(tmp_path / "x.jsonl"), *names, "--out", out]) == 0
    capsys.readouterr()
    assert main(["audit", out]) == 0
    said = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "uncertainty other_systems_f1 baseline answer_length" in said and "document document" in said
    assert re.search(r"Columns not used: .*holds no numbers system", said)


def test_sources_of_a_file_of_requests_go_to_every_system(tmp_path, capsys):
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, ANSWERS)) + "\n")
    asked = [dict(id="q1", source="Where is it?"), dict(id="q2", source="Who was it then?")]
    (tmp_path / "asked.jsonl").write_text("\n".join(map(json.dumps, asked)) + "\n")
    options = ["--method", "source_length", "--data", str(tmp_path / "asked.jsonl"), "--json"]
    assert main(["score", str(tmp_path / "x.jsonl"), *options]) == 0
    rows = json.loads(capsys.readouterr().out)["scores"]
    assert [row["source_length"] for row in rows] == [3, 3, 3, 4]
