"""What is wrong with a run, in plain words: each check reads the run's record, names the evidence and the setting to change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from iddm.demos import Finding
from iddm.demos.oddities import ranges
from iddm.envs.spec import MakeEnv
from iddm.errors import UserError
from iddm.evaluation import sample_env
from iddm.training.run_dir import Run

RIGHT = 0.98
"""A discriminator that is right this often on both sides gives a reward that teaches nothing."""
NARROW = -2.0
"""Entropy of one action component, in nats, below which a Gaussian explores nothing: a deviation of 0.03 of [-1, 1]."""
TOO_MUCH_INFORMATION = 30.0
"""Nats. A rollout of some thousand rows cannot show more than about 10."""
LONGER, SHORTER = 1.5, 0.5
"""Lengths of the agent's episodes, in those of the demonstrations, that are found too long and too short."""
STILL = 0.1
"""Change of the state per step, in that of the demonstrations', that counts as standing still."""
CLOSE = 0.7
"""Closeness of an agent that is as good as the expert."""
BY_HEART = 0.3
"""How much less often a discriminator that knows its demonstrations by heart is right on held-out ones."""
FAR = 3.0
"""Deviations between the agent's mean state and the demonstrations'."""


@dataclass(frozen=True)
class Patient:
    """A run's record, and another run that learned without demonstrations where there is one."""

    run: Run
    control: Run | None = None
    env: str | MakeEnv | None = None
    env_kwargs: Mapping[str, Any] | None = None

    @cached_property
    def rows(self) -> list[dict[str, float]]:
        return self.run.metrics()

    def last(self, key: str) -> float:
        """Mean over the last fifth of the run, NaN where there is no such metric."""
        return mean_of_last(self.rows, key)

    def evaluated(self, key: str) -> list[float]:
        """The values of the evaluations during training."""
        return [row[key] for row in self.rows if row.get(key, np.nan) == row.get(key)]

    def has(self, key: str) -> bool:
        return bool(self.rows) and key in self.rows[-1]

    @cached_property
    def idle_return(self) -> float | None:
        return sample_env(self.run.stored_env.own(self.env, self.env_kwargs)).idle_return

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """Of the newest checkpoint."""
        checkpoint = self.run.checkpoints.load()
        return {} if checkpoint is None else checkpoint.arrays

    def array(self, ending: str) -> np.ndarray | None:
        return next((array for name, array in self.arrays.items() if name.endswith(ending)), None)


