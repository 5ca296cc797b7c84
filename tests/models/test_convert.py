"""`uetrust convert`: files of published layouts become checkpoints that score as the networks they hold."""

import argparse
import hashlib
import io
import json
import os
import shutil
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    ElectraConfig,
    ElectraModel,
    RobertaConfig,
    RobertaModel,
)

from tests.helpers import checkers, stand_ins
from tests.helpers.convert import PAIRS, convert, refused
from uetrust.models import classifiers, heads
from uetrust.models.checkers import hhem_logits
from uetrust.models.likelihoods import directed_logp
from uetrust.models.load import load_model, wrap_model
from uetrust.models.translations import metricx_values
from uetrust.scoring.metrics import compute_metrics, model_key
from uetrust.statistics.texts import STATISTICS

BERT = stand_ins.SIZES | dict(vocab_size=900, max_position_embeddings=512)


def network(make, config, tokenizer="encoder"):
    "A network with random weights and a tokenizer"
    torch.manual_seed(3)
    made = make(config).eval()
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return wrap_model(made, AutoTokenizer.from_pretrained(stand_ins.shipped(tokenizer)))


def layer(width, outputs):
    torch.manual_seed(4)
    return dict(weight=torch.randn(outputs, width), bias=torch.randn(outputs))


def named(prefix, tensors):
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def base_of(model, folder, tokenizer="encoder"):
    "The checkpoint that something was trained from: its configuration and tokenizer, other weights"
    model.model.config.save_pretrained(folder)
    for path in stand_ins.shipped(tokenizer).iterdir():
        if "token" in path.name or path.name.startswith("vocab"):
            shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def roberta():
    return network(RobertaModel, RobertaConfig(**stand_ins.ENCODER))


def equal(got, want):
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)


# CTC
@pytest.mark.parametrize("body", ["_roberta.", "_model."])
def test_ctc_scores_as_before(roberta, body, tmp_path, capsys):
    head = layer(32, 2)
    state = named(body, roberta.model.state_dict()) | named("_classifier.", head)
    torch.save(state, tmp_path / "ctc.ckpt", _use_new_zipfile_serialization=False)
    out = tmp_path / "ctc"
    convert("ctc", tmp_path / "ctc.ckpt", out, "--base", base_of(roberta, tmp_path / "base"))
    assert f"ok {out}: RobertaModel and its trained head {out}/head.safetensors" in capsys.readouterr().out
    want = heads.ctc_word_logits(roberta, _head_file(tmp_path, head), PAIRS)[0]
    equal(heads.ctc_word_logits(load_model(out), out / "head.safetensors", PAIRS)[0], want)
    inputs = dict(zip(("hypothesis", "source"), map(list, zip(*PAIRS))))
    by_entry = STATISTICS["ctc"].compute(
        load_model(out), inputs, ["kept_hypothesis_source"], head=out / "head.safetensors"
    )
    equal(by_entry[0]["kept_hypothesis_source"], want)
    assert model_key("ctc", dict(ctc=str(out))) == (str(out), str(out / "head.safetensors"), "")


def _head_file(folder, tensors):
    from safetensors.torch import save_file

    save_file(tensors, folder / "own_head.safetensors")
    return folder / "own_head.safetensors"


def test_the_regression_of_ctc_scores_as_before(tmp_path):
    model = network(BertForSequenceClassification, BertConfig(**BERT, num_labels=1), "nli")
    state = {name.replace("classifier.", "dense."): t for name, t in model.model.state_dict().items()}
    torch.save(state | {"global.step": torch.ones(1)}, tmp_path / "r.ckpt")
    convert(
        "ctc_regression", tmp_path / "r.ckpt", tmp_path / "r", "--base", base_of(model, tmp_path / "b", "nli")
    )
    equal(*[classifiers.regression_values(m, PAIRS)[0] for m in (load_model(tmp_path / "r"), model)])
    assert json.loads((tmp_path / "r/converted.json").read_text())["left_out"] == ["global.step"]


