"""From the demonstrations that a config names to the arrays that the learner samples, checked against the environment."""

import logging
from dataclasses import dataclass, replace
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from iddm.bundled import bundled_demos, bundled_expert, with_expert_actions
from iddm.closeness import Yardstick, split
from iddm.config import Config
from iddm.demos import Demos, load_demos, require_compatible
from iddm.demos.align import View, at_the_environments_rate, choose_columns, make_view, parse_stride
from iddm.demos.units import scale_columns
from iddm.envs.redundant import motors_of, shared_evenly
from iddm.envs.spec import EnvShape, parse_kwargs
from iddm.errors import UserError
from iddm.evaluation import record_demos
from iddm.rewards.expert import Expert, ExpertEnds, ExpertView
from iddm.tasks import REDUNDANT, find_task

LOG = logging.getLogger("iddm")
CLEARLY_SHORTER = 0.9

EXPERT = "expert:"
"""Before the number of episodes that the bundled expert is to make."""


@dataclass(frozen=True)
class DemosRecord:
    """What a run says of its demonstrations (demos.json): where they came from, and what it is compared with."""

    source: str
    """A path, "bundled: TASK", or "given in Python"."""
    sha256: str
    num_episodes: int
    num_transitions: int
    returns: tuple[float, ...] | None
    """The environment's own return of each episode, where it is known."""
    columns: tuple[int, ...]
    """Columns of the environment's observation that are compared."""
    column_mean: tuple[float, ...]
    column_std: tuple[float, ...]
    num_ended: int = 0
    """Episodes that ended by themselves."""
    num_steps: float = 0.0
    """Environment steps of an episode, on average."""

    def __post_init__(self) -> None:
        if not len(self.columns) == len(self.column_mean) == len(self.column_std) or min(self.columns, default=-1) < 0:
            raise ValueError("its columns do not fit their means and deviations")
        if self.returns is not None and not self.returns:
            raise ValueError("it has no returns")

    @property
    def bundled_task(self) -> str | None:
        """The task whose bundled expert the run imitates; None for other demonstrations."""
        kind, _, task = self.source.partition(": ")
        return task if kind == "bundled" and find_task(task) else None


@dataclass(frozen=True)
class Demonstrations:
    """The demonstrations of a run, ready to learn from."""

    config: Config
    """With what its terms leave to the demonstrations."""
    demos: Demos
    """As they were given, with the columns that are compared."""
    expert: Expert
    record: DemosRecord
    agent_lags: tuple[int, ...]
    """How many steps before a successor the states lie that a discriminator compares with it."""
    yardstick: Yardstick | None
    """What closeness is measured with."""
    held_out: Expert | None = None
    """The part of the demonstrations that is not learned from."""


def prepare_demonstrations(config: Config, shape: EnvShape, given: Demos | None) -> Demonstrations:
    """Find, cut, align and check the demonstrations; everything that can be wrong is said here."""
    source, demos = find_demos(config, given)
    demos = demos if config.needs_expert_actions else demos.states_only()
    digest, returns = demos.digest(), demos.episode_returns
    config = complete(config, demos, shape)
    if config.needs_expert_actions and demos.actions is None and source.startswith("bundled: "):
        demos = with_expert_actions(demos, config.env, motors_of(config.env, parse_kwargs(config.env_kwargs)))
    compared, demos, view = align_demos(demos, shape, config)
    demos = with_ends(demos, shape, view)
    learned, held_out = parts_of(demos, config)

    def arrays(part: Demos) -> Expert:
        found = expert_arrays(part, shape, config, view)
        if view.plain and config.demo_transitions is None and shape.max_episode_steps is not None:
            found = found._replace(ends=expert_ends(part, demos, shape.max_episode_steps))
        return found

    expert, unseen = arrays(learned), None if held_out is None else arrays(held_out)
    rows = np.concatenate(demos.observations)
    record = DemosRecord(
        source=source,
        sha256=digest,
        num_episodes=demos.num_episodes,
        num_transitions=demos.num_transitions,
        returns=None if returns is None else tuple(returns.tolist()),
        columns=tuple(range(shape.obs_size)) if view.columns is None else view.columns,
        column_mean=tuple(rows.mean(axis=0).tolist()),
        column_std=tuple(rows.std(axis=0).tolist()),
        num_ended=0 if demos.terminated is None else int(demos.terminated.sum()),
        num_steps=float(demos.lengths.mean() * view.stride),
    )
    return Demonstrations(config, compared, expert, record, view.agent_lags, make_yardstick(config, demos, view), unseen)


