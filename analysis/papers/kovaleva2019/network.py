"""A convolutional labeller of attention maps (Kovaleva 2019, 4.1), trained on drawn maps."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from tqdm import tqdm

from analysis.encoders.layout import Layout
from analysis.encoders.models import weights_digest
from analysis.files import replacing
from analysis.papers.kovaleva2019.drawn import LabelledMaps
from analysis.papers.kovaleva2019.names import PATTERNS

WIDTHS = (16, 32, 64)
SMALLEST = 32  # tokens: a smaller map is lost in three pairs of convolutions without padding
BATCH = 64
RATE = 1e-3


def network() -> nn.Sequential:
    """Eight convolutions without padding: three pairs of 3 x 3 with pooling between, then two of 1 x 1 around a mean.

    The article says eight layers; widths and kernels are those of the authors' later code.
    """
    steps: list[nn.Module] = []
    for before, width in zip((1, *WIDTHS), WIDTHS, strict=False):
        steps += [
            nn.Conv2d(before, width, 3),
            nn.ReLU(),
            nn.Conv2d(width, width, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    steps[-1] = nn.Conv2d(WIDTHS[-1], 16, 1)  # instead of the last pooling
    found = nn.Sequential(*steps, nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, len(PATTERNS), 1), nn.Flatten())
    for layer in found:
        if isinstance(layer, nn.Conv2d):
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)
    return found


def centred(maps: Sequence[Float[Tensor, "*map token token"]], size: int = SMALLEST) -> Float[Tensor, "..."]:
    """Maps in the middle of zeros, all as large as the largest map or `size`; in units of uniform attention."""
    size = max(size, *(each.shape[-1] for each in maps))
    found = []
    for each in maps:
        length = each.shape[-1]
        before = (size - length) // 2
        found.append(nn.functional.pad(each * length, (before, size - length - before) * 2))
    return torch.stack(found)


@dataclass(frozen=True)
class NetworkLabeller:
    """Labels maps with a trained network."""

    model: nn.Sequential
    name: str = "network"

    @cached_property
    def key(self) -> str:
        """A digest of the weights, which tells networks apart."""
        return weights_digest(self.model)

    @classmethod
    def fitted(
        cls, drawn: LabelledMaps, epochs: int = 10, seed: int = 0, progress: bool = True
    ) -> "NetworkLabeller":
        """A network trained by Adam on drawn maps, in batches of similar length.

        Departures from the authors' code: 10 epochs instead of 200, and maps in units of uniform attention.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = network()
        optimiser = torch.optim.Adam(model.parameters(), RATE)
        rng = np.random.default_rng(seed)
        goal = torch.from_numpy(drawn.patterns)
        for _ in tqdm(range(epochs), "training on drawn maps", disable=not progress, unit="epoch"):
            for indices in _batches(drawn, rng):
                maps = centred([torch.from_numpy(drawn.maps[index])[None] for index in indices])
                loss = nn.functional.cross_entropy(model(maps), goal[indices])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        return cls(model.eval())

    @classmethod
    def kept(cls, path: Path, drawn: LabelledMaps, epochs: int = 10, seed: int = 0) -> "NetworkLabeller":
        """The network in a file if it was trained on these maps; otherwise a new one, which is saved there."""
        recipe = _recipe(drawn, epochs, seed)
        if path.exists():
            with safe_open(path, "pt") as file:
                if (file.metadata() or {}).get("recipe") == recipe:
                    model = network()
                    model.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
                    return cls(model.eval())
        found = cls.fitted(drawn, epochs, seed)
        with replacing(path) as temporary:
            save_file(found.model.state_dict(), temporary, {"recipe": recipe})
        return found

    def __call__(
        self, attention: Float[Tensor, "batch head token token"], layouts: Sequence[Layout]
    ) -> Int[np.ndarray, "batch head"]:
        """The number of the pattern, in PATTERNS, of every map of a padded batch."""
        found = []
        for maps, layout in zip(attention.cpu(), layouts, strict=True):
            length = len(layout)
            with torch.no_grad():
                logits = self.model(centred([one[None, :length, :length] for one in maps]))
            found.append(logits.argmax(-1).numpy())
        return np.stack(found)


def _batches(drawn: LabelledMaps, rng: np.random.Generator) -> Iterator[list[int]]:
    """Indices of maps of similar length; the batches are in random order."""
    lengths = np.array([len(each) for each in drawn.maps])
    order = np.lexsort((rng.random(len(lengths)), lengths))
    parts = [order[start : start + BATCH].tolist() for start in range(0, len(order), BATCH)]
    yield from (parts[number] for number in rng.permutation(len(parts)))


def _recipe(drawn: LabelledMaps, epochs: int, seed: int) -> str:
    """A digest of everything that a network depends on."""
    digest = hashlib.sha256(repr((epochs, seed, drawn.patterns.tolist(), torch.__version__)).encode())
    for one in drawn.maps:
        digest.update(one.tobytes())
    return digest.hexdigest()
