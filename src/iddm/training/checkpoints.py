"""Checkpoints: the last two, written whole and then renamed, with a digest of their contents."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from iddm.errors import UserError, warn_user
from iddm.training.replay_file import Mark
from iddm.utils.files import write_whole
from iddm.utils.tensors import Damaged, read_sealed, sealed

WORDS = ("iteration", "started_at", "replay_rows", "replay_checksum")


@dataclass(frozen=True)
class Checkpoint:
    """The learner's arrays after `iteration` iterations, and what brings environments and replay buffer to where they were."""

    iteration: int
    arrays: dict[str, np.ndarray]
    actions: np.ndarray | None = None
    """Those since the environments last started."""
    started_at: int = 0
    """The iteration at which they did."""
    replay: Mark = Mark()


def _words(checkpoint: Checkpoint) -> dict[str, str]:
    numbers = (checkpoint.iteration, checkpoint.started_at, *checkpoint.replay)
    return {name: str(number) for name, number in zip(WORDS, numbers, strict=True)}


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a run."""

    folder: Path

    def paths(self) -> list[Path]:
        """Oldest first."""
        found = self.folder.glob("iteration_*.safetensors")
        return sorted(p for p in found if re.fullmatch(r"iteration_\d{8}\.safetensors", p.name))

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint and remove all but the last two."""
        arrays = {name: np.array(x, order="C") for name, x in checkpoint.arrays.items()}
        if checkpoint.actions is not None:
            arrays["actions"] = np.array(checkpoint.actions, order="C")
        name = f"iteration_{checkpoint.iteration:08d}.safetensors"
        write_whole(self.folder / name, sealed(arrays, _words(checkpoint)))
        for old in self.paths()[:-2]:
            old.unlink()

    def load(self) -> Checkpoint | None:
        """The newest sound checkpoint, or None where there is none yet; a damaged one is skipped, with a warning."""
        damaged = []
        for path in reversed(self.paths()):
            try:
                arrays, about = read_sealed(path)
                iteration, started_at, *mark = (int(about[name]) for name in WORDS)
            except (Damaged, KeyError, ValueError) as error:
                damaged.append(f"{path.name} ({error})")
                continue
            if damaged:
                run = self.folder.parent
                warn_user(f"{run}: {', '.join(damaged)} is damaged; going on from {path.name}, the checkpoint before it.")
            return Checkpoint(iteration, arrays, arrays.pop("actions", None), started_at, Mark(*mark))
        if damaged:
            raise UserError(f"{self.folder.parent}: no checkpoint can be read: {', '.join(damaged)}.")
        return None
