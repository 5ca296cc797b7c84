"""Two CUDA devices that are pretended: tensors hold their values on the CPU, say that they lie on a GPU, and
fail where a GPU would fail.

FakeTensorMode has devices and no values, so a pass would stop where it first reads one; here it runs to
its end, and its numbers can be compared.
"""

import json
from contextlib import ExitStack, contextmanager
from unittest import mock

import pytest
import torch
from torch.overrides import TorchFunctionMode

from tests.helpers.readings import encoder, framed
from tests.helpers.writers import SAMPLES, tiny
from uetrust.cli.cli import main
from uetrust.core import settings as s
from uetrust.scoring.generators import GENERATOR_PASSES
from uetrust.statistics.table import read_statistics

CPU, *CARDS = torch.device("cpu"), torch.device("cuda", 0), torch.device("cuda", 1)
T = torch.Tensor
QUESTIONS = ("_parse_to", "_has_compatible_shallow_copy_type")  # Compute nothing


class FakeCudaTensor(torch.Tensor):
    "A tensor of the first pretended device"

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), self.detach().clone())


class SecondCudaTensor(FakeCudaTensor):
    "A tensor of the second one"


KINDS = dict(zip((CPU, *CARDS), (torch.Tensor, FakeCudaTensor, SecondCudaTensor)))


def device_of(tensor):
    return next((card for card in reversed(CARDS) if isinstance(tensor, KINDS[card])), CPU)


def placed(value, device):  # A result, its tensors on the device
    if isinstance(value, torch.Tensor):
        kind = KINDS[device]
        return value if (device_of(value) == device) else value.as_subclass(kind)
    if type(value) in (list, tuple):
        return type(value)(placed(each, device) for each in value)
    if isinstance(value, tuple):  # torch.return_types
        return type(value)(placed(each, device) for each in value)
    return value


def tensors(values):  # In nested arguments
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors(value)


def as_device(value):  # A device, or None
    if isinstance(value, torch.device):
        return CPU if value.type == "cpu" else CARDS[value.index or 0] if value.type == "cuda" else None
    if isinstance(value, str) and value.partition(":")[0] in ("cuda", "cpu"):
        return as_device(torch.device(value))
    return None


def numbered(value):  # The device of a number, where a number is one
    return CARDS[value] if type(value) is int else None


def on_cpu(func, args, kwargs):  # The same arguments with the CPU in place of a device
    args = [CPU if as_device(value) or (func is T.to and numbered(value)) else value for value in args]
    given = {key: CPU if as_device(value) else value for key, value in kwargs.items() if key != "pin_memory"}
    return args, given | (dict(device=CPU) if numbered(kwargs.get("device")) else {})


def common_device(func, counted):
    "Device of an operation; an error where a GPU would raise one."
    found = {device_of(tensor) for tensor in tensors(counted) if tensor.ndim or device_of(tensor) != CPU}
    if len(found) > 1:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{' and '.join(sorted(map(str, found), reverse=True))}! ({getattr(func, '__name__', func)})"
        )
    return found.pop() if found else CPU


def result_device(func, args, kwargs):
    "Device of what a function gives."
    name = getattr(func, "__name__", "")
    if func is T.cpu or func is T.cuda:
        return CPU if func is T.cpu else CARDS[0]
    if func is T.to:
        for value in (*args[1:], *kwargs.values()):
            if isinstance(value, torch.Tensor):
                return device_of(value)
            if device := as_device(value) or numbered(value):
                return device
        return device_of(args[0])
    if device := as_device(kwargs.get("device")) or numbered(kwargs.get("device")):
        return device
    if func is T.copy_:
        return device_of(args[0])
    if name in ("__getitem__", "__setitem__"):  # A GPU takes indices from the CPU, not from another GPU
        indices = [index for index in tensors([args[1]]) if device_of(index) != CPU]
        return common_device(func, [args[0], *args[2:], *indices])
    return common_device(func, [args, list(kwargs.values())])


class FakeCuda(TorchFunctionMode):
    "Context in which the devices cuda:0 and cuda:1 are there"

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.device and args and numbered(args[0]):
            return numbered(args[0])
        if func is torch.device or getattr(func, "__name__", "") in QUESTIONS:
            return func(*args, **kwargs)
        if func in (T.device.__get__, T.is_cuda.__get__) and (own := device_of(args[0])) != CPU:
            return own if func == T.device.__get__ else True
        if func in (T.numpy, T.__array__) and (own := device_of(args[0])) != CPU:
            raise TypeError(f"can't convert {own} device type tensor to numpy. Use Tensor.cpu() first")
        device = result_device(func, args, kwargs)
        args, kwargs = on_cpu(func, args, kwargs)
        return placed(func(*args, **kwargs), device)