# AlignScore
def test_alignscore_scores_as_before_through_score(roberta, tmp_path):
    layers = {f"{name}_layer.": layer(32, n) for name, n in dict(reg=1, bin=2, tri=3).items()}
    state = named("base_model.", roberta.model.state_dict()) | named("mlm_head.", dict(bias=torch.ones(3)))
    for name, tensors in layers.items():
        state |= named(name, tensors)
    trained = dict(
        state_dict=state, epoch=2, hyper_parameters=dict(args=argparse.Namespace(model="roberta-large"))
    )
    torch.save(trained, tmp_path / "AlignScore.ckpt")
    out = tmp_path / "alignscore"
    convert("alignscore", tmp_path / "AlignScore.ckpt", out, "--base", base_of(roberta, tmp_path / "base"))
    plain = {f"{name}{kind}": t for name, tensors in layers.items() for kind, t in tensors.items()}
    grids = [([source], [summary]) for source, summary in PAIRS]
    want, _ = heads.alignscore_logits(roberta, _head_file(tmp_path, plain), grids)
    got, _ = heads.alignscore_logits(load_model(out), out / "head.safetensors", grids)
    for name in want:
        equal(got[name], want[name])
    texts = pd.DataFrame(dict(id=["a"], source=[PAIRS[0][0]], hypothesis=[PAIRS[0][1]]))
    names = ["alignscore", "alignscore_binary", "alignscore_regression"]
    models = dict(alignscore=(str(out), str(out / "head.safetensors")))
    assert list(compute_metrics(texts, models, names, progress=False).table["value"].notna()) == [True] * 3


# HHEM, MetricX and COMET; tests/models/test_translations.py and tests/statistics/texts/test_checkers.py score
# with what is written
def test_hhem_is_written_for_a_class_of_transformers(tmp_path, capsys):
    model = load_model(checkers.save(checkers.token_t5, tmp_path / "base"))
    released = checkers.released_hhem(tmp_path / "released", model.model)
    convert("hhem", released, tmp_path / "out", "--base", tmp_path / "base")
    written = load_model(tmp_path / "out")
    assert type(written.model).__name__ == "T5ForTokenClassification"
    assert written.model.config.id2label == {0: "INCONSISTENT", 1: "CONSISTENT"}
    equal(*[hhem_logits(m, PAIRS)[0] for m in (written, model)])
    assert "has no model.safetensors" in refused(
        capsys, "hhem", tmp_path, tmp_path / "x", "--base", tmp_path / "base"
    )
    other = refused(capsys, "hhem", tmp_path / "base", tmp_path / "x", "--base", tmp_path / "base")
    assert "holds no HHEM-2.1-open" in other and not (tmp_path / "x").exists()


def test_metricx_keeps_its_own_last_layer(tmp_path, capsys):
    "The released weights are those of an mT5 whose output layer is not its embedding"
    folder = checkers.save(checkers.metricx, tmp_path / "base")
    model = load_model(folder)
    state = {name: tensor.clone() for name, tensor in model.model.state_dict().items()}
    state["lm_head.weight"] = 3 * state["shared.weight"]
    (tmp_path / "released").mkdir()
    config = json.loads((folder / "config.json").read_text())
    config |= dict(architectures=["MT5ForRegression"], tie_word_embeddings=False)
    (tmp_path / "released" / "config.json").write_text(json.dumps(config))
    torch.save(state, tmp_path / "released" / "pytorch_model.bin")
    convert("metricx", tmp_path / "released", tmp_path / "out", "--base", folder)
    texts = ["candidate: It met. source: Es traf sich.", "candidate: Rain."]
    want, got = (metricx_values(m, texts, 1024)[0] for m in (model, load_model(tmp_path / "out")))
    np.testing.assert_allclose(got, 3 * want, rtol=1e-5)
    (tmp_path / "released" / "config.json").write_text(json.dumps(config | dict(architectures=["T5Model"])))
    assert "names the class T5Model; MetricX is an MT5ForRegression" in refused(
        capsys, "metricx", tmp_path / "released", tmp_path / "x", "--base", folder
    )


