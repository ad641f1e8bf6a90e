"""Run directories: what a run leaves on disk, and how it comes back from there.

config.json        every setting
metrics.csv        a row an iteration
checkpoints/       the last two, written whole, then renamed
policy.safetensors the final policy
"""

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from iddm.config import Config
from iddm.errors import UserError, warn_user
from iddm.files import alone, write_whole
from iddm.policy import Policy, load_policy
from iddm.tensors import Damaged, read_sealed, sealed

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Checkpoint:
    """The learner's arrays after `iteration` iterations, and the actions since the environments last started anew."""

    iteration: int
    arrays: Arrays
    replay: np.ndarray | None = None


@dataclass(frozen=True)
class Run:
    """A run on disk."""

    path: Path

    @staticmethod
    def create(path: str | Path, config: Config, demos_digest: str | None) -> "Run":
        """Start a run directory; one that holds anything is left as it is."""
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            held = "another run" if (path / "config.json").exists() else "other files"
            raise UserError(f"{path} holds {held}; choose another --out, or continue a run with --resume {path}.")
        run = Run(path)
        about = json.loads(config.to_json()) | {"demos_sha256": demos_digest}
        write_whole(path / "config.json", json.dumps(about, indent=2))
        return run

    @staticmethod
    def open(path: str | Path) -> "Run":
        """A run that exists."""
        path = Path(path)
        if not (path / "config.json").is_file():
            raise UserError(f"{path}: there is no run here (no config.json).")
        return Run(path)

    @cached_property
    def _about(self) -> dict[str, Any]:
        try:
            about = json.loads((self.path / "config.json").read_text())
        except (ValueError, OSError, RecursionError) as error:
            raise UserError(f"{self.path / 'config.json'}: cannot be read ({error}).") from error
        if not isinstance(about, dict):
            raise UserError(f"{self.path / 'config.json'}: not the config of a run (not a JSON object).")
        return about

    @cached_property
    def config(self) -> Config:
        fields = {key: value for key, value in self._about.items() if key != "demos_sha256"}
        return Config.from_json(json.dumps(fields), str(self.path / "config.json"))

    @property
    def demos_digest(self) -> str | None:
        return self._about.get("demos_sha256")

    @property
    def finished(self) -> bool:
        return (self.path / "policy.safetensors").is_file()

    @property
    def policy(self) -> Policy:
        """The final policy."""
        return load_policy(self.path)

    def locked(self) -> AbstractContextManager[None]:
        """Keep a second process from training in the same directory."""
        return alone(self.path, f"{self.path}: another process is training in this directory.")

    @property
    def in_use(self) -> bool:
        """Whether a process is training here now."""
        if not (self.path / ".lock").exists():
            return False
        try:
            with self.locked():
                return False
        except UserError:
            return True

    # Checkpoints

    def _checkpoints(self) -> list[Path]:
        """Oldest first."""
        found = (self.path / "checkpoints").glob("iteration_*.safetensors")
        return sorted(p for p in found if re.fullmatch(r"iteration_\d{8}\.safetensors", p.name))

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint and remove all but the last two."""
        arrays = {name: np.array(x, order="C") for name, x in checkpoint.arrays.items()}
        if checkpoint.replay is not None:
            arrays["replay"] = np.array(checkpoint.replay, order="C")
        name = f"iteration_{checkpoint.iteration:08d}.safetensors"
        write_whole(self.path / "checkpoints" / name, sealed(arrays, {"iteration": str(checkpoint.iteration)}))
        for old in self._checkpoints()[:-2]:
            old.unlink()

    def load_checkpoint(self) -> Checkpoint | None:
        """The newest sound checkpoint, or None where there is none yet; a damaged one is passed over, and the user told."""
        damaged = []
        for path in reversed(self._checkpoints()):
            try:
                arrays, about = read_sealed(path)
                iteration = int(about["iteration"])
            except (Damaged, KeyError, ValueError) as error:
                damaged.append(f"{path.name} ({error})")
                continue
            if damaged:
                warn_user(f"{self.path}: {', '.join(damaged)} is damaged; going on from {path.name}, the checkpoint before it.")
            return Checkpoint(iteration, arrays, arrays.pop("replay", None))
        if damaged:
            raise UserError(f"{self.path}: no checkpoint can be read: {', '.join(damaged)}.")
        return None

    # Metrics

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.csv"

    def metrics(self) -> list[dict[str, float]]:
        """The rows of metrics.csv; a missing figure (no episode ended) is NaN. A half-written last row is left out."""
        if not self.metrics_path.is_file():
            return []
        with open(self.metrics_path, newline="") as file:
            reader = csv.DictReader(file)
            rows = [row for row in reader if None not in row.values() and None not in row]
        return [{key: float(value) if value else float("nan") for key, value in row.items()} for row in rows]

    def _metric_names(self) -> list[str]:
        with open(self.metrics_path, newline="") as file:
            return next(csv.reader(file), [])

    def start_metrics(self, iteration: int) -> list[dict[str, float]]:
        """Drop the rows after `iteration` (they will be made again) and return the rest."""
        rows = [row for row in self.metrics() if row["iteration"] <= iteration]
        if rows or self.metrics_path.exists():
            write_whole(self.metrics_path, _csv([list(rows[0]), *map(_cells, rows)]) if rows else "")
        return rows

    @contextmanager
    def event_files(self, wanted: bool) -> Iterator[Callable[[dict[str, float]], None]]:
        """Where each row also goes when TensorBoard event files are wanted."""
        if not wanted:
            yield lambda row: None
            return
        from tensorboardX import SummaryWriter

        with SummaryWriter(str(self.path / "tensorboard")) as writer:

            def add(row: dict[str, float]) -> None:
                for name, value in row.items():
                    if value == value:
                        writer.add_scalar(name, value, int(row["steps"]))

            yield add

    def add_metrics(self, row: dict[str, float]) -> None:
        fresh = not self.metrics_path.exists() or os.path.getsize(self.metrics_path) == 0
        if not fresh and self._metric_names() != list(row):  # begun by a version with other figures
            rows = [{name: old.get(name, float("nan")) for name in row} for old in self.metrics()]
            write_whole(self.metrics_path, _csv([list(row), *map(_cells, rows)]))
        with open(self.metrics_path, "a", newline="") as file:
            file.write(_csv([list(row), _cells(row)] if fresh else [_cells(row)]))


def _cells(row: dict[str, float]) -> list[str]:
    return ["" if x != x else repr(int(x)) if float(x).is_integer() else f"{x:.7g}" for x in row.values()]


def _csv(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
