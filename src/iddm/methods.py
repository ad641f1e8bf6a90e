"""Methods as values: what rewards the agent (terms) and how it learns (a learner).

Two presets: ours, and the paper's table to the letter. A new adversarial method is a new line here.
"""

from dataclasses import dataclass, is_dataclass, replace
from typing import Literal

from iddm.errors import UserError
from iddm.learners import BCO, LEARNERS, PPO, SAC, Cloning, Learner, RandomActions
from iddm.learners.inverse_models import InverseModels
from iddm.rewards import (
    TERMS,
    Adversarial,
    Effort,
    EnvironmentReward,
    InverseEntropy,
    MutualInformation,
    PolicyEntropy,
    StateEntropy,
    Survival,
    Term,
    Tracking,
)

Preset = Literal["tuned", "paper"]


@dataclass(frozen=True)
class Method:
    """What rewards the agent, and how it learns."""

    terms: tuple[Term, ...]
    learner: Learner = PPO()
    steps: int = 1_000_000
    """Environment steps, unless the user says otherwise."""


# IDDM without its own terms, a control: but for its random numbers it is GAIfO, so what parts the two is chance.
_NO_WEIGHT = (PolicyEntropy(0.0), MutualInformation(0.0, updates=1, first_updates=1, batch_size=64, hidden=(16,)))

# Ours: the recipe that holds on all tasks we tried (docs/methods/iddm.md).
TUNED: dict[str, Method] = {
    "iddm": Method((Adversarial(), PolicyEntropy(0.01), MutualInformation(0.01))),
    "gaifo": Method((Adversarial(),)),
    "gaifo-s": Method((Adversarial(sees=("s",)),)),
    "gail": Method((Adversarial(sees=("s", "a")), PolicyEntropy(0.01))),
    "gaifo-effort": Method((Adversarial(), Effort())),
    "iddm-inverse": Method((Adversarial(), InverseEntropy())),
    "iddm-knn": Method((Adversarial(), PolicyEntropy(0.01), StateEntropy())),
    "iddm-zero": Method((Adversarial(), *_NO_WEIGHT)),
    "bc": Method((), Cloning()),
    "bco": Method((), BCO()),
    "deepmimic": Method((Tracking(),)),
    "ppo": Method((EnvironmentReward(),)),
    "none": Method((Survival(),)),
    "random": Method((), RandomActions(), steps=32_768),
}

# The same methods off-policy: small networks that learn a little at every gradient step (docs/methods/sac.md).
_every_step = Adversarial(updates=1, batch_size=128, gradient_penalty=3.0, hidden=(64, 64))
_mi_every_step = MutualInformation(0.01, updates=1, first_updates=1, batch_size=128, hidden=(64, 64))
_inverse_every_step = InverseEntropy(updates=1, batch_size=128, hidden=(64, 64))
OFF_POLICY: dict[str, Method] = {
    "iddm": Method((_every_step, PolicyEntropy(0.01), _mi_every_step), SAC(), steps=100_000),
    "gaifo": Method((_every_step,), SAC(), steps=100_000),
    "gaifo-s": Method((replace(_every_step, sees=("s",)),), SAC(), steps=100_000),
    "gail": Method((replace(_every_step, sees=("s", "a")), PolicyEntropy(0.01)), SAC(), steps=100_000),
    "gaifo-effort": Method((_every_step, Effort()), SAC(), steps=100_000),
    "iddm-inverse": Method((_every_step, _inverse_every_step), SAC(), steps=100_000),
    "iddm-zero": Method((*_NO_WEIGHT, _every_step), SAC(), steps=100_000),  # in another place, D draws other random numbers
    "ppo": Method((EnvironmentReward(),), SAC(inverse=InverseModels(share=0.0)), steps=300_000),
    "none": Method((Survival(),), SAC(inverse=InverseModels(share=0.0)), steps=100_000),
}

