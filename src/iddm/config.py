"""One definition of every setting: Python, command line and the saved config are made from these fields."""

import dataclasses
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
import tyro

from iddm.envs.spec import MakeEnv, resolve, shape_of
from iddm.envs.vector import Backend
from iddm.errors import UserError
from iddm.learners import LEARNERS, PPO, Learner, Schedule
from iddm.methods import Preset, find_method, has_choice_of_learner
from iddm.rewards import TERMS, Term
from iddm.tasks import find_task
from iddm.utils.settings import COUNT, Range, check
from iddm.utils.text import printable


@dataclass(frozen=True)
class Config:
    """All that determines a run."""

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """A task (HalfCheetah), a registered Gymnasium id (HalfCheetah-v5), or module:function."""
    method: str = "iddm"
    """iddm, gaifo, gaifo-s, gail, gaifo-effort, iddm-inverse, iddm-knn, bc, bco, deepmimic, ppo; controls: none (a constant
    reward), random, and iddm-zero (GAIfO by another name)."""
    preset: Preset = "tuned"
    """Default settings: tuned (ours) or paper (the paper's table)."""
    demos: str | None = None
    """File of demonstrations, or expert:50 (expert:50:stochastic) for new ones of the bundled expert; without it, the bundled
    ones of the task."""
    demo_episodes: int | None = None
    """Use only N episodes."""
    demo_choice: Literal["first", "random"] = "first"
    """Which N episodes: the first, or drawn at random with the run's seed."""
    demo_transitions: int | None = None
    """Use only N transitions, chosen at random."""
    episode_column: str | None = None
    """Columns of a table (CSV, Parquet) that tell episodes apart, where their names do not say so: trial, or subject,trial."""
    scale: str | None = None
    """Units of the demonstrations' columns, if not radians and metres: 2:8=deg, or rootz=mm,rooty,bthigh=deg."""
    demo_columns: str | None = None
    """Columns of the demonstrations to use, as in 0:8,11 or by name; without it, all."""
    columns: str | None = None
    """Columns of the environment's state that the discriminator compares; the demonstrations may have only these."""
    stride: str = "1"
    """Environment steps between two rows of the demonstrations: 2 at half the rate, 1/2 at twice the rate, 5/3."""
    window: int = 2
    """Number of states that the discriminator compares at once, a stride apart."""
    init: str | None = None
    """Policy to start from: a policy file or the directory of a run (bco first, say), with networks of the same size."""
    steps: int = 1_000_000
    """Environment steps to train for (bco: over all rounds; bc takes none)."""
    seed: int = 0
    """Seed of everything random."""
    backend: Backend = "auto"
    """What steps the environments: envpool, gymnasium, or envpool where it has the task (auto)."""
    max_episode_steps: int | None = None
    """Time limit of an episode; without it, the environment's own."""
    evaluations: int = 10
    """Evaluations during training, of four episodes each in environments of their own; 0 for none."""
    hold_out: bool = True
    """Hold out a fifth of the demonstrations and keep the policy closest to it; else closeness is measured on all of them."""
    until: Literal["steps", "closeness"] = "steps"
    """Train for all steps, or until the policy is as close to held-out demonstrations as demonstrations are to each other."""
    env_kwargs: str = "{}"
    """Options of the environment, as a JSON object."""
    checkpoint_every: int | None = None
    """Iterations between checkpoints; without it, the learner's own. It does not change what is learned."""
    tensorboard: bool = False
    """Also write TensorBoard event files (needs the extra `tensorboard`)."""
    learner: tyro.conf.Suppress[Learner] = PPO()
    """How the policy is learned; on the command line its settings are flags of their own."""
    terms: tyro.conf.Suppress[Mapping[str, Term]] = field(default_factory=dict)
    """The terms of the reward by name; on the command line each has flags with its name in front."""

    def __post_init__(self) -> None:
        check(self, steps=COUNT, seed=Range(0, 2**32 - 1, whole=True), checkpoint_every=COUNT, max_episode_steps=COUNT)
        check(self, demo_episodes=COUNT, demo_transitions=COUNT, window=Range(1, 10_000, whole=True))
        check(self, evaluations=Range(0, 100_000, whole=True))

    @property
    def needs_demos(self) -> bool:
        return self.learner.needs_demos or any(term.needs_demos for term in self.terms.values())

    @property
    def needs_expert_actions(self) -> bool:
        return self.learner.needs_expert_actions or any(term.needs_expert_actions for term in self.terms.values())

    @property
    def needs_whole_episodes(self) -> bool:
        return any(term.needs_whole_episodes for term in self.terms.values())

    @property
    def schedule(self) -> Schedule:
        return self.learner.schedule(self.steps)

    @property
    def length(self) -> tuple[int, str]:
        """How long the run is, and which metric counts it."""
        epochs = self.schedule.epochs
        return (self.steps, "steps") if epochs is None else (epochs, "epochs")

    def to_json(self) -> str:
        plain = {name: getattr(self, name) for name in PLAIN}
        learner = {"name": self.learner.name} | _as_dict(self.learner)
        return json.dumps(plain | {"learner": learner, "terms": {n: _as_dict(t) for n, t in self.terms.items()}}, indent=2)

    @staticmethod
    def from_json(text: str, source: str) -> "Config":
        """The config in this text, every field present and of its type; anything else is one sentence that names the source."""
        try:
            data = msgspec.json.decode(text, type=dict[str, Any])
            learner = dict(data["learner"])
            data["learner"] = _from_dict(learner, _known(learner.pop("name"), LEARNERS, "learner"))
            data["terms"] = {name: _from_dict(term, _known(name, TERMS, "term")) for name, term in data["terms"].items()}
            return _from_dict(data, Config)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            raise UserError(f"{source}: not the config of a run ({_what(error)}).") from error
        except UserError as error:
            raise UserError(f"{source}: {error}") from error


