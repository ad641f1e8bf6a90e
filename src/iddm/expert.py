"""From the demonstrations that a config names to the arrays that the learner samples, checked against the environment."""

import jax
import jax.numpy as jnp
import numpy as np

from iddm.bundled import bundled_demos
from iddm.config import Config
from iddm.demos import Demos, load_demos, require_fit
from iddm.demos.view import View, at_the_environments_rate, make_view, parse_columns, parse_stride, take_columns
from iddm.envs import EnvShape
from iddm.errors import UserError
from iddm.rollout import ExpertData

PAIRS = View()
"""(s, s') with all columns."""


def find_demos(config: Config, demos: Demos | None = None) -> Demos:
    """The demonstrations that a config names, cut to size."""
    if demos is None:
        demos = load_demos(config.demos) if config.demos else bundled_demos(config.env)
    if config.demo_episodes is not None:
        demos = demos.take_episodes(config.demo_episodes)
    if config.demo_transitions is not None:
        demos = demos.take_transitions(config.demo_transitions, seed=config.seed)
    return demos


def fit_demos(demos: Demos, shape: EnvShape, config: Config) -> tuple[Demos, View]:
    """Demonstrations with the columns and at the rate that are compared, and how the agent's states are shown beside them."""
    where = config.demos or "the demonstrations"
    stride = parse_stride(config.stride)
    demos, columns = choose_columns(demos, shape, config.columns, config.demo_columns, where)
    fitted = stride != 1 or config.window != 2 or columns is not None
    if fitted and (config.cloning is not None or any(term.needs_whole_episodes for term in config.terms.values())):
        raise UserError(
            f"--columns, --stride and --window are for a discriminator on transitions; method {config.method}, as set, needs "
            "demonstrations with every column, at the environment's rate."
        )
    if stride != 1 and config.needs_expert_actions:
        raise UserError(f"--stride {config.stride}: method {config.method} compares actions, which go with every step; use iddm.")
    demos, stride = at_the_environments_rate(demos, stride)
    return demos, make_view(columns, config.window, stride)


def choose_columns(
    demos: Demos, shape: EnvShape, columns: str | None, demo_columns: str | None, where: str
) -> tuple[Demos, tuple[int, ...] | None]:
    """The demonstrations cut to the columns that are compared, and which of the environment's these are (None for all)."""
    if demo_columns is not None:
        demos = take_columns(demos, parse_columns(demo_columns, demos.obs_size, demos.columns, where))
    if columns is None:
        return demos, None
    names = shape.columns or (demos.columns if demos.obs_size == shape.obs_size else ())
    chosen = parse_columns(columns, shape.obs_size, names, shape.env_id)
    if demos.obs_size == shape.obs_size:
        return take_columns(demos, chosen), chosen
    if demos.obs_size == len(chosen):
        return demos, chosen
    raise UserError(
        f"{where}: there are {demos.obs_size} columns; with --columns {columns} there must be those {len(chosen)} in that order, "
        f"or all {shape.obs_size} of {shape.env_id}; choose some with --demo-columns."
    )


def expert_data(demos: Demos, shape: EnvShape, needs_actions: bool, config: Config, view: View = PAIRS) -> ExpertData:
    """Demonstrations on the device, checked against the environment."""
    where = config.demos or "the demonstrations"
    if view.columns is None:
        try:
            require_fit(demos, shape.sizes)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
    rows, starts = demos.flat()
    actions = None
    if needs_actions:
        recorded = demos.flat_actions()
        if recorded is None:
            raise UserError(
                f"{where}: method {config.method} needs the expert's actions, and there are none; record some with "
                "`iddm demos --with-actions`, or use iddm or gaifo."
            )
        actions = _action_features(recorded, shape, where)
    past = None if view.plain else jnp.asarray(view.expert_past(demos))
    columns = None if view.columns is None else jnp.asarray(view.columns)
    data = ExpertData(jnp.asarray(rows), jnp.asarray(starts), actions, past=past, columns=columns)
    if not any(term.needs_whole_episodes for term in config.terms.values()):
        return data
    if config.demo_transitions is not None:
        raise UserError(f"Method {config.method}, as set, needs whole episodes; choose with --demo-episodes instead.")
    return with_episodes(data, demos, shape.max_episode_steps)


def with_episodes(data: ExpertData, demos: Demos, limit: int | None) -> ExpertData:
    """Add what single transitions do not show: the first episode in time, and which episodes ended in a terminal state.

    Where the file does not say, an episode that is shorter than the time limit is taken to have ended.
    """
    data = data._replace(first=jnp.asarray(demos.observations[0]))
    if limit is None:
        return data
    ended = demos.lengths < limit if demos.terminated is None else np.asarray(demos.terminated)
    terminal = np.zeros(len(data.rows), bool)
    terminal[np.cumsum(demos.lengths + 1) - 1] = ended
    num_absorbed = np.maximum(limit - demos.lengths, 0)[ended].sum()
    return data._replace(
        terminal=jnp.asarray(terminal), num_absorbed=jnp.asarray(float(num_absorbed)), limit=jnp.asarray(float(limit))
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
