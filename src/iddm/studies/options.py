"""The flags of `iddm study`."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Options:
    """Which study to run, where and how much of it."""

    study: tyro.conf.Positional[str | None] = None
    """Name of a study, or a file that ends in .toml (docs/compare.md); without it, the studies are listed."""
    only: str | None = None
    """Tasks, methods and learners to run, as in hopper,iddm or hopper,sac; without it, all."""
    seeds: int | None = None
    """Number of seeds, counted from 0; without it, the study's own."""
    on: str = "local"
    """local (one process per core), ray (a cluster on this machine), or ray:ADDRESS."""
    workers: int | None = None
    """Number of runs in parallel; without it, one per core."""
    quick: bool = False
    """One task, the first and the last variant, 4,096 steps, small networks: tests the machinery in two minutes."""
    again: bool = False
    """Redo runs that have results."""
    out: Path | None = None
    """Directory of the results; without it, results/studies (with --quick, runs/quick-results; of a file, results/NAME)."""
    runs: Path | None = None
    """Directory of the runs, shared by all machines; without it, as for --out, but under runs/."""
    list: bool = False
    """Only list the runs, and which of them have results."""

    imports: tyro.conf.Suppress[tuple[str, ...]] = ()
    """What --import named."""

    @property
    def words(self) -> "list[str]":
        """The tasks, methods and learners of --only."""
        return [word.strip() for word in (self.only or "").split(",") if word.strip()]