PLAIN = [f.name for f in dataclasses.fields(Config) if f.name not in ("learner", "terms")]
"""The fields that neither the learner nor a term owns."""


def _as_dict(settings: Any) -> dict[str, Any]:
    return dataclasses.asdict(settings)


def _from_dict(data: dict[str, Any], kind: type[Any]) -> Any:
    """A dataclass from a dictionary that has just its fields, each of its type."""
    names = {f.name for f in dataclasses.fields(kind)}
    if set(data) != names:
        odd = min(names ^ set(data))
        raise ValueError(f"'{odd}' is {'missing' if odd in names else 'unknown'}")
    return msgspec.convert(data, kind)


def _known(name: Any, kinds: Mapping[str, Any], what: str) -> Any:
    if name not in kinds:
        raise ValueError(
            f"the {what} '{printable(str(name))}' is none of iddm's; where it is yours, give its code with --import FILE.py"
        )
    return kinds[name]


def _what(error: Exception) -> str:
    return f"'{error.args[0]}' is missing or unknown" if isinstance(error, KeyError) else str(error).splitlines()[0]


def named_learner(words: Iterable[str]) -> str | None:
    """The learner that a user means whose settings have a learner's name in front."""
    return next((word for word in words if word in ("ppo", "sac")), None)


def usual_learner(
    env: str | MakeEnv, method: str = "iddm", preset: str = "tuned", env_kwargs: Mapping[str, Any] | None = None
) -> str:
    """What a user gets who names no learner: off-policy where method and actions allow it, else the method's own.

    It looks at the environment. Experts are PPO's unless one asks for another.
    """
    own = find_method(method, preset).learner.name
    if method == "ppo" or not has_choice_of_learner(method, preset):
        return own
    try:
        return "sac" if shape_of(resolve(env, kwargs=dict(env_kwargs or {}))).action_space.bounded else own
    except UserError:
        return own  # what is wrong with the environment is said where it is used


def default_config(env: str, method: str = "iddm", preset: str = "tuned", learner: str | None = None) -> Config:
    """The settings that a method starts from on a task, with its own learner or with the one named ("sac")."""
    value, task = find_method(method, preset, learner), find_task(env)
    known: Any = preset
    config = Config(
        env=env,
        method=method,
        preset=known,
        steps=value.steps,
        hold_out=preset != "paper",
        learner=value.learner,
        terms={term.name: term for term in value.terms},
    )
    imitates = method != "ppo"  # its task's settings are the expert's: see `expert_config`
    own = dict(task.imitation) if task and preset == "tuned" and imitates else {}
    return configure(config, {name: value for name, value in own.items() if hasattr(config.learner, name)})


