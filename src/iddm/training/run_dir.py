"""Run directories: what a run leaves on disk, and how it comes back from there.

config.json        every setting
demos.json         where the demonstrations came from, their digest and their returns
about.json         the version and commit of the code, and when the run began
metrics.csv        one row per iteration
checkpoints/       the last two, written whole, then renamed
replay.f32         the replay buffer, where the learner has one
evaluated/         policies evaluated so far, until the run ends
last_policy.safetensors  the policy at the end
policy.safetensors the policy to use: of those evaluated, the closest to held-out demonstrations; else the last
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from iddm.config import Config
from iddm.envs.spec import parse_kwargs
from iddm.envs.stored import StoredEnv
from iddm.errors import UserError
from iddm.policy import Policy, load_policy
from iddm.training.about import About
from iddm.training.checkpoints import Checkpoints
from iddm.training.demonstrations import DemosRecord
from iddm.training.metrics_file import MetricsFile
from iddm.training.replay_file import ReplayFile
from iddm.utils.files import is_leftover, write_whole
from iddm.utils.locks import locked

Record = TypeVar("Record")


@dataclass(frozen=True, repr=False)
class Run:
    """A run on disk."""

    path: Path

    def __repr__(self) -> str:
        return f"Run({self.path}, {'finished' if self.finished else 'not finished'})"

    @staticmethod
    @contextmanager
    def create(path: str | Path, config: Config, demos: DemosRecord | None) -> Iterator["Run"]:
        """Start a run directory and hold its lock; one that holds anything is left as it is."""
        run = Run(Path(path))
        run._refuse_if_used()
        with run.locked():
            run._refuse_if_used()  # another process may have been first
            run.remove_leftovers()
            if demos is not None:
                write_whole(run.path / "demos.json", msgspec.json.format(msgspec.json.encode(demos)))
            write_whole(run.path / "config.json", config.to_json())
            write_whole(run.path / "about.json", msgspec.json.format(msgspec.json.encode(About.now())))
            yield run

    def _refuse_if_used(self) -> None:
        path = self.path
        if path.exists() and (not path.is_dir() or not self._is_fresh()):
            held = "another run" if (path / "config.json").exists() else "other files"
            raise UserError(f"{path} holds {held}; choose another --out, or continue a run with --resume {path}.")

    def _is_fresh(self) -> bool:
        """Whether nothing is here, or only what a run leaves that was killed before it wrote its config."""
        found = {path.name for path in self.path.iterdir() if not is_leftover(path)} - {".lock"}
        try:
            return not found or (found == {"demos.json"} and Run(self.path).demos is not None)
        except UserError:
            return False

    def reopened(self, config: Config) -> "Run":
        """Unfinished again, with another config; the policy that was kept stays among those to choose from."""
        closest = closest_evaluation(self.metrics())
        if self.finished and closest is not None:
            self.evaluated_folder.mkdir(exist_ok=True)
            os.replace(self.policy_path, self.evaluated_policy(closest))
        self.policy_path.unlink(missing_ok=True)
        self.last_policy_path.unlink(missing_ok=True)
        write_whole(self.path / "config.json", config.to_json())
        return Run(self.path)

    def remove_leftovers(self) -> None:
        """Remove what a killed process had begun to write."""
        for folder in (self.path, self.checkpoints.folder, self.evaluated_folder):
            for path in filter(is_leftover, folder.glob(".*")):
                path.unlink(missing_ok=True)

    @staticmethod
    def open(path: str | Path) -> "Run":
        """A run that exists."""
        path = Path(path)
        if not (path / "config.json").is_file():
            raise UserError(f"{path}: there is no run here (no config.json).")
        return Run(path)

    @cached_property
    def config(self) -> Config:
        return Config.from_json(self._read("config.json"), str(self.path / "config.json"))

    @property
    def stored_env(self) -> StoredEnv:
        """The environment that the config names."""
        config = self.config
        try:
            kwargs = parse_kwargs(config.env_kwargs)
        except UserError as error:
            raise UserError(f"{self.path / 'config.json'}: {error}") from error
        return StoredEnv(config.env, config.max_episode_steps, kwargs, str(self.path))

    @cached_property
    def demos(self) -> DemosRecord | None:
        """What the run says of its demonstrations; None where its method needs none."""
        return self._record("demos.json", DemosRecord, "the record of a run's demonstrations")

    @cached_property
    def about(self) -> About | None:
        """What made the run, and when; None where an earlier version did."""
        return self._record("about.json", About, "what made a run")

    def _record(self, name: str, kind: type[Record], what: str) -> Record | None:
        if not (self.path / name).is_file():
            return None
        try:
            return msgspec.json.decode(self._read(name), type=kind)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise UserError(f"{self.path / name}: not {what} ({error}).") from error

    def _read(self, name: str) -> str:
        try:
            return (self.path / name).read_text()
        except (ValueError, OSError) as error:
            raise UserError(f"{self.path / name}: cannot be read ({error}).") from error

    @property
    def policy_path(self) -> Path:
        return self.path / "policy.safetensors"

    @property
    def evaluated_folder(self) -> Path:
        return self.path / "evaluated"

    def evaluated_policy(self, iteration: int) -> Path:
        return self.evaluated_folder / f"iteration_{iteration:08d}.safetensors"

    @property
    def last_policy_path(self) -> Path:
        return self.path / "last_policy.safetensors"

    @property
    def finished(self) -> bool:
        return self.policy_path.is_file()

    @property
    def policy(self) -> Policy:
        """The policy to use."""
        return load_policy(self.path)

    @property
    def last_policy(self) -> Policy:
        """The policy at the end of the run."""
        return load_policy(self.last_policy_path) if self.last_policy_path.is_file() else self.policy

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.path / "checkpoints")

    @property
    def replay_file(self) -> ReplayFile:
        return ReplayFile(self.path / "replay.f32")

    @property
    def metrics_file(self) -> MetricsFile:
        return MetricsFile(self.path / "metrics.csv")

    def metrics(self) -> list[dict[str, float]]:
        """The rows of metrics.csv; a missing number (no episode ended) is NaN."""
        return self.metrics_file.rows()

    def table(self) -> dict[str, np.ndarray]:
        """The columns of metrics.csv by name, for `pandas.DataFrame(run.table())` and the like."""
        rows = self.metrics()
        return {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())}

    def curve(self, metric: str = "episode_return") -> tuple[np.ndarray, np.ndarray]:
        """(steps, values) of a metric, for plotting; rows without a value (no episode ended) are left out."""
        table = self.table()
        if metric not in table:
            raise UserError(f"{self.path}: there is no metric '{metric}'; there are {', '.join(table) or 'none yet'}.")
        known = ~np.isnan(table[metric])
        return table["steps"][known], table[metric][known]

    def locked(self) -> AbstractContextManager[None]:
        """Keep a second process from training in the same directory."""
        return locked(self.path, f"{self.path}: another process is training in this directory.")

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


def closest_evaluation(rows: list[dict[str, float]]) -> int | None:
    """The iteration whose policy was closest to held-out demonstrations, the later of equals; None where none was measured."""
    close = [row for row in rows if not isnan(row.get("closeness", nan))]
    return int(max(close, key=lambda row: (row["closeness"], row["iteration"]))["iteration"]) if close else None
