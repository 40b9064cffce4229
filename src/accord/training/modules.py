"""Copies of any torch module as one stack: what the training loop needs, around code of a user.

Parameters of all members lie side by side in one flat buffer, so that optimiser, restarts and early
stopping are those of every other stack. A forward pass is one call of the module under
``torch.func.vmap`` where that works. It cannot for recurrent layers, for operations without a
batching rule, or where a module looks at values; and it is not meant to where a module changes
buffers (batch normalisation), since padding rows must not count there. Such modules are called once
per member.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from accord.training.tasks import Settings

MakeModule = Callable[[], nn.Module]
Named = Mapping[str, Tensor]

# Numbers of the input predicted at a time.
_CHUNK_VALUES = 2**20


@dataclass(frozen=True)
class ModuleDesign:
    """Modules that ``make`` gives, for rows of ``input_shape``."""

    make: MakeModule
    input_shape: tuple[int, ...]
    n_outputs: int
    dropout: ClassVar[float] = 0.0
    dropped_sizes: ClassVar[tuple[int, ...]] = (
        0,
    )  # a module has dropout layers of its own, or none

    @property
    def n_parameters(self) -> int:
        return sum(p.numel() for p in made(self.make, 0).parameters() if p.requires_grad)

    @property
    def n_activations(self) -> int:
        """At least the input; what a module keeps besides is not known."""
        return math.prod(self.input_shape)

    @property
    def largest_product(self) -> int:
        """Not known, so large enough for all threads that torch was set to."""
        return 2**30

    def networks(self, n_members: int, settings: Settings, n_extra: int) -> "ModuleStack":
        return ModuleStack(self, n_members, settings, n_extra)


def made(make: MakeModule, seed: int) -> nn.Module:
    """A new module with weights drawn from ``seed``; torch's own random numbers stay untouched."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = make()
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"make_module must return a torch.nn.Module, got {type(module).__name__}. "
            "Give a function without arguments that makes a new module on each call."
        )
    return module


def fixed_values(module: nn.Module) -> dict[str, Tensor]:
    """What of a module is not trained: its buffers and parameters without gradient, by name."""
    frozen = {n: p.detach() for n, p in module.named_parameters() if not p.requires_grad}
    return frozen | dict(module.named_buffers())


def trained_values(module: nn.Module) -> dict[str, Tensor]:
    """The parameters of a module that are trained, by name."""
    return {n: p.detach() for n, p in module.named_parameters() if p.requires_grad}