def expert_config(env: str, preset: str = "tuned", learner: str | None = None) -> Config:
    """The settings that `iddm expert` starts from: the learner's, and with our preset those of the task's own expert."""
    task = find_task(env)
    own = dict(task.expert) if task is not None and preset == "tuned" else {}
    usual = own.pop("learner", "ppo")
    config = default_config(env, "ppo", preset, learner or usual)
    return configure(config, own if config.learner.name == usual else {})


def configure(config: Config, settings: Mapping[str, Any]) -> Config:
    """The config with some settings changed: fields of `Config` and of its learner, and groups as dictionaries.

    A group is a term ("mi"), the learner by its name ("ppo"), or a part of the learner ("inverse").
    """
    terms, learner, plain = dict(config.terms), {}, {}
    own = [f.name for f in dataclasses.fields(config.learner)]  # pyright: ignore[reportArgumentType]
    for name, value in settings.items():
        if name in terms:
            terms[name] = _replaced(terms[name], value, name)
        elif name in PLAIN:
            plain[name] = value
        elif name in own:
            learner[name] = value
        elif name == config.learner.name:
            learner |= value
        else:
            known = ", ".join(sorted({*PLAIN, *own, *terms}))
            raise UserError(f"Setting '{name}' is unknown to {config.method}; there are {known}.")
    for name, value in learner.items():
        if isinstance(value, Mapping):
            learner[name] = _replaced(getattr(config.learner, name), value, name)
    return _replaced(config, plain | {"learner": _replaced(config.learner, learner, config.learner.name), "terms": terms}, "")


def _replaced(settings: Any, changes: Mapping[str, Any], name: str) -> Any:
    try:
        return dataclasses.replace(settings, **changes)
    except TypeError as error:
        raise UserError(f"Setting '{name}': {error}.") from error


def flat_settings(config: Config) -> dict[str, Any]:
    """Every setting by the name of its flag, without the environment, the method and the learner's name."""
    plain = {name: getattr(config, name) for name in PLAIN if name not in ("env", "method")}
    terms = {f"{name}.{key}": value for name, term in config.terms.items() for key, value in _as_dict(term).items()}
    own: dict[str, Any] = {}
    for name, value in _as_dict(config.learner).items():
        own |= {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
    return plain | own | terms


def changed_settings(config: Config) -> dict[str, Any]:
    """The settings that differ from those that the method starts from on this task, by the names of their flags."""
    preset, learner = config.preset, config.learner.name
    is_expert = config.method == "ppo"
    start = (
        expert_config(config.env, preset, learner) if is_expert else default_config(config.env, config.method, preset, learner)
    )
    before = flat_settings(start)
    return {name: value for name, value in flat_settings(config).items() if name not in before or before[name] != value}


def as_flag(name: str, value: Any) -> str:
    """A setting as it is typed, by the name of its flag."""
    name = name.replace("_", "-")
    if isinstance(value, bool):
        group, _, last = name.rpartition(".")
        return f"--{name}" if value else "--" + ".".join(filter(None, [group, f"no-{last}"]))
    return f"--{name} {' '.join(map(str, value)) if isinstance(value, tuple) else shlex.quote(str(value))}"


def command_of(config: Config) -> str:
    """The command that makes a run of this config."""
    is_expert = config.method == "ppo"
    flags = {} if is_expert else {"method": config.method}
    flags |= {"learner": config.learner.name} if has_choice_of_learner(config.method, config.preset) else {}
    flags |= {} if config.preset == "tuned" else {"preset": config.preset}
    flags |= {"steps": config.steps, "seed": config.seed} | changed_settings(config)
    command = "iddm expert" if is_expert else "iddm train"
    return " ".join([command, shlex.quote(config.env), *(as_flag(name, value) for name, value in flags.items())])


def setting(config: Config, name: str) -> Any:
    """The value of a setting by the name of its flag: "steps", "hidden" of the learner, "entropy.weight" of a term."""
    group, _, last = name.rpartition(".")
    if name == "learner":
        return config.learner.name
    if not group:
        return getattr(config if last in PLAIN else config.learner, last)
    if group in config.terms:
        return getattr(config.terms[group], last)
    return getattr(config.learner if group == config.learner.name else getattr(config.learner, group), last)
