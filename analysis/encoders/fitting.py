"""The training loop of small models trained on top of an encoder: probes, labellers, gates, heads."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

Batch = TypeVar("Batch")


def fit(
    batches: Iterable[Batch],
    loss: Callable[[Batch], Tensor],
    optimiser: Optimizer,
    schedule: LRScheduler | None = None,
) -> None:
    """One step of the optimiser for each batch; only the optimiser's own weights get gradients."""
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    for batch in batches:
        optimiser.zero_grad()
        loss(batch).backward(inputs=weights)
        optimiser.step()
        if schedule:
            schedule.step()