# The paper's Table 3. What it does not name stays out: no gradient penalty, no annealing, unit initial noise, raw PMI. Where it
# leaves a choice that cannot stay open, docs/methods/iddm.md lists ours.
_plain = Adversarial(gradient_penalty=0.0, reward_form="softplus")
_ppo = PPO(anneal=False, log_std_init=0.0)
_mi = MutualInformation(
    0.1,
    "mine",
    standardise=False,
    updates=50,
    first_updates=10_000,
    first_iterations=25,  # 51,200 rows: on one rollout of 2,048 the critic learns the rows by heart
    batch_size=512,
    hidden=(512, 512),
)
PAPER: dict[str, Method] = TUNED | {
    "iddm": Method((_plain, PolicyEntropy(0.01), _mi), _ppo),
    "gaifo": Method((_plain,), _ppo),
    "gaifo-s": Method((replace(_plain, sees=("s",)),), _ppo),
    "gail": Method((replace(_plain, sees=("s", "a")), PolicyEntropy(0.01)), _ppo),
    "gaifo-effort": Method((_plain, Effort()), _ppo),
    "iddm-inverse": Method((_plain, InverseEntropy()), _ppo),
    "iddm-knn": Method((_plain, PolicyEntropy(0.01), StateEntropy()), _ppo),
    "iddm-zero": Method((_plain, *_NO_WEIGHT), _ppo),
    "bc": Method((), Cloning(log_std_init=0.0)),
    "bco": Method((), BCO(log_std_init=0.0)),
    "deepmimic": Method((Tracking(),), _ppo),
    "ppo": Method((EnvironmentReward(),), _ppo),
    "none": Method((Survival(),), _ppo),
}


OURS = frozenset(TUNED), frozenset(TERMS), frozenset(LEARNERS)
"""The names that a method of a user cannot take: of methods, terms and learners."""


def register_method(name: str, method: Method, off_policy: Method | None = None) -> None:
    """Add a method of your own, with its terms and its learner: `--method NAME`, its flags, and `iddm.train(method=NAME)`.

    `off_policy` is what `--learner sac` learns with. A file that calls this is given to commands with `--import FILE.py`.
    """
    methods, terms, learners = OURS
    for value in filter(None, (method, off_policy)):
        for kind, known, shipped in (
            *((type(term), TERMS, terms) for term in value.terms),
            (type(value.learner), LEARNERS, learners),
        ):
            if not (is_dataclass(kind) and isinstance(getattr(kind, "name", None), str)):
                raise UserError(f"Method '{name}': {kind.__name__} must be a frozen dataclass with a name of its own.")
            if kind.name in shipped and known[kind.name] is not kind:
                raise UserError(f"Method '{name}': iddm has its own '{kind.name}'; choose another name for {kind.__name__}.")
            known[kind.name] = kind  # pyright: ignore[reportArgumentType]
    if name in methods:
        raise UserError(f"Method '{name}' is one of iddm's own; choose another name.")
    TUNED[name] = PAPER[name] = method
    if off_policy is not None:
        OFF_POLICY[name] = off_policy


def has_choice_of_learner(name: str, preset: str = "tuned") -> bool:
    """Whether a method can be learned on-policy and off-policy."""
    return preset == "tuned" and name in OFF_POLICY


def find_method(name: str, preset: str = "tuned", learner: str | None = None) -> Method:
    """The method of this name, with its own learner or with the one named."""
    presets = {"tuned": TUNED, "paper": PAPER}
    if preset not in presets:
        raise UserError(f"Preset '{preset}' is unknown; there are {', '.join(presets)}.")
    if name not in TUNED:
        raise UserError(f"Method '{name}' is unknown; there are {', '.join(TUNED)}. One of your own comes with --import FILE.py.")
    method = presets[preset][name]
    if learner is None or learner == method.learner.name:
        return method
    choice = has_choice_of_learner(name, preset)
    if learner != "sac" or not choice:
        learners = f"{method.learner.name} or sac" if choice else method.learner.name
        raise UserError(f"Method '{name}' with preset '{preset}' learns with {learners}, not with '{learner}'.")
    return OFF_POLICY[name]
