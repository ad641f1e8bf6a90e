"""The paper's studies as data: methods × tasks × settings × seeds. A new study is a new line in `STUDIES`."""

import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from iddm.bundled import bundled_fingerprint
from iddm.config import Config, configure, default_config
from iddm.envs.tasks import find_task
from iddm.errors import UserError

Settings = Mapping[str, Any]
"""Settings by the names of their flags: {"steps": 1_000_000, "entropy.weight": 0.01}."""

EXPERT = "expert"
"""Not a method to train: the bundled expert, evaluated."""

STEPS = {
    "CartPole": 100_000,
    "InvertedPendulum": 200_000,
    "InvertedDoublePendulum": 400_000,
    "Hopper": 1_000_000,
    "HalfCheetah": 1_000_000,
    "Ant": 1_000_000,
}
"""Environment steps of every method on a task."""

UNTRAINED = ("random", EXPERT)
"""Nothing is learned, so there is one run whatever the seeds: the same actions each time."""

UNDEFINED = {("CartPole", "deepmimic")}
"""No joints to track, as in the paper."""

EPISODES = 50
"""Episodes of an evaluation (the paper's 50 trials)."""


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
        return " ".join(_flag(name.replace("_", "-"), value) for name, value in self.settings)

    @property
    def command(self) -> str:
        """What makes this run by hand."""
        if self.method == EXPERT:
            return f"iddm eval {self.task} --episodes {self.episodes}"
        parts = [f"iddm train {self.task} --method {self.method} --steps {self.steps} --seed {self.seed}", self.flags]
        return " ".join(filter(None, parts))

    @property
    def name(self) -> str:
        """Of the run's directory; another expert in the package is another run."""
        source = bundled_fingerprint(self.task) if self.method == EXPERT or self.config.needs_demos else ""
        distinct = hashlib.sha256(f"{self.command} {self.episodes} {source}".encode()).hexdigest()[:8]
        return f"{self.task}-{self.method}-seed{self.seed}-{distinct}"

    @property
    def config(self) -> Config:
        return configure(
            default_config(self.task, self.method), _nested({"steps": self.steps, "seed": self.seed, **dict(self.settings)})
        )


def _flag(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"--{name}" if value else "--" + ".".join([*name.split(".")[:-1], f"no-{name.split('.')[-1]}"])
    return f"--{name} {' '.join(map(str, value)) if isinstance(value, tuple) else shlex.quote(str(value))}"


def _nested(settings: Settings) -> dict[str, Any]:
    """{"entropy.weight": 1} as {"entropy": {"weight": 1}}."""
    nested: dict[str, Any] = {}
    for name, value in settings.items():
        group, _, field = name.rpartition(".")
        if group:
            nested.setdefault(group, {})[field] = value
        else:
            nested[name] = value
    return nested


def setting(config: Config, name: str) -> Any:
    """The value of a setting by its flag's name."""
    group, _, field = name.rpartition(".")
    return getattr(config.parts[group] if group else config, field)


def _what_differs(settings: Settings, default: Config) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, value) for name, value in settings.items() if setting(default, name) != value))


@dataclass(frozen=True)
class Grid:
    """Every method on every task with every variant of the settings."""

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    variants: tuple[Settings, ...] = ({},)

    def runs(self, seeds: int) -> Iterator[RunSpec]:
        for task, variant, method in product(self.tasks, self.variants, self.methods):
            if (task, method) in UNDEFINED:
                continue
            if method == EXPERT:
                yield RunSpec(task, method, 0)
                continue
            default = default_config(task, method)
            settings = dict(variant)
            steps = settings.pop("steps", STEPS[task])
            if method in UNTRAINED:
                yield RunSpec(task, method, 0, (), default.steps)
                continue
            for seed in range(seeds):
                yield RunSpec(task, method, seed, _what_differs(settings, default), steps)


@dataclass(frozen=True)
class Study:
    """A question of the paper and the runs that answer it."""

    name: str
    title: str
    grids: tuple[Grid, ...]
    seeds: int = 5

    def runs(self, seeds: int | None = None, only: Sequence[str] = (), quick: bool = False) -> list[RunSpec]:
        """The study's runs, seed by seed, so that a study cut short has whole seeds; each run once."""
        if seeds is not None and seeds < 1:
            raise UserError("A study needs at least one seed.")
        found = [run for grid in self.grids for run in grid.runs(1 if quick and seeds is None else seeds or self.seeds)]
        found = _chosen(found, only)
        if quick:
            first = list(dict.fromkeys(run.task for run in found))[:2]
            found = [_quick(run) for run in found if run.task in first]
        return sorted(dict.fromkeys(found), key=lambda run: run.seed)


