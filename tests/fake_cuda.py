"""A CUDA device that is pretended: tensors hold their values on the CPU, say that they lie on a GPU, and
fail where a GPU would fail.

FakeTensorMode has devices and no values, so a pass would stop where it first reads one; here it runs to
its end, and its numbers can be compared.
"""

from contextlib import ExitStack, contextmanager
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
T = torch.Tensor
QUESTIONS = ("_parse_to", "_has_compatible_shallow_copy_type")  # Compute nothing


class FakeCudaTensor(torch.Tensor):
    "A tensor of the pretended device"

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), self.detach().clone())


def device_of(tensor):
    return CUDA if isinstance(tensor, FakeCudaTensor) else CPU


def placed(value, device):  # A result, its tensors on the device
    if isinstance(value, torch.Tensor):
        kind = FakeCudaTensor if device == CUDA else torch.Tensor
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
        return {"cuda": CUDA, "cpu": CPU}.get(value.type)
    if isinstance(value, str) and value.partition(":")[0] in ("cuda", "cpu"):
        return as_device(torch.device(value))
    return None


def common_device(func, counted):
    "Device of an operation; an error where a GPU would raise one."
    found = {device_of(tensor) for tensor in tensors(counted) if tensor.ndim or device_of(tensor) == CUDA}
    if len(found) > 1:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"cuda:0 and cpu! ({getattr(func, '__name__', func)})"
        )
    return found.pop() if found else CPU


def result_device(func, args, kwargs):
    "Device of what a function gives."
    name = getattr(func, "__name__", "")
    if func is T.cpu or func is T.cuda:
        return CPU if func is T.cpu else CUDA
    if func is T.to:
        for value in (*args[1:], *kwargs.values()):
            if isinstance(value, torch.Tensor):
                return device_of(value)
            if device := as_device(value):
                return device
        return device_of(args[0])
    if device := as_device(kwargs.get("device")):
        return device
    if func is T.copy_:
        return device_of(args[0])
    if name in ("__getitem__", "__setitem__"):  # A GPU takes indices from the CPU
        return common_device(func, [args[0], *args[2:]])
    return common_device(func, [args, list(kwargs.values())])


class FakeCuda(TorchFunctionMode):
    "Context in which the device cuda:0 is there"

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.device or getattr(func, "__name__", "") in QUESTIONS:
            return func(*args, **kwargs)
        if func in (T.device.__get__, T.is_cuda.__get__) and device_of(args[0]) == CUDA:
            return CUDA if func == T.device.__get__ else True
        if func in (T.numpy, T.__array__) and device_of(args[0]) == CUDA:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")
        device = result_device(func, args, kwargs)
        kwargs = {key: value for key, value in kwargs.items() if key != "pin_memory"}
        on_cpu = [CPU if as_device(value) else value for value in args]
        out = func(*on_cpu, **{key: CPU if as_device(value) else value for key, value in kwargs.items()})
        return placed(out, device)


@contextmanager
def fake_cuda():
    "Context in which torch finds a GPU."
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    with ExitStack() as stack:
        stack.callback(torch.__future__.set_overwrite_module_params_on_conversion, False)
        stack.enter_context(mock.patch("torch.cuda.is_available", lambda: True))
        stack.enter_context(mock.patch("torch.cuda.is_bf16_supported", lambda *given, **options: True))
        stack.enter_context(FakeCuda())
        yield