@pytest.mark.parametrize(
    ("kind", "settings", "says"),
    [
        ("xcomet_metric", {}, "'class_identifier': 'xcomet_metric'"),
        ("unified_metric", dict(input_segments="[mt, src, ref]"), "'input_segments': ['mt', 'src', 'ref']"),
        (
            "unified_metric",
            dict(encoder_model="XLM-RoBERTa-XL", input_segments="[mt, src]"),
            "XLM-RoBERTa-XL",
        ),
        ("regression_metric", dict(pool="max"), "'pool': 'max'"),
        ("regression_metric", dict(pool="[avg"), "hparams.yaml cannot be read"),
    ],
)
def test_a_comet_of_another_kind_is_refused_by_name(tmp_path, capsys, kind, settings, says):
    base = checkers.save(checkers.xlm_roberta, tmp_path / "base")
    checkers.released_comet(tmp_path / "comet", load_model(base).model, kind, **settings)
    words = ("comet", tmp_path / "comet", tmp_path / "x", "--base", base)
    assert says in refused(capsys, *words) and not (tmp_path / "x").exists()


def test_a_comet_of_2020_normalises_its_layers_and_is_refused(tmp_path, capsys):
    base = checkers.save(checkers.xlm_roberta, tmp_path / "base")
    checkers.released_comet(tmp_path / "comet", load_model(base).model, "regression_metric")
    settings = tmp_path / "comet" / "hparams.yaml"
    settings.write_text(settings.read_text().replace("layer_norm: false", ""))
    words = ("comet", tmp_path / "comet", tmp_path / "x", "--base", base)
    assert "'layer_norm': True" in refused(capsys, *words)


def test_the_pickle_of_a_comet_runs_no_code(tmp_path, capsys):
    base = checkers.save(checkers.xlm_roberta, tmp_path / "base")
    checkers.released_comet(tmp_path / "comet", load_model(base).model, "regression_metric")
    torch.save(dict(state_dict=os.system), tmp_path / "comet" / "checkpoints" / "model.ckpt")
    words = ("comet", tmp_path / "comet", tmp_path / "x", "--base", base)
    assert "holds more than tensors" in refused(capsys, *words) and not (tmp_path / "x").exists()


