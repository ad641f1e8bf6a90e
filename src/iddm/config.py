"""One definition of every setting: Python, command line and the saved config are made from these fields."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import tyro

from iddm.cloning import Cloning, InverseModel
from iddm.envs.tasks import find_task
from iddm.envs.vector import Backend
from iddm.errors import UserError
from iddm.experts import EXPERT_SETTINGS
from iddm.methods import TASK_SETTINGS, Preset, find_method
from iddm.ppo import PPO
from iddm.rewards import TERMS, Term


@dataclass(frozen=True)
class Config:
    """All that determines a run."""

    env: tyro.conf.Positional[str]
    """A task (HalfCheetah), a registered Gymnasium id (HalfCheetah-v5), or module:function."""
    method: str = "iddm"
    """iddm, gaifo, gaifo-s, gail, bc, bco, deepmimic, ppo; controls: none (paid for being alive) and random."""
    preset: Preset = "tuned"
    """Default settings: tuned (ours) or paper (the paper's table)."""
    demos: str | None = None
    """File of demonstrations; without it, the bundled ones of the task."""
    demo_episodes: int | None = None
    """Use only so many of the episodes."""
    demo_transitions: int | None = None
    """Use only so many of the transitions, chosen at random."""
    demo_columns: str | None = None
    """Columns of the demonstrations to use, as in 0:8,11 or by name; without it, all."""
    columns: str | None = None
    """Columns of the environment's state that the discriminator compares; the demonstrations may have only these."""
    stride: str = "1"
    """Environment steps between two rows of the demonstrations: 2 at half the rate, 1/2 at twice the rate, 5/3."""
    window: int = 2
    """States that the discriminator sees at once, a stride apart."""
    steps: int = 1_000_000
    """Environment steps to train for (bco: of all rounds together; bc takes none)."""
    seed: int = 0
    """Seed of everything random."""
    num_envs: int = 16
    """Environments stepped side by side."""
    rollout_length: int = 128
    """Steps of each environment an iteration."""
    backend: Backend = "auto"
    """What steps the environments: envpool, gymnasium, or envpool where it has the task (auto)."""
    max_episode_steps: int | None = None
    """Time limit of an episode; without it, the environment's own."""
    env_kwargs: str = "{}"
    """Options of the environment, as a JSON object."""
    hidden: tuple[int, ...] = (300, 400)
    """Width of the policy's and the value's hidden layers."""
    log_std_init: float = -1.0
    """Initial log standard deviation of a continuous policy (a bounded action is within [-1, 1])."""
    checkpoint_every: int = 32
    """Iterations between checkpoints; the environments start anew at each, interrupted or not."""
    tensorboard: bool = False
    """Also write TensorBoard event files (needs the extra `tensorboard`)."""
    ppo: tyro.conf.Suppress[PPO] = PPO()
    """How the policy learns from rewards; on the command line `--ppo.…`, where the method does."""
    cloning: tyro.conf.Suppress[Cloning | None] = None
    """How bc and bco learn a policy from actions."""
    inverse: tyro.conf.Suppress[InverseModel | None] = None
    """How bco infers actions."""
    terms: tyro.conf.Suppress[Mapping[str, Term]] = field(default_factory=dict)
    """The method's reward terms by name; on the command line each has its own flags."""

    def __post_init__(self) -> None:
        checks = {
            "steps": self.steps > 0,
            "num_envs": self.num_envs > 0,
            "max_episode_steps": self.max_episode_steps is None or self.max_episode_steps > 0,
            "rollout_length": self.rollout_length > 0,
            "checkpoint_every": self.checkpoint_every > 0,
            "ppo.epochs": self.ppo.epochs > 0,
            "ppo.batch_size": self.ppo.batch_size > 0,
            "ppo.discount": 0 <= self.ppo.discount < 1,
            "ppo.gae_decay": 0 <= self.ppo.gae_decay <= 1,
            "cloning.epochs": self.cloning is None or self.cloning.epochs > 0,
            "cloning.batch_size": self.cloning is None or self.cloning.batch_size > 0,
            "inverse.rounds": self.inverse is None or self.inverse.rounds > 0,
            "inverse.epochs": self.inverse is None or self.inverse.epochs > 0,
            "inverse.batch_size": self.inverse is None or self.inverse.batch_size > 0,
        }
        for name, good in checks.items():
            if not good:
                raise UserError(f"Setting {name} is out of range; see `iddm train --help`.")

    @property
    def parts(self) -> dict[str, Any]:
        """The settings that stand in groups, by the group's name: those that this method has."""
        groups = {"cloning": self.cloning, "inverse": self.inverse} if self.cloning else {"ppo": self.ppo}
        return {name: group for name, group in groups.items() if group is not None} | dict(self.terms)

    def with_parts(self, parts: Mapping[str, Any]) -> "Config":
        """The config with groups of settings changed."""
        own = {name: part for name, part in parts.items() if name not in self.terms}
        terms = {name: parts.get(name, term) for name, term in self.terms.items()}
        return dataclasses.replace(self, **own, terms=terms)

    @property
    def needs_demos(self) -> bool:
        return self.cloning is not None or any(term.needs_demos for term in self.terms.values())

    @property
    def needs_expert_actions(self) -> bool:
        clones_actions = self.cloning is not None and self.inverse is None
        return clones_actions or any(term.needs_expert_actions for term in self.terms.values())

    @property
    def length(self) -> tuple[int, str]:
        """How long the run is, and which figure of a row counts it."""
        if self.cloning is not None and self.inverse is None:
            return self.cloning.epochs, "epochs"
        return self.steps, "steps"

    @property
    def steps_per_iteration(self) -> int:
        return self.num_envs * self.rollout_length

    @property
    def num_iterations(self) -> int:
        return max(self.steps // self.steps_per_iteration, 1)

    def to_json(self) -> str:
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in GROUPS:
            group = data.pop(name)
            if group is not None:
                data[name] = dataclasses.asdict(group)
        data["terms"] = {name: dataclasses.asdict(term) for name, term in self.terms.items()}  # pyright: ignore
        return json.dumps(data, indent=2)

    @staticmethod
    def from_json(text: str, source: str) -> "Config":
        try:
            data = json.loads(text)
            data |= {name: GROUPS[name](**_tuples(data[name])) for name in GROUPS if name in data}
            data["terms"] = {name: TERMS[name](**_tuples(term)) for name, term in data["terms"].items()}
            return Config(**_tuples(data))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise UserError(f"{source}: not the config of a run ({reason}).") from error


GROUPS: dict[str, Any] = {"ppo": PPO, "cloning": Cloning, "inverse": InverseModel}


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


def default_config(env: str, method: str = "iddm", preset: str = "tuned") -> Config:
    """The settings that a method starts from on a task."""
    value, task = find_method(method, preset), find_task(env)
    known: Any = preset
    own = TASK_SETTINGS.get(task.name, {}) if task and preset == "tuned" and method != "ppo" else {}  # PPO: see `expert_config`
    return Config(env=env, method=method, preset=known, terms={t.name: t for t in value.terms}, **(value.settings | own))


def configure(config: Config, settings: dict[str, Any]) -> Config:
    """The config with some settings changed; those of PPO and of the terms are given as dictionaries."""
    parts = config.parts
    plain = {f.name for f in dataclasses.fields(config)} - {"terms", *GROUPS}
    for name, value in settings.items():
        if name not in parts and name not in plain:
            raise UserError(f"Setting '{name}' is unknown to {config.method}; there are {', '.join(sorted({*plain, *parts}))}.")
        if name in parts:
            try:
                parts[name] = dataclasses.replace(parts[name], **value)
            except TypeError as error:
                raise UserError(f"Setting '{name}': {error}.") from error
    changes = {name: value for name, value in settings.items() if name in plain}
    return dataclasses.replace(config.with_parts(parts), **changes)


def expert_config(env: str, preset: str = "tuned") -> Config:
    """The settings that `iddm expert` starts from: PPO's, and with our preset the task's own."""
    task = find_task(env)
    own = EXPERT_SETTINGS.get(task.name, {}) if task and preset == "tuned" else {}
    return configure(default_config(env, "ppo", preset), own)