def mean_of_last(rows: list[dict[str, float]], key: str) -> float:
    values = np.array([row.get(key, np.nan) for row in rows[-max(len(rows) // 5, 1) :]])
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def unfinished(patient: Patient) -> str | None:
    config = patient.run.config
    steps = patient.rows[-1]["steps"] if patient.rows else 0
    if patient.run.finished or steps + config.schedule.steps_per_iteration > config.steps:
        return None
    return (
        f"The run stopped at step {steps:,.0f} of {config.steps:,}. If it said that something became non-finite, lower "
        f"that part's learning rate and start a new run; otherwise continue it with: iddm train --resume {patient.run.path}"
    )


def saturated_discriminator(patient: Patient) -> str | None:
    expert, agent = patient.last("adversarial/expert_accuracy"), patient.last("adversarial/agent_accuracy")
    if not min(expert, agent) > RIGHT:
        return None
    return (
        f"The discriminator is saturated: right on {expert:.1%} of the expert's and {agent:.1%} of the agent's transitions, so "
        "its reward hardly tells better actions from worse. Compare the demonstrations with the environment (iddm inspect FILE "
        "--env ENV): a column may give the agent away. Then raise --adversarial.gradient-penalty or lower --adversarial.updates."
    )


def memorised_demonstrations(patient: Patient) -> str | None:
    known, unseen = patient.last("adversarial/expert_accuracy"), patient.evaluated("held_out_accuracy")
    if not unseen or not known - unseen[-1] > BY_HEART:
        return None
    return (
        f"The discriminator knows the demonstrations by heart: it is right on {known:.1%} of those that it learns from, and on "
        f"{unseen[-1]:.1%} of held-out ones, so its reward says little about other states. Record more demonstrations; "
        "method bco, which has no discriminator, may do better."
    )


def blind_discriminator(patient: Patient) -> str | None:
    expert, agent = patient.last("adversarial/expert_accuracy"), patient.last("adversarial/agent_accuracy")
    if not (expert < 0.55 and agent < 0.55) or earns_like_the_expert(patient):
        return None
    return (
        f"The discriminator cannot tell the two apart (right on {expert:.1%} and {agent:.1%} of their transitions): "
        "either the agent is as good as the expert, or it does not learn; change --adversarial.learning-rate."
    )


def earns_like_the_expert(patient: Patient) -> bool:
    """Where states match, a discriminator cannot tell agent and expert apart: success, if closeness or returns say so too."""
    demos, close = patient.run.demos, patient.evaluated("closeness")
    if close and close[-1] > CLOSE:
        return True
    if demos is None or demos.returns is None:
        return False
    mean, spread = float(np.mean(demos.returns)), float(np.std(demos.returns))
    return patient.last("episode_return") > mean - max(0.1 * abs(mean), 2 * spread)


def constant_reward(patient: Patient) -> str | None:
    for name in ("adversarial", "environment"):
        std = patient.last(f"{name}/reward_std")
        if std < 1e-3:
            return (
                f"The reward is constant: {name} gives every step {patient.last(f'{name}/reward'):.3g} within ±{std:.1g}, "
                "so no action is better than another. "
                + (
                    "Raise --adversarial.gradient-penalty, or try --adversarial.reward-form logit, which does not flatten out."
                    if name == "adversarial"
                    else "The environment rewards too rarely for PPO: raise --steps or --num-envs."
                )
            )
    return None


def drowned_imitation(patient: Patient) -> str | None:
    imitation = patient.last("adversarial/reward_std")
    for name in ("mi", "entropy"):
        other = patient.last(f"{name}/reward_std")
        if imitation > 1e-3 and other > 2 * imitation:
            return (
                f"The term {name} drowns the imitation: its reward varies by {other:.2g} from step to step, the "
                f"discriminator's by {imitation:.2g}. Lower --{name}.weight."
            )
    return None


def diverging_information(patient: Patient) -> str | None:
    worst = max((row.get("mi/information", 0.0) for row in patient.rows), key=abs)
    if not abs(worst) > TOO_MUCH_INFORMATION:
        return None
    return (
        f"The mutual information diverges: its estimate was {worst:.3g} nats, beyond what a rollout can show. Lower "
        "--mi.learning-rate or --mi.updates, or take --mi.estimator js, the steadiest."
    )


def collapsed_entropy(patient: Patient) -> str | None:
    if not patient.has("ppo/entropy"):
        return None
    entropy, log_std = patient.last("ppo/entropy"), patient.array(".log_std")
    size = 1 if log_std is None else log_std.size
    if patient.run.finished:
        space = patient.run.policy.action_space
        size, discrete = space.size, space.discrete
    else:
        discrete = bool(patient.arrays) and log_std is None
    limit = 0.01 if discrete else NARROW * size
    if not entropy < limit:
        return None
    return (
        f"The policy's entropy has collapsed: {entropy:.2f} nats ({patient.rows[0]['ppo/entropy']:.2f} at first), so it does "
        "not explore. Raise --entropy.weight (methods iddm and gail) or --log-std-init, or lower --learning-rate."
    )


def never_finishes(patient: Patient) -> str | None:
    demos, length = patient.run.demos, patient.evaluated("evaluation_length")
    if demos is None or not length or 2 * demos.num_ended <= demos.num_episodes or not length[-1] > LONGER * demos.num_steps:
        return None
    return (
        f"The agent does not finish: its episodes last {length[-1]:,.0f} steps, the demonstrations' {demos.num_steps:,.0f}, and "
        "most of those end by themselves. A reward that is never negative rewards staying: use --adversarial.reward-form logit "
        "--adversarial.absorbing (the default where whole episodes are compared), or method bco."
    )


def ends_early(patient: Patient) -> str | None:
    demos, length = patient.run.demos, patient.evaluated("evaluation_length")
    if demos is None or not length or not length[-1] < SHORTER * demos.num_steps:
        return None
    return (
        f"The agent's episodes end early: after {length[-1]:,.0f} steps, the demonstrations' after {demos.num_steps:,.0f}. It "
        "falls, or ends them to escape a negative reward: train longer (--steps), or use --adversarial.reward-form softplus."
    )


def stands_still(patient: Patient) -> str | None:
    motion = patient.evaluated("evaluation_motion")
    if not motion or not motion[-1] < STILL:
        return None
    return (
        f"The agent hardly moves: its states change {motion[-1]:.0%} as much per step as the demonstrations'. It has found a way "
        "to stand still that is rewarded: use more demonstrations, --window 3, or off-policy more --random-steps."
    )


def swings(patient: Patient) -> str | None:
    close = patient.evaluated("closeness")
    late = close[len(close) // 2 :]
    if len(late) < 3 or not late[-1] < max(late) / 2:
        return None
    return (
        f"The policy swings late in training: its closeness was {max(late):.2f} and is {late[-1]:.2f} at the end. The closest "
        "one is kept (policy.safetensors; the last is last_policy.safetensors). Lower --learning-rate or "
        "--adversarial.learning-rate."
    )


def below_control(patient: Patient) -> str | None:
    earned = patient.last("episode_return")
    if patient.control is not None:
        other, who = mean_of_last(patient.control.metrics(), "episode_return"), f"the control run {patient.control.path}"
    elif patient.idle_return is not None:
        other, who = patient.idle_return, "doing nothing"
    else:
        return None
    if not earned < other:
        return None
    return (
        f"The agent earns {earned:,.1f} per episode, less than {who} ({other:,.1f}): the demonstrations have not helped so far. "
        "Train longer (--steps), and see the other findings."
    )


def far_from_demonstrations(patient: Patient) -> str | None:
    demos = patient.run.demos
    if demos is None or not patient.run.finished:
        return None
    if max(demos.columns, default=0) >= patient.run.policy.obs_size:
        raise UserError(f"{patient.run.path}: demos.json and the policy are not of the same run: their columns differ.")
    columns, their_mean, their_std = np.array(demos.columns), np.array(demos.column_mean), np.array(demos.column_std)
    mean, std = patient.run.policy.mean[columns], patient.run.policy.std[columns]
    distance = np.abs(mean - their_mean) / (std + their_std + 1e-6)
    odd = columns[distance > FAR].tolist()
    if not odd:
        return None
    worst = int(np.argmax(distance))
    return (
        f"The agent's states are far from the demonstrations' in {ranges(sorted(odd))}: column {columns[worst]} is "
        f"{mean[worst]:.3g} ± {std[worst]:.2g} here and {their_mean[worst]:.3g} ± {their_std[worst]:.2g} there. If the "
        "units or the environment differ, fix that (iddm inspect); if a column cannot be reached, leave it out with --columns."
    )


CHECKS: tuple[Callable[[Patient], str | None], ...] = (
    unfinished,
    far_from_demonstrations,
    saturated_discriminator,
    memorised_demonstrations,
    blind_discriminator,
    constant_reward,
    drowned_imitation,
    diverging_information,
    collapsed_entropy,
    never_finishes,
    ends_early,
    stands_still,
    swings,
    below_control,
)


def diagnose(
    path: str | Path,
    control: str | Path | None = None,
    env: str | MakeEnv | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> list[Finding]:
    """What each check finds; nothing for a run that looks sound. `env` says again what the run's files cannot."""
    patient = Patient(Run.open(path), None if control is None else Run.open(control), env, env_kwargs)
    if not patient.rows:
        return [
            Finding("warning", f"{path}: there are no metrics yet; the run stopped before its first iteration, or just began.")
        ]
    return [Finding("warning", sentence) for check in CHECKS if (sentence := check(patient)) is not None]
