"""On GPUs that are pretended every pass, metric with a model, and judge runs to its end, with the numbers of
a CPU: no tensor lies on the wrong device, none has a number format that a later step cannot take, and a
checkpoint may be divided over two of them."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoTokenizer

from tests.helpers.fake_cuda import IN_PARTS, fake_cuda, filled, project  # noqa: F401
from uetrust.core import settings as s
from uetrust.core.settings import root
from uetrust.core.store import shard_provenance
from uetrust.data.bulletins import bulletins
from uetrust.generation.local import check_generation
from uetrust.models import load
from uetrust.models import questions as qs
from uetrust.models.heads import dae_arc_logits
from uetrust.nlg.checkers import SEAHORSE_QUESTIONS
from uetrust.nlg.qa import AnswerSpan
from uetrust.scoring.generators import COMPARISON_STEPS, GENERATOR_PASSES
from uetrust.scoring.metrics import compute_metrics
from uetrust.statistics.texts import STATISTICS, providers, questions
from uetrust.statistics.texts.providers import shipped_models

ASKED = {"asked", "elicited", "verbal_1s", "verbal_2s"}


def same_numbers(one, other, tolerance):
    assert list(one) == list(other)
    for column in one:
        for a, b in zip(one[column], other[column]):
            if isinstance(a, float | np.ndarray):
                a, b = np.asarray(a, float), np.asarray(b, float)
                np.testing.assert_allclose(a, b, rtol=0, atol=tolerance, err_msg=column)
            else:
                assert a == b, column


@pytest.mark.parametrize("name", ["bart", "llama"])
def test_every_pass_runs_on_a_gpu_with_the_numbers_of_a_cpu(here, monkeypatch, name):
    on_cpu = filled("cpu", name)
    with fake_cuda():
        half = filled("half", name)  # As on a GPU: bfloat16
        monkeypatch.setattr(load, "_dtype", lambda dtype, device: torch.float32)
        on_gpu = filled("gpu", name)
    steps = {*GENERATOR_PASSES, *COMPARISON_STEPS, *ASKED, "train-hidden", "background-hidden"}
    lost = dict(bart={"elicited", "verbal_1s", "lookback"}, llama={"beams", "mc_dropout"})[name]
    lost.add("sample_bertscores")  # The profile names no model for it
    assert set(on_gpu) == set(half) == steps - lost
    made = shard_provenance(
        next((s.out_dir("half") / "banks" / f"toy--{name}" / "conditional").glob("*.parquet"))
    )
    assert (made["dtype"], made["made_with"]["device"]) == ("bfloat16", "cuda:0")
    for step, table in on_gpu.items():
        same_numbers(on_cpu[step], table, 2e-5)


@pytest.mark.filterwarnings("ignore:The following device_map keys:UserWarning")
@pytest.mark.parametrize("options", [("-in-parts",), ("", "--device-map", "auto")], ids=["settings", "auto"])
@pytest.mark.parametrize("name", ["bart", "llama"])
def test_a_checkpoint_divided_over_two_gpus_gives_the_numbers_of_a_cpu(here, monkeypatch, name, options):
    on_cpu, bank = filled("cpu", name), name + options[0]
    weights = load.load_model(here / "models" / name, device="cpu").model.num_parameters()
    monkeypatch.setattr(load, "_dtype", lambda dtype, device: torch.float32)
    with fake_cuda(4 * weights):  # One has room for all weights, not for what comes with them
        divided = filled("two", bank, *options[1:])
    assert set(divided) == set(on_cpu)
    for step, table in divided.items():
        same_numbers(on_cpu[step], table, 2e-5)
    for step in ("texts", "conditional"):
        shards = s.out_dir("two") / "banks" / f"toy--{bank}" / step
        made = shard_provenance(next(shards.glob("*.parquet")))["made_with"]
        assert set(made["device"].split()) == {"cuda:0", "cuda:1"}


def test_a_divided_checkpoint_still_reads_a_prompt_once_and_prompts_together(here):
    "What fails in a batch is read alone instead, which is right and slow"
    with fake_cuda():
        model = load.load_model(here / "models" / "llama", device_map=IN_PARTS["llama"], dtype="float32")
        check_generation(model)
    assert model.shares_prompts and model.pads_prompts and model.device == "cuda:0"


def test_a_bias_of_logits_may_lie_on_another_gpu_than_the_hidden_states(here):
    with fake_cuda():
        model = load.load_model(here / "models" / "bart", dtype="float32").model
        model.final_logits_bias = model.final_logits_bias.to("cuda:1")
        assert str(load.head(model)(torch.zeros(1, model.config.d_model, device="cuda:0")).device) == "cuda:0"


# Metrics
MODELS = root() / "data" / "models"
SIZES = dict(
    vocab_size=900,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=260,
)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    "Small encoders with random weights for every group of metrics that no shipped model serves"
    torch.manual_seed(0)
    d = tmp_path_factory.mktemp("models")

    def saved(name, network, tokens, **config):
        kind = getattr(transformers, network)
        made = kind(kind.config_class(**SIZES | config, initializer_range=0.3))
        made.save_pretrained(d / name)
        tokenizer = AutoTokenizer.from_pretrained(MODELS / tokens)
        tokenizer.model_max_length = min(config.get("max_position_embeddings", 256), 2048)
        tokenizer.save_pretrained(d / name)
        return d / name

    def classifier(name, *labels):
        found = dict(enumerate(labels))
        other = {label: i for i, label in found.items()}
        return saved(name, "BertForSequenceClassification", "tiny-nli", id2label=found, label2id=other)

    def head(name, **shapes):
        save_file({key: torch.randn(shape) for key, shape in shapes.items()}, d / f"{name}.safetensors")
        return d / f"{name}.safetensors"

    roberta = saved("roberta", "RobertaModel", "tiny-encoder", pad_token_id=1, bos_token_id=0, eos_token_id=2)
    sentence = saved("sentence", "BertModel", "tiny-nli")
    steps = [
        ("Transformer", ""),
        ("Pooling", "1_Pooling"),
        ("Dense", "2_Dense"),
        ("Normalize", "3_Normalize"),
    ]
    files = {
        "modules.json": [
            dict(type=f"sentence_transformers.models.{kind}", path=path) for kind, path in steps
        ],
        "sentence_bert_config.json": dict(max_seq_length=128),
        "1_Pooling/config.json": dict(pooling_mode_mean_tokens=True),
        "2_Dense/config.json": dict(activation_function="torch.nn.modules.activation.Tanh"),
    }
    for file, content in files.items():
        (sentence / file).parent.mkdir(exist_ok=True)
        (sentence / file).write_text(json.dumps(content))
    weights = {"linear.weight": torch.randn(8, 16), "linear.bias": torch.randn(8)}
    save_file(weights, sentence / "2_Dense" / "model.safetensors")
    ctc = (roberta, head("ctc", weight=(2, 16), bias=(2,)))

    def regressor(name, width):
        sizes = [(8, width), (1, 8)]
        layers = {f"ff.{i}.weight": size for i, size in enumerate(sizes)}
        biases = {f"ff.{i}.bias": size[:1] for i, size in enumerate(sizes)}
        xlm = saved("xlm", "XLMRobertaModel", "tiny-encoder", pad_token_id=1)
        return xlm, head(name, layer_weights=(3,), **layers, **biases)

    mt5 = saved("mt5", "MT5ForConditionalGeneration", "tiny-t5", vocab_size=250112, d_ff=16, d_kv=8)
    modern = dict(pad_token_id=1, cls_token_id=0, sep_token_id=2)
    checkers = dict(
        minicheck=saved("minicheck", "RobertaForSequenceClassification", "tiny-encoder", pad_token_id=1),
        hhem=saved("hhem", "T5ForTokenClassification", "tiny-t5", d_ff=16, d_kv=8),
        lettucedetect=saved("lettuce", "ModernBertForTokenClassification", "tiny-encoder", **modern),
        comet=regressor("comet", 6 * 16),
        comet_kiwi=regressor("kiwi", 16),
        **dict.fromkeys(("metricx_24", "metricx_23", "metricx_23_qe"), mt5),
        **dict.fromkeys((f"seahorse_{question}" for question in SEAHORSE_QUESTIONS), MODELS / "tiny-t5"),
    )
    three = {
        f"{n}_layer.{k}": (c, 16)[: 2 if k == "weight" else 1]
        for n, c in (("reg", 1), ("bin", 2), ("tri", 3))
        for k in ("weight", "bias")
    }
    judge = saved("judge", "LlamaForCausalLM", "tiny-llama", max_position_embeddings=2048)
    return dict(
        factcc=classifier("factcc", "CORRECT", "INCORRECT"),
        bleurt=classifier("bleurt", "LABEL_0"),
        ctc_regression=d / "bleurt",
        anli=MODELS / "tiny-nli",
        true_nli=MODELS / "tiny-t5",
        alignscore=(roberta, head("align", **three)),
        ctc=ctc,
        ctc_relevance=ctc,
        embedding=sentence,
        judge=judge,
        judge_translation=judge,
        flan=MODELS / "tiny-t5",
        unieval_fact=MODELS / "tiny-unieval",
        spans="capitals",
        qg=MODELS / "tiny-t5",
        qa=saved("qa", "BertForQuestionAnswering", "tiny-nli"),
        questeval=MODELS / "tiny-t5",
        questeval_similarity=MODELS / "tiny-encoder",
        **checkers,
        dae=(
            saved("electra", "ElectraModel", "tiny-nli", embedding_size=16),
            head("dae", weight=(2, 48), bias=(2,)),
        ),
    )


def capitals(texts, model=None):  # Words with a capital letter, in place of spaCy's entities
    return [
        [AnswerSpan(word, "entity", 0) for word in text.split() if word.istitle() and word.isalpha()][:2]
        for text in texts
    ]


def tagged(text):  # Words, tags and sentences, in place of spaCy's
    words = text.split()
    return words, ["PROPN" if word.istitle() else "DET" for word in words], [text]


def test_every_metric_with_a_model_and_every_judge_runs_on_a_gpu(checkpoints, monkeypatch):
    monkeypatch.setattr(questions, "answer_spans", capitals)
    monkeypatch.setattr(providers, "pos_tagged", tagged)
    monkeypatch.setattr(questions, "spacy_pipeline", lambda name: None)
    short = {k: replace(w, most=3, beams=2, keep=2) for k, w in qs.WRITING_FORMATS.items()}
    monkeypatch.setattr(qs, "WRITING_FORMATS", short)
    items = bulletins("test", 2)
    texts = items[["id", "source", "reference"]].assign(hypothesis=items["reference"][::-1].tolist())
    models = shipped_models() | checkpoints
    electra, arcs = models.pop("dae")
    arc = [(bulletin, "It rained today .", [("nsubj", 0, 1)]) for bulletin in ("The rain fell .",)]
    on_cpu = compute_metrics(texts, models, progress=False).table
    with fake_cuda():
        scores = compute_metrics(texts, models, progress=False)
        on_gpu = scores.table
        half = compute_metrics(texts, models, progress=False, dtype="bfloat16").table
        assert np.isfinite(dae_arc_logits(load.load_model(electra), arcs, arc)[0]).all()
    assert set(scores.precision.values()) == {"float32"}, "metric models, on any device"
    served = set(scores.models)
    of_metrics = {name for name, entry in STATISTICS.items() if entry.compute and not entry.stored}
    for_methods = {"other_embeddings"}  # Of a table with several systems
    for_methods |= {"claim_entailments", "claim_bertscores", "claim_cosines", "claim_p_true"}
    assert served == of_metrics - for_methods - {"sentence_lists", "entity_lists", "echo"}
    pd.testing.assert_frame_equal(on_cpu, on_gpu, atol=5e-5, rtol=0)
    assert (half["value"].isna() == on_gpu["value"].isna()).mean() > 0.99
