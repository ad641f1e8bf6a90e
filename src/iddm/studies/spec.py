"""The runs of a study as data: methods × tasks × settings × seeds."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from iddm.errors import UserError
from iddm.studies.core import (
    Config,
    Settings,
    Task,
    as_flag,
    bundled_fingerprint,
    config_of,
    demos_fingerprint,
    find_task,
    has_choice_of_learner,
    what_differs,
)

EXPERT = "expert"
"""Not a method to train: the bundled expert, evaluated."""

CONTROLS = ("random", "none")

SAME_AS_GAIFO = "iddm-zero"
"""The A/A control: IDDM with both weights 0. It differs from GAIfO by its random numbers alone, so what parts the two is chance,
and no other difference of that size means anything."""

UNTRAINED = ("random", EXPERT)
"""Nothing is learned, so there is one run whatever the seeds: the same actions each time."""

SIX = ("CartPole", "InvertedPendulum", "InvertedDoublePendulum", "Hopper", "HalfCheetah", "Ant")
"""The paper's tasks."""

UNDEFINED = {("CartPole", "deepmimic")}
"""No joints to track, as in the paper."""

EPISODES = 50
"""Episodes of an evaluation (the paper's 50 trials)."""

QUICK_STEPS = 4_096
QUICK: Settings = {
    "hidden": (32, 32),
    "rollout_length": 32,
    "evaluations": 1,
    "cloning.epochs": 10,
    "rounds": 2,
    "adversarial.hidden": (32, 32),
    "mi.hidden": (32, 32),
    "inverse_entropy.hidden": (32, 32),
    "mi.updates": 2,
    "mi.first_updates": 2,
}
"""What --quick changes in every run: most of its time is then compilation."""


def study_steps(task: str) -> int:
    """Environment steps of every method on a task, unless a study says otherwise."""
    known = find_task(task) or Task
    return known.study_steps


@dataclass(frozen=True)
class RunSpec:
    """One run of a study: all that differs from the defaults. Two studies that want the same run share it."""

    task: str
    method: str
    seed: int
    settings: tuple[tuple[str, Any], ...] = ()
    """Sorted by name, without steps."""
    steps: int = 0
    """0 where nothing is trained."""
    episodes: int = EPISODES

    @property
    def flags(self) -> str:
        """The settings as they are typed."""
        return " ".join(as_flag(name, value) for name, value in self.settings)

    @property
    def command(self) -> str:
        """The command that makes this run by hand."""
        given = dict(self.settings)
        usual = has_choice_of_learner(self.method, given.get("preset", "tuned")) and "learner" not in given
        return f"{self._short_command} --learner ppo" if usual else self._short_command

    @property
    def _short_command(self) -> str:
        """The same where the method's own learner is left unsaid."""
        if self.method == EXPERT:
            return f"iddm eval {self.task} --episodes {self.episodes}"
        parts = [f"iddm train {self.task} --method {self.method} --steps {self.steps} --seed {self.seed}", self.flags]
        return " ".join(filter(None, parts))

    @property
    def name(self) -> str:
        """Of the run's directory; with other demonstrations it is another run."""
        source = self._demos_fingerprint if self.method == EXPERT or self.config.needs_demos else ""
        distinct = hashlib.sha256(f"{self._short_command} {self.episodes} {source}".encode()).hexdigest()[:8]
        return f"{self.task.replace('/', '-')}-{self.method}-seed{self.seed}-{distinct}"

    @property
    def _demos_fingerprint(self) -> str:
        given = dict(self.settings).get("demos")
        if given is None or given.startswith("expert:"):
            return bundled_fingerprint(self.task)
        return demos_fingerprint(given) if Path(given).exists() else ""  # the run itself says what is missing

    @cached_property
    def config(self) -> Config:
        return config_of(self.task, self.method, {"steps": self.steps, "seed": self.seed, **dict(self.settings)})

    @property
    def learner(self) -> str:
        return self.method if self.method == EXPERT else self.config.learner.name

    def __getstate__(self) -> dict[str, Any]:
        """What another process gets: it makes the config itself, once it knows the user's own terms."""
        return {name: value for name, value in self.__dict__.items() if name != "config"}

    @property
    def quick(self) -> "RunSpec":
        """The same with few steps and small networks: a test of the machinery, not a result."""
        if self.method == EXPERT:
            return replace(self, episodes=5)
        settings = what_differs(self.task, self.method, {**dict(self.settings), **QUICK})
        return replace(self, settings=settings, steps=QUICK_STEPS, episodes=5)


@dataclass(frozen=True)
class Grid:
    """Every method on every task with every variant of the settings."""

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    variants: tuple[Settings, ...] = ({},)
    most_seeds: int | None = None
    """Of the study's seeds only so many, where runs are long."""

    def runs(self, seeds: int) -> Iterator[RunSpec]:
        for task, variant, method in product(self.tasks, self.variants, self.methods):
            if (task, method) in UNDEFINED:
                continue
            if method == EXPERT:
                yield RunSpec(task, method, 0)
                continue
            if method in UNTRAINED:
                yield RunSpec(task, method, 0, (), config_of(task, method, {}).steps)
                continue
            settings = {name: value for name, value in variant.items() if name != "steps"}
            for seed in range(min(seeds, self.most_seeds or seeds)):
                yield RunSpec(task, method, seed, what_differs(task, method, settings), variant.get("steps") or study_steps(task))


def chosen(runs: Sequence[RunSpec], only: Sequence[str]) -> list[RunSpec]:
    """Runs whose task is among the tasks named, whose method is among the methods named, and likewise their learner."""
    tasks = {run.task.lower() for run in runs}
    methods = {run.method.lower() for run in runs}
    learners = {run.learner for run in runs} - methods
    words = {task.name.lower() if (task := find_task(word)) and word.lower() not in tasks else word.lower() for word in only}
    if unknown := words - tasks - methods - learners:
        raise UserError(
            f"--only {', '.join(sorted(unknown))}: the study has the tasks {', '.join(sorted(tasks))}, "
            f"the methods {', '.join(sorted(methods))} and the learners {', '.join(sorted(learners))}."
        )

    def wanted(run: RunSpec) -> bool:
        kinds = ((run.task, tasks), (run.method, methods), (run.learner, learners))
        return all(name.lower() in words for name, known in kinds if words & known)

    return list(filter(wanted, runs))


def first_and_last(runs: Sequence[RunSpec]) -> list[RunSpec]:
    """The runs of the first task, with each method's first and last variant of the settings."""
    variants: dict[str, list[RunSpec]] = {}
    for run in runs:
        if run.task == runs[0].task:
            variants.setdefault(run.method, []).append(replace(run, seed=0))
    kept = {end for some in variants.values() for end in (some[0], some[-1])}
    return [run for run in runs if replace(run, seed=0) in kept]