# FactCC, QAGS, FEQA: folders of pytorch-transformers
def tarball(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def pickled(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def old_names(state):
    return {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): tensor
        for name, tensor in state.items()
    }


@pytest.fixture(scope="module")
def factcc():
    return network(BertForSequenceClassification, BertConfig(**BERT, num_labels=2), "nli")


def factcc_files(model, name="factcc-checkpoint"):
    config = {key: value for key, value in model.model.config.to_dict().items() if key in BERT}
    state = old_names(model.model.state_dict())
    return {
        f"{name}/config.json": json.dumps(config | dict(num_labels=2)).encode(),
        f"{name}/pytorch_model.bin": pickled(state, _use_new_zipfile_serialization=False),
        f"{name}/training_args.bin": b"a pickle of arguments",
    }


def test_factcc_scores_as_before(factcc, tmp_path, capsys):
    path = tarball(tmp_path / "factcc-checkpoint.tar.gz", factcc_files(factcc))
    assert (
        "name the folder of the checkpoint it was trained from"
        in refused(capsys, "factcc", tmp_path / "nothing-there.tar.gz", tmp_path / "x")
        or not (tmp_path / "x").exists()
    )
    convert("factcc", path, tmp_path / "factcc", "--base", base_of(factcc, tmp_path / "base", "nli"))
    model = load_model(tmp_path / "factcc")
    assert model.model.config.id2label == {0: "CORRECT", 1: "INCORRECT"}
    want, _ = classifiers._pair_logits(factcc, PAIRS, [0, 1], 512, "pop")
    equal(classifiers.factcc_logits(model, PAIRS)[0], want)
    record = json.loads((tmp_path / "factcc/converted.json").read_text())
    assert record["source"] == [
        dict(name=path.name, bytes=path.stat().st_size, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    ]
    assert not (tmp_path / "factcc" / "training_args.bin").exists()


def test_a_folder_with_pickled_weights_is_loaded_as_the_class_it_names(factcc, tmp_path):
    base_of(factcc, tmp_path / "folder", "nli")
    factcc.model.config.architectures = ["BertForSequenceClassification"]
    factcc.model.config.save_pretrained(tmp_path / "folder")
    torch.save(factcc.model.state_dict(), tmp_path / "folder" / "pytorch_model.bin")
    convert("transformers", tmp_path / "folder", tmp_path / "out")
    equal(*[classifiers._pair_logits(m, PAIRS, [0, 1])[0] for m in (load_model(tmp_path / "out"), factcc)])


def test_members_are_found_by_name_and_links_are_passed_over(factcc, tmp_path, capsys):
    files = factcc_files(factcc)
    twice = tarball(tmp_path / "twice.tar.gz", files | {"other/config.json": b"{}"})
    assert "should hold one config.json, found factcc-checkpoint/config.json, other/config.json" in refused(
        capsys, "factcc", twice, tmp_path / "out"
    )
    with tarfile.open(tmp_path / "link.tar.gz", "w:gz") as archive:
        link = tarfile.TarInfo("config.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert "should hold one config.json, found none" in refused(
        capsys, "factcc", tmp_path / "link.tar.gz", tmp_path / "out"
    )
    assert not (tmp_path / "out").exists()


# DAE
def test_dae_scores_as_before(tmp_path):
    sizes = stand_ins.SIZES | dict(embedding_size=16, vocab_size=900, max_position_embeddings=512)
    electra = network(ElectraModel, ElectraConfig(**sizes), "nli")
    head = layer(96, 2)
    state = named("electra.", electra.model.state_dict()) | named("dep_label_classifier.", head)
    base_of(electra, tmp_path / "dae", "nli")
    torch.save(state, tmp_path / "dae" / "pytorch_model.bin")
    convert("dae", tmp_path / "dae", tmp_path / "out")
    arcs = [("Rain fell .", "Rain fell .", [("nsubj", 0, 1)])]
    want = heads.dae_arc_logits(electra, _head_file(tmp_path, head), arcs)
    equal(heads.dae_arc_logits(load_model(tmp_path / "out"), tmp_path / "out/head.safetensors", arcs), want)


# BART: BARTScore-Para, fairseq
def test_bartscore_para_scores_as_before(tmp_path):
    bart = load_model(stand_ins.shipped("bart"))
    torch.save(bart.model.state_dict(), tmp_path / "bart_score.pth", _use_new_zipfile_serialization=False)
    convert(
        "bartscore_para", tmp_path / "bart_score.pth", tmp_path / "out", "--base", stand_ins.shipped("bart")
    )
    equal(*[text_logps(model) for model in (load_model(tmp_path / "out"), bart)])


def text_logps(model):
    sources, summaries = map(list, zip(*PAIRS))
    given = dict(source=sources, hypothesis=summaries)
    return directed_logp(model, "bart", ["source_hypothesis"], **given)[0]["bart_logp_source_hypothesis"]


def as_fairseq(state, joined):
    "The state dict of a BART under the names of fairseq; joined: one matrix of query, key and value"
    found = {
        n.removeprefix("model."): t for n, t in state.items() if n.startswith(("model.enc", "model.dec"))
    }
    if joined:
        for name in [n for n in found if ".q_proj." in n]:
            parts = [found.pop(name.replace(".q_proj.", f".{letter}_proj.")) for letter in "qkv"]
            found[name.replace("q_proj.", "in_proj_")] = torch.cat(parts)
    return found | {"encoder.version": torch.tensor([3.0]), "decoder.version": torch.tensor([3.0])}


@pytest.mark.parametrize("joined", [False, True])
def test_a_bart_of_fairseq_scores_as_before(tmp_path, joined):
    bart = load_model(stand_ins.shipped("bart"))
    trained = dict(
        model=as_fairseq(bart.model.state_dict(), joined), args=argparse.Namespace(arch="bart_large")
    )
    torch.save(trained | dict(optimizer_history=[], extra_state={}), tmp_path / "checkpoint_best.pt")
    convert(
        "fairseq_bart", tmp_path / "checkpoint_best.pt", tmp_path / "o", "--base", stand_ins.shipped("bart")
    )
    equal(*[text_logps(model) for model in (load_model(tmp_path / "o"), bart)])


# What is refused
class Malice:
    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


LAYOUTS = ("alignscore", "bartscore_para", "ctc", "ctc_regression", "fairseq_bart")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("zipped", [False, True])
def test_a_pickle_that_would_run_code_is_refused_by_name(layout, zipped, tmp_path, capsys):
    path, marker = tmp_path / "evil.ckpt", tmp_path / "was-run"
    torch.save(
        dict(state_dict=dict(a=torch.ones(1)), model=Malice(marker)),
        path,
        _use_new_zipfile_serialization=zipped,
    )
    message = refused(capsys, layout, path, tmp_path / "out", "--base", stand_ins.shipped("bart"))
    assert "would call posix.system, so it is refused" in message
    assert not marker.exists() and not (tmp_path / "out").exists()


@pytest.mark.parametrize("layout", ["factcc", "dae", "transformers"])
def test_a_pickle_in_an_archive_that_would_run_code_is_refused(layout, tmp_path, capsys):
    marker = tmp_path / "was-run"
    files = {
        "a/config.json": b'{"architectures": ["BertModel"]}',
        "a/pytorch_model.bin": pickled(Malice(marker)),
    }
    path = tarball(tmp_path / "a.tar.gz", files)
    assert "would call posix.system" in refused(capsys, layout, path, tmp_path / "out")
    assert not marker.exists()


def test_names_that_only_look_like_a_trainers_are_refused(tmp_path, capsys):
    for name in ("argparse.os", "numpyevil.load", "os.getcwd"):
        module, _, what = name.rpartition(".")
        path = tmp_path / "x.ckpt"
        path.write_bytes(b"\x80\x02c" + f"{module}\n{what}\n".encode() + b")R.")
        message = refused(
            capsys, "bartscore_para", path, tmp_path / "out", "--base", stand_ins.shipped("bart")
        )
        assert "is refused" in message or "is no checkpoint of PyTorch" in message


def test_what_does_not_fit_is_named(roberta, tmp_path, capsys):
    torch.save(dict(a=torch.ones(2)), tmp_path / "a.pth")
    bart = stand_ins.shipped("bart")
    assert "weights that it does not have: a." in refused(
        capsys, "bartscore_para", tmp_path / "a.pth", tmp_path / "o", "--base", bart
    )
    assert "name the folder of the checkpoint it was trained from as base" in refused(
        capsys, "bartscore_para", tmp_path / "a.pth", tmp_path / "o"
    )
    assert "should hold weights below _roberta., _model. and the layers _classifier, found a" in refused(
        capsys, "ctc", tmp_path / "a.pth", tmp_path / "o", "--base", bart
    )
    state = load_model(bart).model.state_dict()
    del state["model.decoder.layers.0.fc1.bias"]
    torch.save(state, tmp_path / "less.pth")
    assert "has no weights of BartForConditionalGeneration" in refused(
        capsys, "bartscore_para", tmp_path / "less.pth", tmp_path / "o", "--base", bart
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pth", "less.pth"]  # Nothing is left behind


def test_a_folder_that_is_there_is_kept(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    torch.save(load_model(stand_ins.shipped("bart")).model.state_dict(), tmp_path / "a.pth")
    message = refused(
        capsys, "bartscore_para", tmp_path / "a.pth", tmp_path / "out", "--base", stand_ins.shipped("bart")
    )
    assert "is there already" in message and [p.name for p in (tmp_path / "out").iterdir()] == ["mine.txt"]
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("notes.txt", "nothing")
    assert "should hold one bert_config.json, found none among notes.txt" in refused(
        capsys, "bleurt", tmp_path / "z.zip", tmp_path / "new"
    )


def test_the_same_file_gives_the_same_bytes(roberta, tmp_path):
    bart = stand_ins.shipped("bart")
    torch.save(load_model(bart).model.state_dict(), tmp_path / "a.pth")
    for out in "bc":
        convert("bartscore_para", tmp_path / "a.pth", tmp_path / out, "--base", bart)
    for path in (tmp_path / "b").iterdir():
        assert path.read_bytes() == (tmp_path / "c" / path.name).read_bytes(), path.name
    assert load_file(tmp_path / "b" / "model.safetensors")
