"""What the agent did: rollouts, and the transitions that reward terms see."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from iddm.envs.vector import VectorEnv
from iddm.spaces import ActionSpace


class Rollout(NamedTuple):
    """`T` steps of `N` environments. `next_obs` is the true successor, also where an episode ends."""

    obs: Float[np.ndarray, "T N obs"]
    action: Float[np.ndarray, "T N actions"] | Int[np.ndarray, "T N"]
    next_obs: Float[np.ndarray, "T N obs"]
    env_reward: Float[np.ndarray, "T N"]
    terminated: Bool[np.ndarray, "T N"]
    truncated: Bool[np.ndarray, "T N"]
    valid: Bool[np.ndarray, "T N"]
    """False on the row that an autoreset makes: the action was ignored, and the successor is a new episode's start."""
    step: Int[np.ndarray, "T N"]
    """Time within the episode: 0 on its first row, or the time in the demonstration where the episode began."""
    past: Float[np.ndarray, "T N states obs"] | None = None
    """The states before `next_obs` that a discriminator is shown, oldest first; None where that is `obs` alone."""


class Collector:
    """Steps the environments and remembers where they are; also keeps the returns of the episodes that ended."""

    def __init__(self, env: VectorEnv, space: ActionSpace, lags: tuple[int, ...] = (1,)) -> None:
        self._env = env
        self._space = space
        self._obs = env.reset()
        self._ended = np.zeros(len(self._obs), bool)
        self._return = np.zeros(len(self._obs))
        self._step = env.start
        self._past = Past(lags, self._obs) if lags != (1,) else None

    def collect(self, act: Callable[[np.ndarray, int], np.ndarray], num_steps: int) -> tuple[Rollout, list[float]]:
        """`num_steps` steps with `act(obs, t)`, and the returns of the episodes that ended on the way."""
        rows, finished = [], []
        for t in range(num_steps):
            action = np.asarray(act(self._obs, t))
            step = self._env.step(self._space.to_env(action))
            valid = ~self._ended
            past = None if self._past is None else self._past.before_successor(self._obs, valid)
            row = Rollout(self._obs, action, step.obs, step.reward, step.terminated, step.truncated, valid, self._step, past)
            rows.append(row)
            self._step = np.where(valid, self._step + 1, self._env.start).astype(np.int32)
            self._return = np.where(valid, self._return + step.reward, 0.0)
            self._ended = (step.terminated | step.truncated) & valid
            finished += self._return[self._ended].tolist()
            self._obs = step.obs
        return jax.tree.map(lambda *steps: np.stack(steps), *rows), finished

    def close(self) -> None:
        self._env.close()


class Past:
    """The last states of each environment's episode; its first state stands in for those before it."""

    def __init__(self, lags: tuple[int, ...], first: np.ndarray) -> None:
        self._lags = np.array(lags)
        self._states = np.repeat(first[None], self._lags.max(), axis=0)
        self._fresh = np.ones(len(first), bool)

    def before_successor(self, obs: np.ndarray, valid: np.ndarray) -> Float[np.ndarray, "N states obs"]:
        """Take in the newest state; the states `lags` before its successor. The row after an autoreset begins an episode."""
        self._states = np.where(self._fresh[:, None], obs, np.concatenate([self._states[1:], obs[None]]))
        self._fresh = ~valid
        return np.swapaxes(self._states[-self._lags], 0, 1)


class Transitions(NamedTuple):
    """Rows (s, a, s') with normalised states and encoded actions; `a` is None where nobody recorded it."""

    s: Float[Array, "rows obs"]
    a: Float[Array, "rows features"] | None
    s_next: Float[Array, "rows obs"]
    past: Float[Array, "rows past"] | None = None
    """What a discriminator is shown for `s`, where it is not `s` itself: some columns, or several states."""
    now: Float[Array, "rows now"] | None = None
    """What it is shown for `s_next`, likewise."""

    def take(self, rows: Int[Array, " n"]) -> "Transitions":
        return jax.tree.map(lambda part: part[rows], self)

    def shown(self, sees: tuple[str, ...]) -> Float[Array, "rows inputs"]:
        """The chosen parts as a discriminator sees them."""
        past, now = self.s if self.past is None else self.past, self.s_next if self.now is None else self.now
        return self._replace(s=past, s_next=now).inputs(sees)

    def inputs(self, sees: tuple[str, ...]) -> Float[Array, "rows inputs"]:
        """The chosen parts side by side, e.g. ("s", "s_next")."""
        return jnp.concatenate([getattr(self, part) for part in sees], axis=-1)