def _chosen(runs: list[RunSpec], only: Sequence[str]) -> list[RunSpec]:
    """Runs whose task is among the tasks named and whose method is among the methods named."""
    tasks = {run.task.lower() for run in runs}
    methods = {run.method.lower() for run in runs}
    words = {find.name.lower() if (find := find_task(word)) else word.lower() for word in only}
    if unknown := words - tasks - methods:
        raise UserError(
            f"--only {', '.join(sorted(unknown))}: the study has the tasks {', '.join(sorted(tasks))} "
            f"and the methods {', '.join(sorted(methods))}."
        )
    return [
        run
        for run in runs
        if (not words & tasks or run.task.lower() in words) and (not words & methods or run.method.lower() in words)
    ]


def _quick(run: RunSpec) -> RunSpec:
    """A look at the machinery, not at results."""
    if run.method == EXPERT:
        return replace(run, episodes=5)
    settings = {**dict(run.settings), "hidden": (32, 32)}
    return replace(run, settings=tuple(sorted(settings.items())), steps=8_192, episodes=5)


SIX = ("CartPole", "InvertedPendulum", "InvertedDoublePendulum", "Hopper", "HalfCheetah", "Ant")
CONTROLS = ("random", "none")
DEMOS = ("gail", "gaifo", "iddm")
TABLE_2 = ("bc", "bco", "deepmimic", "gaifo-s", "gaifo", "iddm", "gail", EXPERT)
LIGHT: Settings = {"steps": 500_000, "hidden": (64, 64), "adversarial.hidden": (128, 128)}
"""For studies of many runs on the larger tasks: half the steps with the networks of `make run`, about a sixth of the time."""
LAMBDA_P = (0.0, 0.0005, 0.001, 0.01)
LAMBDA_S = (0.0, 0.001, 0.01, 0.1)


def weights(lambda_p: float, lambda_s: float) -> Settings:
    return {"entropy.weight": lambda_p, "mi.weight": lambda_s, **LIGHT}


def _amounts(tasks: tuple[str, ...], settings: Settings) -> Grid:
    amounts = (*({"demo_episodes": count} for count in (1, 4, 7)), {})  # {}: all ten
    return Grid(tasks, DEMOS, tuple({**amount, **settings} for amount in amounts))


def _pairs(task: str, count: int) -> Grid:
    return Grid((task,), DEMOS, ({"demo_transitions": count},))


_every_method = (Grid(SIX, (*CONTROLS, *TABLE_2)),)
STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study("table2", "Every method on every task (the paper's Table 2)", _every_method),
        Study("curves", "Learning curves of the same runs (the paper's Fig. 2)", _every_method),
        Study(
            "demos",
            "How many demonstrations are needed (the paper's Fig. 3)",
            (
                Grid(SIX, UNTRAINED),
                _pairs("CartPole", 32),
                _pairs("InvertedPendulum", 128),
                _pairs("InvertedDoublePendulum", 256),
                _amounts(SIX[:3], {}),
                _amounts(SIX[3:], LIGHT),
            ),
        ),
        Study(
            "lambda_p",
            "Weight of the policy's entropy λ_p, with λ_s = 0.01 (the paper's Table 6)",
            (Grid(("HalfCheetah",), ("iddm",), tuple(weights(p, 0.01) for p in LAMBDA_P)),),
        ),
        Study(
            "lambda_s",
            "Weight of the mutual information λ_s, with λ_p = 0.001 (the paper's Table 7)",
            (Grid(("HalfCheetah",), ("iddm",), tuple(weights(0.001, s) for s in LAMBDA_S)),),
        ),
        Study(
            "grid",
            "Both weights together (the paper's Fig. 6)",
            (Grid(("HalfCheetah",), ("iddm",), tuple(weights(p, s) for p in LAMBDA_P for s in LAMBDA_S)),),
            seeds=1,
        ),
        Study(
            "ant",
            "Ant with three times the steps (not in the paper)",
            (Grid(("Ant",), ("random", "gaifo", "iddm", EXPERT), ({"steps": 3_000_000},)),),
            seeds=1,
        ),
        Study(
            "absorbing",
            "Absorbing states, which take the survival bonus out of the reward (not in the paper)",
            (Grid(("Hopper", "HalfCheetah"), ("iddm", "gaifo"), ({}, {"adversarial.absorbing": True})),),
            seeds=3,
        ),
    )
}