def make_yardstick(config: Config, demos: Demos, view: View) -> Yardstick | None:
    return Yardstick.of(demos, view, whole=config.demo_transitions is None)


def find_yardstick(config: Config, shape: EnvShape, sha256: str) -> Yardstick | None:
    """What the closeness of a run's policies is measured with; None where its demonstrations are no longer there, or too few."""
    try:
        _, demos = find_demos(config)
        if (demos if config.needs_expert_actions else demos.states_only()).digest() != sha256:
            return None
        _, demos, view = align_demos(demos, shape, config)
    except UserError:
        return None
    return make_yardstick(config, with_ends(demos, shape, view), view)


def parts_of(demos: Demos, config: Config) -> tuple[Demos, Demos | None]:
    """What is learned from, and the part that is held out to measure closeness."""
    parts = split(demos)
    wanted = config.hold_out and config.evaluations and config.schedule.rollout_length and config.demo_transitions is None
    if not wanted or parts is None or (parts.by_blocks and config.needs_whole_episodes):
        return demos, None
    held = f"{parts.held_out.num_transitions} of {demos.num_transitions} transitions"
    how = f"blocks of each episode, for there are only {demos.num_episodes}" if parts.by_blocks else "whole episodes"
    LOG.info(f"Held out to measure closeness: {held} ({how}; --no-hold-out learns from all).")
    return parts.rest, parts.held_out


def complete(config: Config, demos: Demos, shape: EnvShape) -> Config:
    """The config with what the user does not say read off the demonstrations: whether episodes are to end by themselves."""
    limit, stride = shape.max_episode_steps, parse_stride(config.stride)
    ended = np.zeros(1, bool) if limit is None else ended_by_themselves(demos, limit, stride)
    end_early = bool(ended.mean() > 0.5) and config.demo_transitions is None
    whole = config.columns is None and config.window == 2 and stride == 1
    terms = {name: term.for_demos(end_early, whole) for name, term in config.terms.items()}
    learner = config.learner.for_demos(end_early)
    if end_early and terms != dict(config.terms):
        assumed = " (by their length; the file does not say)" if demos.terminated is None else ""
        rates = "; learning rates stay as they are (--anneal)" if learner != config.learner else ""
        LOG.info(
            f"{ended.sum()} of {len(ended)} demonstrated episodes end by themselves{assumed}: the reward is the discriminator's "
            f"logit, with absorbing states where ends are compared (--adversarial.reward-form, --adversarial.absorbing){rates}."
        )
    return replace(config, terms=terms, learner=learner)


def with_ends(demos: Demos, shape: EnvShape, view: View) -> Demos:
    """The demonstrations with how each episode ended, where the environment has a time limit to tell it by."""
    if shape.max_episode_steps is None:
        return demos
    return replace(demos, terminated=ended_by_themselves(demos, shape.max_episode_steps, view.stride))


def ended_by_themselves(demos: Demos, limit: int, stride: Fraction = Fraction(1)) -> Bool[np.ndarray, " episodes"]:
    """Which episodes ended in a terminal state; where the file does not say, those clearly shorter than the time limit.

    Others' recordings of whole episodes often lack a row or a few at the end. Rows are `stride` steps apart.
    """
    if demos.terminated is not None:
        return np.asarray(demos.terminated)
    return demos.lengths * float(stride) < CLEARLY_SHORTER * limit


def find_demos(config: Config, given: Demos | None = None) -> tuple[str, Demos]:
    """The demonstrations that a config names, or those given, cut to size, and where they came from."""
    if given is not None:
        source, demos = "given in Python", given
    elif config.demos and config.demos.startswith(EXPERT):
        source, demos = f"bundled: {config.env.removeprefix(REDUNDANT)}", record_expert(config)
    elif config.demos:
        source, demos = config.demos, load_demos(config.demos, config.episode_column)
    else:
        task = find_task(config.env)
        source, demos = f"bundled: {task.name if task else config.env}", bundled_demos(config.env)
    demos = scale_columns(demos, config.scale, source)
    if config.demo_episodes is not None:
        demos = demos.take_episodes(config.demo_episodes, config.seed if config.demo_choice == "random" else None)
    if config.demo_transitions is not None:
        demos = demos.take_transitions(config.demo_transitions, seed=config.seed)
    return source, demos


