"""Methods as values: each is a tuple of reward terms, or a way to clone.

Two presets: ours, and the paper's table to the letter. A new adversarial method is a new line here.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from iddm.cloning import Cloning, InverseModel
from iddm.errors import UserError
from iddm.ppo import PPO as PPOSettings
from iddm.rewards import Adversarial, EnvironmentReward, MutualInformation, PolicyEntropy, Survival, Term, Tracking

Preset = Literal["tuned", "paper"]


@dataclass(frozen=True)
class Method:
    """What pays the agent, and the settings of the loop that this method wants to differ."""

    terms: tuple[Term, ...]
    about: str
    settings: dict[str, Any] = field(default_factory=dict)
    learner: str = "policy_gradient"
    """How the policy is learned (`iddm.loops.LEARNERS`)."""


# Ours: the recipe that holds on all tasks we tried (docs/methods/iddm.md).
TUNED: dict[str, Method] = {
    "iddm": Method(
        (Adversarial(), PolicyEntropy(0.01), MutualInformation(0.01)),
        "inverse dynamics disagreement minimisation, from states alone",
    ),
    "gaifo": Method((Adversarial(),), "matches (s, s'), from states alone"),
    "gaifo-s": Method((Adversarial(sees=("s",)),), "matches s, from states alone"),
    "gail": Method((Adversarial(sees=("s", "a")), PolicyEntropy(0.01)), "matches (s, a): needs the expert's actions"),
    "bc": Method(
        (),
        "behavioural cloning: needs the expert's actions",
        {"cloning": Cloning(), "checkpoint_every": 1},
        "cloning",
    ),
    "bco": Method(
        (),
        "behavioural cloning with actions that an inverse dynamics model infers, from states alone",
        {"cloning": Cloning(epochs=50), "inverse": InverseModel(), "checkpoint_every": 1},
        "cloning_from_observation",
    ),
    "deepmimic": Method((Tracking(),), "follows the joints of one demonstration in time, from states alone"),
    "ppo": Method((EnvironmentReward(),), "learns from the environment's own reward: makes experts"),
    "none": Method((Survival(),), "control: a constant reward, without demonstrations"),
    "random": Method((), "control: uniformly random actions, nothing is learned", {"steps": 32_768}, "random"),
}

# What a task needs to differ from this, whichever method imitates on it: its noise (docs/methods/iddm.md).
TASK_SETTINGS: dict[str, dict[str, Any]] = {
    "Hopper": {"log_std_init": -0.5},
    "Ant": {"log_std_init": -2.0},
}

# The paper's Table 3. What it does not name stays out: no gradient penalty, no annealing, unit initial noise, raw PMI.
_plain = Adversarial(gradient_penalty=0.0)
_paper_settings: dict[str, Any] = {"ppo": PPOSettings(anneal=False), "log_std_init": 0.0}
_paper_mi = MutualInformation(0.1, "mine", standardise=False, updates=50, first_updates=10_000, batch_size=512, hidden=(512, 512))
PAPER: dict[str, Method] = TUNED | {
    name: replace(TUNED[name], terms=terms, settings=_paper_settings)
    for name, terms in {
        "iddm": (_plain, PolicyEntropy(0.01), _paper_mi),
        "gaifo": (_plain,),
        "gaifo-s": (replace(_plain, sees=("s",)),),
        "gail": (replace(_plain, sees=("s", "a")), PolicyEntropy(0.01)),
        "deepmimic": (Tracking(),),
        "ppo": (EnvironmentReward(),),
        "none": (Survival(),),
    }.items()
}


def find_method(name: str, preset: str = "tuned") -> Method:
    """The method of this name."""
    presets = {"tuned": TUNED, "paper": PAPER}
    if preset not in presets:
        raise UserError(f"Preset '{preset}' is unknown; there are {', '.join(presets)}.")
    if name not in TUNED:
        raise UserError(f"Method '{name}' is unknown; there are {', '.join(TUNED)}.")
    return presets[preset][name]
