"""A GPU that is pretended: tensors that compute on the CPU, say `cuda:0`, and refuse CPU tensors.

Code for a GPU then runs where there is none, without its kernels. Mixing devices raises an error,
and so does what repeats itself on a GPU only by luck. What torch computes below Python, such as a
backward pass, is not seen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_iter, tree_map_only

GPU = torch.device("cuda:0")
_MOVES = (Tensor.to, Tensor.cuda, Tensor.cpu, Tensor.copy_, torch._foreach_copy_)
_TELLS = {
    Tensor.device.__get__: GPU,
    Tensor.is_cuda.__get__: True,
    Tensor.is_cpu.__get__: False,
    Tensor.get_device: 0,
    # Moving a module then makes new parameters.
    torch._has_compatible_shallow_copy_type: False,
}
_NAME_DEVICES = (torch.device, torch._C._nn._parse_to)
_NEEDS_CPU = (Tensor.numpy, Tensor.__array__)
_UNREPEATABLE = (Tensor.kthvalue, torch.kthvalue, Tensor.histc, torch.histc)
_UNREPEATABLE_ALONG = (Tensor.median, torch.median, Tensor.nanmedian, torch.nanmedian)
_UNREPEATABLE_WIDE = (Tensor.cumsum, torch.cumsum)
"""What `torch.use_deterministic_algorithms(True)` refuses on a GPU: always, along a dimension,
and of numbers that are not whole."""
_INDEXES = (Tensor.__getitem__, Tensor.__setitem__)


class OnGpu(Tensor):
    """A tensor that says it is on a GPU; what is computed from it says so too."""

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        if func in _TELLS:
            return _TELLS[func]
        if (
            func in _UNREPEATABLE
            or (func in _UNREPEATABLE_ALONG and len(args) + len(kwargs or {}) > 1)
            or (func in _UNREPEATABLE_WIDE and args[0].is_floating_point())
        ):
            raise RuntimeError(f"{func.__name__} has no deterministic form on cuda:0")
        if func in _NEEDS_CPU:
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        found = super().__torch_function__(func, (cls,), args, kwargs)
        # A backward pass makes gradients below Python.
        return on_gpu(found) if func == Tensor.grad.__get__ else found

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.as_subclass(Tensor).__reduce_ex__(protocol)


class _Devices(TorchFunctionMode):
    """Puts new tensors where they were asked to be, and refuses to mix devices."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in _TELLS or func in _NAME_DEVICES or func.__name__ == "__set__":
            return func(*args, **kwargs)
        places = [place for place in (*args, *kwargs.values()) if _is_place(place)]
        target = torch.device(places[0]).type if places else None
        target = {Tensor.cuda: "cuda", Tensor.cpu: "cpu"}.get(func, target)
        if target == "cuda" and (random := kwargs.get("generator")) is not None:
            assert random.device.type == "cuda", "Expected a 'cuda' device type for generator"
        if func not in _MOVES:
            _require_one_device(func, args, kwargs)
        if target is None:
            return func(*args, **kwargs)
        args = [torch.device("cpu") if _is_place(part) else part for part in args]
        kwargs |= {name: torch.device("cpu") for name, part in kwargs.items() if _is_place(part)}
        func = Tensor.cpu if func is Tensor.cuda else func
        return on_gpu(func(*args, **kwargs)) if target == "cuda" else _on_cpu(func(*args, **kwargs))


def _is_place(value: Any) -> bool:
    return isinstance(value, torch.device) or (
        isinstance(value, str) and value in ("cpu", "cuda", "cuda:0")
    )


def _require_one_device(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    if func in _INDEXES and isinstance(args[0], OnGpu):
        # The place of a tensor on a GPU may be told by one on the CPU.
        args = [args[0], *args[2:]]
    tensors = [part for part in tree_iter((args, kwargs)) if isinstance(part, Tensor)]
    on_cpu = [part for part in tensors if not isinstance(part, OnGpu) and part.ndim]
    if on_cpu and len(on_cpu) < len(tensors) and any(isinstance(part, OnGpu) for part in tensors):
        shapes = [list(part.shape) for part in on_cpu]
        raise RuntimeError(f"{func.__name__} mixes cuda:0 with tensors on the CPU, of {shapes}")


def on_gpu(values: Any) -> Any:
    """Tensors, or what holds them, on the pretended GPU."""

    def moved(part: Tensor) -> Tensor:
        return part if isinstance(part, OnGpu) else part.as_subclass(OnGpu)

    return tree_map_only(Tensor, moved, values)


def _on_cpu(values: Any) -> Any:
    return tree_map_only(Tensor, lambda part: part.as_subclass(Tensor), values)


@contextmanager
def pretended_gpu() -> Iterator[None]:
    """Let `cuda` be a device, without kernels of our own, compilers and graphs."""

    def load(path: Any, map_location: Any, **settings: Any) -> Any:
        return on_gpu(torch_load(path, map_location="cpu", **settings))

    def load_tensors(path: Any, device: str = "cpu") -> Any:
        return load_file(path) if device == "cpu" else on_gpu(load_file(path))

    torch_load = torch.load
    with ExitStack() as stack:
        for name, value in {
            "torch.load": load,
            "epigrok.training.checkpoints.load_file": load_tensors,
            "torch.cuda.is_available": lambda: True,
            "torch.cuda._lazy_init": lambda: None,
            "torch.cuda.get_rng_state": lambda device=None: None,
            "torch.cuda.set_rng_state": lambda state, device=None: None,
            "torch.cuda.get_device_name": lambda device=None: "a pretended GPU",
            "torch.cuda.get_device_capability": lambda device=None: (0, 0),
            "torch.cuda.default_generators": (torch.default_generator,),
            "torch.cuda.is_bf16_supported": lambda *_: True,
            "epigrok.model.attention._fits_kernel": lambda *_: False,
            "epigrok.posteriors.ivon.optimiser.fused": lambda function: function,
        }.items():
            stack.enter_context(patch(name, value))
        stack.enter_context(_Devices())
        yield