def show(rows: Transitions, past: Float[Array, "rows states obs"] | None, columns: Int[Array, " shown"] | None) -> Transitions:
    """The agent's transitions with what a discriminator is shown of them: `past` states for s, and only some columns."""
    if past is None and columns is None:
        return rows
    before, now = rows.s[:, None] if past is None else past, rows.s_next
    if columns is not None:
        before, now = before[..., columns], now[:, columns]
    return rows._replace(past=before.reshape(before.shape[0], -1), now=now)


class AgentBatch(NamedTuple):
    """A rollout as the reward terms see it: its T·N rows, flat."""

    transitions: Transitions
    log_prob: Float[Array, " rows"]
    env_reward: Float[Array, " rows"]
    valid: Float[Array, " rows"]
    terminated: Bool[Array, " rows"]
    step: Int[Array, " rows"]
    """Time within the episode, from 0."""
    next_obs: Float[Array, "rows obs"]
    """s' in the environment's units."""
    target: Float[Array, "rows obs"] | None
    """The state that the first demonstration is in when this row's step is done, in the environment's units."""

    def sample(self, key: PRNGKeyArray, n: int) -> Transitions:
        """`n` valid rows, drawn independently."""
        order = jnp.argsort(-self.valid, stable=True)  # valid rows first
        draw = jnp.floor(jax.random.uniform(key, (n,)) * self.valid.sum()).astype(int)
        return self.transitions.take(order[draw])


class ExpertData(NamedTuple):
    """Demonstrations on the device: all rows, and the indices of those whose successor is the next row."""

    rows: Float[Array, "rows obs"]
    starts: Int[Array, " transitions"]
    actions: Float[Array, "transitions features"] | None
    first: Float[Array, "time obs"] | None = None
    """The first episode, in the environment's units whatever the scale of `rows`."""
    terminal: Bool[Array, " rows"] | None = None
    """The rows that are terminal states, where that is wanted and known."""
    num_absorbed: Float[Array, ""] | None = None
    """Steps that remained to the time limit after terminal states, all episodes together."""
    limit: Float[Array, ""] | None = None
    """The environment's time limit."""
    past: Int[Array, "transitions states"] | None = None
    """The rows that a discriminator is shown before each successor, oldest first; None where that is the one before it."""
    columns: Int[Array, " shown"] | None = None
    """Which of the environment's columns the rows hold; None for all."""
    scale: Callable[[Array], Array] | None = None
    """What puts rows on the scale of the networks that see them."""

    @property
    def shown(self) -> tuple[int, int]:
        """Columns that a discriminator sees of the states before and of the newest."""
        size = self.rows.shape[1]
        return size * (1 if self.past is None else self.past.shape[1]), size

    def at(self, time: Int[Array, " n"]) -> Float[Array, "n obs"] | None:
        """The first episode's states at these times; after its end, its last state."""
        return None if self.first is None else self.first[jnp.minimum(time, self.first.shape[0] - 1)]

    def scaled(self, scale: Callable[[Array], Array]) -> "ExpertData":
        """The same rows, put on this scale as they are drawn: what an iteration costs does not grow with their number."""
        return self._replace(scale=scale)

    def sample(self, key: PRNGKeyArray, n: int) -> Transitions:
        """`n` transitions, drawn independently."""
        which = self._draw(key, n)
        i = self.starts[which]
        a = None if self.actions is None else self.actions[which]
        past = None if self.past is None else self._read(self.past[which]).reshape(n, -1)
        return Transitions(self._read(i), a, self._read(i + 1), past)

    def ends(self, key: PRNGKeyArray, n: int) -> Bool[Array, " n"]:
        """Whether the successors that `sample` draws with this key are terminal states."""
        assert self.terminal is not None
        return self.terminal[self.starts[self._draw(key, n)] + 1]

    def _draw(self, key: PRNGKeyArray, n: int) -> Int[Array, " n"]:
        return jax.random.randint(key, (n,), 0, self.starts.shape[0])

    def _read(self, rows: Int[Array, "..."]) -> Float[Array, "... obs"]:
        return self.rows[rows] if self.scale is None else self.scale(self.rows[rows])