@contextmanager
def fake_cuda(
    free=2**30,  # Bytes of memory that are free on each
):
    "Context in which torch finds two GPUs."
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    with ExitStack() as stack:
        stack.callback(torch.__future__.set_overwrite_module_params_on_conversion, False)
        # The mode is of this thread, so no other one may load weights
        stack.enter_context(mock.patch.dict("os.environ", HF_DEACTIVATE_ASYNC_LOAD="1"))
        stack.enter_context(mock.patch("torch.cuda.is_available", lambda: True))
        stack.enter_context(mock.patch("torch.cuda.is_bf16_supported", lambda *given, **options: True))
        stack.enter_context(mock.patch("torch.cuda.device_count", lambda: len(CARDS)))
        stack.enter_context(mock.patch("torch.cuda.mem_get_info", lambda device=None: (free, 2**40)))
        stack.enter_context(FakeCuda())
        yield


IN_PARTS = dict(  # Every step from one part to the next crosses between the GPUs somewhere
    bart={
        "model.shared": "cuda:0",
        "model.encoder.embed_tokens": "cuda:0",
        "model.encoder.embed_positions": "cuda:1",
        "model.encoder.layernorm_embedding": "cuda:0",
        "model.encoder.layers.0": "cuda:0",
        "model.encoder.layers.1": "cuda:1",
        "model.decoder.embed_tokens": "cuda:0",
        "model.decoder.embed_positions": "cuda:0",
        "model.decoder.layernorm_embedding": "cuda:1",
        "model.decoder.layers.0": "cuda:1",
        "model.decoder.layers.1": "cuda:0",
        "lm_head": "cuda:0",
        "final_logits_bias": "cuda:1",
    },
    llama={
        "model.embed_tokens": "cuda:0",
        "model.layers.0": "cuda:0",
        "model.layers.1": "cuda:1",
        "model.norm": "cuda:1",
        "model.rotary_emb": "cuda:0",
        "lm_head": "cuda:1",
    },
)
INI = f"""
[common]
nli = models/encoder
encoder = models/encoder
relevance = greedy sample
[dataset.toy]
data = toy.jsonl
train = toy.jsonl
background = toy.jsonl
[generator.bart]
model = models/bart
samples = 2
max_new_tokens = 8
min_length = 2
beam_members = 2
passes = {" ".join(name for name in GENERATOR_PASSES if name != "lookback")}
p_true = {{source}} w1 {{summary}}
verbal_2s = {{source}} w1 {{summary}}
[generator.bart-in-parts]
like = bart
device_map = {json.dumps(IN_PARTS["bart"])}
[generator.llama]
like = bart
model = models/llama
prompt = w1 {{source}} w2
passes = {" ".join(name for name in GENERATOR_PASSES if name not in ("beams", "mc_dropout"))}
elicit = w3 {{source}} w1 {{summary}} w2
verbal_1s = w1 {{source}}
[generator.llama-in-parts]
like = llama
device_map = {json.dumps(IN_PARTS["llama"])}
[profile.cpu]
banks = toy--bart toy--llama
[profile.gpu]
banks = toy--bart toy--llama
[profile.half]
banks = toy--bart toy--llama
[profile.two]
banks = toy--bart toy--bart-in-parts toy--llama toy--llama-in-parts
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    "A folder that looks like a checkout, with models of random weights"
    d = tmp_path_factory.mktemp("project")
    (d / "nbs").mkdir()
    (d / "settings.ini").write_text(INI)
    for name, m in (("bart", framed("bart")), ("llama", tiny("llama", chat=True)), ("encoder", encoder())):
        if name != "encoder":  # Every rule that acts before sampling
            m.model.generation_config.update(
                repetition_penalty=1.2,
                no_repeat_ngram_size=3,
                min_new_tokens=1,
                suppress_tokens=[7],
                begin_suppress_tokens=[8],
            )
        m.model.save_pretrained(d / "models" / name)
        m.tokenizer.save_pretrained(d / "models" / name)
    SAMPLES[:3].assign(reference="w3 w4").to_json(d / "toy.jsonl", orient="records", lines=True)
    return d


def filled(profile, name, *options):
    "Statistics of a bank by step, after `uetrust fill`"
    assert main(["fill", f"toy--{name}", "--profile", profile, *options]) == 0
    folders = sorted((s.out_dir(profile) / "banks" / f"toy--{name}").iterdir())
    return {
        d.name: read_statistics(d)
        for d in folders
        if d.is_dir() and d.name not in ("texts", "train", "background")
    }