def record_expert(config: Config) -> Demos:
    """New episodes of the bundled expert: "expert:50" with its most likely actions, "expert:50:stochastic" with sampled ones."""
    count, _, how = (config.demos or "").removeprefix(EXPERT).partition(":")
    if not count.isdecimal() or how not in ("", "stochastic"):
        raise UserError(f"--demos {config.demos}: write expert:50, or expert:50:stochastic.")
    expert = bundled_expert(config.env)
    demos = record_demos(expert, int(count), with_actions=True, stochastic=how == "stochastic")
    motors = motors_of(config.env, parse_kwargs(config.env_kwargs))
    if motors is None or demos.actions is None:
        return demos
    return replace(demos, actions=tuple(shared_evenly(action, expert.action_space, motors) for action in demos.actions))


def align_demos(demos: Demos, shape: EnvShape, config: Config) -> tuple[Demos, Demos, View]:
    """The demonstrations' columns that are compared, the same at the rate that is, and how the agent's states are."""
    where = config.demos or "the demonstrations"
    stride = parse_stride(config.stride)
    demos, columns = choose_columns(demos, shape.sizes, config.columns, config.demo_columns, where)
    copies = config.learner.needs_demos  # actions given whole states, one step apart
    changed = config.window != 2 or columns is not None or (stride != 1 and not copies)
    if changed and (copies or config.needs_whole_episodes):
        flags = "--columns and --window are" if copies else "--columns, --stride and --window are"
        raise UserError(
            f"{flags} for a discriminator on transitions; method {config.method}, as set, learns from whole states, and needs "
            "demonstrations with every column: use iddm or gaifo."
        )
    if stride != 1 and config.needs_expert_actions:
        raise UserError(f"--stride {config.stride}: method {config.method} compares actions, which go with every step; use iddm.")
    at_rate, stride = at_the_environments_rate(demos, stride, always=copies)
    return demos, at_rate, make_view(columns, config.window, stride)


def expert_arrays(demos: Demos, shape: EnvShape, config: Config, view: View) -> Expert:
    """Demonstrations on the device, checked against the environment."""
    where = config.demos or "the demonstrations"
    if view.columns is None:
        try:
            require_compatible(demos, shape.sizes)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
    actions = None
    if config.needs_expert_actions:
        recorded = demos.flat_actions()
        if recorded is None:
            raise UserError(
                f"{where}: method {config.method} needs the expert's actions, and there are none; record some with "
                "`iddm demos --with-actions`, or use iddm or gaifo."
            )
        actions = _action_features(recorded, shape, where)
    rows, starts = demos.flat()
    expert = Expert(
        rows=jnp.asarray(rows),
        starts=jnp.asarray(starts),
        actions=actions,
        view=ExpertView(
            past=None if view.plain else jnp.asarray(view.expert_past(demos)),
            columns=None if view.columns is None else jnp.asarray(view.columns),
        ),
    )
    if not config.needs_whole_episodes:
        return expert
    if config.demo_transitions is not None:
        raise UserError(f"Method {config.method}, as set, needs whole episodes; choose with --demo-episodes instead.")
    return expert._replace(reference=jnp.asarray(demos.observations[0]))


def expert_ends(learned: Demos, demos: Demos, limit: int) -> ExpertEnds:
    """The terminal states of the part of the demonstrations that is learned from, and its share of the time after them."""
    terminal = np.zeros(learned.num_transitions + learned.num_episodes, bool)
    terminal[np.cumsum(learned.lengths + 1) - 1] = ended_by_themselves(learned, limit)
    num_absorbed = np.maximum(limit - demos.lengths, 0)[ended_by_themselves(demos, limit)].sum()
    share = learned.num_transitions / demos.num_transitions
    return ExpertEnds(
        terminal=jnp.asarray(terminal), num_absorbed=jnp.asarray(share * num_absorbed), limit=jnp.asarray(float(limit))
    )


def _action_features(recorded: np.ndarray, shape: EnvShape, where: str) -> jax.Array:
    space = shape.action_space
    if space.discrete:
        choice = space.from_env(recorded.reshape(len(recorded), -1)[:, 0].astype(int))
        if (recorded.ndim > 1 and recorded.shape[1] != 1) or choice.min() < 0 or choice.max() >= space.size:
            raise UserError(f"{where}: actions are not among the {space.size} choices of {shape.env_id}.")
        return jax.nn.one_hot(choice, space.size)
    flat = recorded.reshape(len(recorded), -1)
    if flat.shape[1] != space.size:
        raise UserError(f"{where}: actions have {flat.shape[1]} columns, and {shape.env_id} takes {space.size}.")
    return jnp.clip(space.from_env(flat), *map(jnp.asarray, space.limits))