class ModuleStack:
    """M modules of one design in training (:class:`accord.training.Networks`).

    ``stacked`` says after the first batch whether all members are called at once.
    """

    def __init__(
        self, design: ModuleDesign, n_members: int, settings: Settings, n_extra: int
    ) -> None:
        self.design, self.n_members, self.settings = design, n_members, settings
        self.module = made(design.make, 0).to(settings.device)
        self.shapes = {name: value.shape for name, value in trained_values(self.module).items()}
        if not self.shapes:
            raise ValueError(
                "make_module must give a module with parameters to train, got none. "
                "Leave requires_grad of some of them at True."
            )
        size = n_members * (sum(shape.numel() for shape in self.shapes.values()) + n_extra)
        self.parameters = torch.zeros(size, dtype=settings.dtype, device=settings.device)
        self.gradients = torch.zeros_like(self.parameters)
        *self.weights, self.extra = self.member_views(self.parameters)
        *self.weight_grads, self.extra_grads = self.member_views(self.gradients)
        self.fixed = {
            name: torch.stack([_converted(value, self.parameters)] * n_members)
            for name, value in fixed_values(self.module).items()
        }
        self.stacked: bool | None = None
        self._steps = count()
        self._seeds: Sequence[int] = ()

    @property
    def blocks(self) -> list[Tensor]:
        return self.weights

    @property
    def buffers(self) -> list[Tensor]:
        return list(self.fixed.values())

    def member_views(self, flat: Tensor) -> list[Tensor]:
        views, start = [], 0
        for shape in self.shapes.values():
            stop = start + self.n_members * shape.numel()
            views.append(flat[start:stop].view(self.n_members, *shape))
            start = stop
        return [*views, flat[start:].view(self.n_members, -1)]

    def initialise(self, seeds: Sequence[int]) -> None:
        """Let ``make`` draw each member from its own seed."""
        self._seeds = seeds
        earlier: nn.Module | None = None
        for member, seed in enumerate(seeds):
            module = made(self.design.make, seed)
            if module is earlier:
                raise ValueError(
                    "make_module must make a new module on each call, got the same one twice. "
                    "Build the module inside the function."
                )
            earlier = module
            for block, value in zip(self.weights, trained_values(module).values(), strict=True):
                block[member] = value
            for name, value in fixed_values(module).items():
                self.fixed[name][member] = value

    # --- training ------------------------------------------------------------------------------

    # The loop runs in inference mode, whose tensors autograd does not take; what comes from it is
    # therefore cloned.
    @torch.inference_mode(False)
    @torch.enable_grad()
    def forward(self, x: Tensor, masks: Sequence[Tensor | None], weight: Tensor) -> Tensor:
        x = x.clone().view(*x.shape[:2], *self.design.input_shape)
        self.module.train()
        if self.stacked is None:
            self.stacked = self._can_be_stacked(x)
        self._leaves = [block.detach().requires_grad_() for block in self.weights]
        step = next(self._steps)
        with torch.random.fork_rng():
            self._raw = self._together(x, step) if self.stacked else self._each(x, weight, step)
        return self._raw.detach()

    @torch.inference_mode(False)
    def backward(self, grad: Tensor, *, input_gradient: bool = False) -> None:
        if input_gradient:
            raise NotImplementedError("modules are trained without adversarial neighbours.")
        found = torch.autograd.grad(self._raw, self._leaves, grad.clone(), materialize_grads=True)
        for block, value in zip(self.weight_grads, found, strict=True):
            block.copy_(value)

    def _together(self, x: Tensor, step: int) -> Tensor:
        """All members in one call."""
        torch.manual_seed(self._seeds[0] + step)  # of the module's own dropout
        trained = dict(zip(self.shapes, self._leaves, strict=True))
        return vmap(self._called, randomness="different")(trained, self.fixed, x)

    def _each(self, x: Tensor, weight: Tensor, step: int) -> Tensor:
        """One member after the other, on rows that are no padding."""
        parts = zip(*(leaf.unbind() for leaf in self._leaves), strict=True)
        raw = []
        for member, values in enumerate(parts):
            torch.manual_seed(self._seeds[member] + step)
            present = weight[member, :, 0] != 0
            if present.sum() < 2:  # batch normalisation needs more than one row
                present = torch.ones_like(present)
            trained = dict(zip(self.shapes, values, strict=True))
            found = self._called(trained, self._fixed_of(member), x[member][present])
            raw.append(found.new_zeros(len(present), found.shape[1]).index_put((present,), found))
        return torch.stack(raw)

    def _called(self, trained: Named, fixed: Named, x: Tensor) -> Tensor:
        found: Tensor = functional_call(self.module, {**trained, **fixed}, (x,))
        return found

    def _fixed_of(self, member: int) -> dict[str, Tensor]:
        return {name: values[member] for name, values in self.fixed.items()}

    def _can_be_stacked(self, x: Tensor) -> bool:
        """Whether one call for all members is to take the place of a call per member."""
        fixed = {name: value.clone() for name, value in self._fixed_of(0).items()}
        with torch.random.fork_rng():
            found = self._called(self._trained_of(0), fixed, x[0].clone())
        _check_raw(found, x.shape[1], self.design.n_outputs)
        if any(not torch.equal(fixed[n], v) for n, v in self._fixed_of(0).items()):
            return False
        try:
            with torch.random.fork_rng(), warnings.catch_warnings():
                return self._agrees_stacked(x)
        except Exception:  # whatever vmap, or the module under it, has to say
            return False
        finally:
            self.module.train()

    def _agrees_stacked(self, x: Tensor) -> bool:
        """Whether one call can be made and differentiated, and gives what a call per member does.

        The two are compared without dropout, whose random numbers differ.
        """
        self._leaves = [block.detach().requires_grad_() for block in self.weights]
        # torch's words where it calls an operation once per member all the same
        slow = "There is a performance drop"
        warnings.filterwarnings("error", message=slow)
        raw = self._together(x.clone(), 0)  # a module may change its input in place
        torch.autograd.grad(raw.sum(), self._leaves, allow_unused=True)
        self.module.eval()
        warnings.filterwarnings("ignore", message=slow)
        alone = self._called(self._trained_of(0), self._fixed_of(0), x[0].clone())
        return torch.allclose(self._together(x.clone(), 0)[0], alone, rtol=1e-3, atol=1e-4)

    def _trained_of(self, member: int) -> dict[str, Tensor]:
        return {
            name: block[member].detach()
            for name, block in zip(self.shapes, self.weights, strict=True)
        }

    # --- prediction ----------------------------------------------------------------------------

    def outputs(self, members: slice, x: Tensor) -> Tensor:
        trained = {
            name: block[members] for name, block in zip(self.shapes, self.weights, strict=True)
        }
        fixed = {name: values[members] for name, values in self.fixed.items()}
        return module_outputs(self.module, trained | fixed, x, self.design)


def module_outputs(module: nn.Module, values: Named, x: Tensor, design: ModuleDesign) -> Tensor:
    """Raw outputs of members for the same rows, in chunks, without dropout.

    ``values`` hold the parameters and buffers of all members, the member axis first.

    **Shape**: x (N, d) → (M, N, n_outputs).
    """
    module.eval()
    chunk = max(1, _CHUNK_VALUES // math.prod(design.input_shape))
    raw = []
    with torch.inference_mode():
        for parts in zip(*(block.unbind() for block in values.values()), strict=True):
            own = dict(zip(values, parts, strict=True))
            pieces = []
            for rows in torch.split(x, chunk):
                # a module may change its input in place
                batch = rows.clone().view(-1, *design.input_shape)
                found = functional_call(module, own, (batch,))
                _check_raw(found, len(rows), design.n_outputs)
                pieces.append(found)
            raw.append(torch.cat(pieces))
    return torch.stack(raw)


def _check_raw(found: object, n_rows: int, n_outputs: int) -> None:
    """Refuse what is not one row of raw outputs per row of the input."""
    if isinstance(found, Tensor) and found.shape == (n_rows, n_outputs):
        return
    got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
    raise ValueError(
        f"the module must return raw outputs of shape ({n_rows}, {n_outputs}) for a batch of "
        f"{n_rows}, a location and a scale per target, got {got}. End it with a linear layer with "
        f"{n_outputs} outputs and no activation."
    )


def _converted(value: Tensor, like: Tensor) -> Tensor:
    """On the device of ``like``, and in its precision if it is no whole number."""
    return value.to(like) if value.is_floating_point() else value.to(like.device)
