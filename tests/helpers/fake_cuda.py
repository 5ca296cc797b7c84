"""Two CUDA devices that are pretended: tensors hold their values on the CPU, say that they lie on a GPU, and
fail where a GPU would fail.

FakeTensorMode has devices and no values, so a pass would stop where it first reads one; here it runs to
its end, and its numbers can be compared.
"""

from contextlib import ExitStack, contextmanager
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

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
