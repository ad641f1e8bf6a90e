"""The demonstrations as arrays on the device, and how rows are drawn from them."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from iddm.rewards.rows import Transitions


class ExpertView(NamedTuple):
    """Which part of the demonstrations a discriminator compares, where it is not all columns of (s, s')."""

    past: Int[Array, "transitions states"] | None = None
    """The rows compared before each successor, oldest first; None where that is the one before it."""
    columns: Int[Array, " compared"] | None = None
    """Which of the environment's columns the rows hold; None for all."""


class ExpertEnds(NamedTuple):
    """How the demonstrated episodes ended, for absorbing states."""

    terminal: Bool[Array, " rows"]
    """The rows that are terminal states."""
    num_absorbed: Float[Array, ""]
    """Steps that remained to the time limit after terminal states, all episodes together."""
    limit: Float[Array, ""]
    """The environment's time limit."""


class Expert(NamedTuple):
    """Demonstrations on the device: all rows, and the indices of those whose successor is the next row."""

    rows: Float[Array, "rows obs"]
    starts: Int[Array, " transitions"]
    view: ExpertView = ExpertView()
    actions: Float[Array, "transitions features"] | None = None
    """Encoded, for the methods that need the expert's actions."""
    ends: ExpertEnds | None = None
    """For the terms that need whole episodes, where there is a time limit."""
    reference: Float[Array, "time obs"] | None = None
    """The first episode in the environment's units, for the terms that need whole episodes."""

    @property
    def compared_sizes(self) -> tuple[int, int]:
        """Columns that a discriminator compares of the states before and of the newest."""
        size = self.rows.shape[1]
        return size * (1 if self.view.past is None else self.view.past.shape[1]), size

    def reference_at(self, time: Int[Array, " n"]) -> Float[Array, "n obs"] | None:
        """The first episode's states at these times; after its end, its last state."""
        if self.reference is None:
            return None
        return self.reference[jnp.minimum(time, self.reference.shape[0] - 1)]


class ExpertSampler(NamedTuple):
    """Draws demonstrated transitions and scales them as they are drawn: the cost does not grow with their number."""

    expert: Expert
    scale: Callable[[Array], Array] = lambda rows: rows

    def sample(self, key: PRNGKeyArray, n: int) -> Transitions:
        """`n` transitions, drawn independently."""
        which = self._draw(key, n)
        i, past, actions = self.expert.starts[which], self.expert.view.past, self.expert.actions
        return Transitions(
            s=self._read(i),
            a=None if actions is None else actions[which],
            s_next=self._read(i + 1),
            compared_s=None if past is None else self._read(past[which]).reshape(n, -1),
        )

    def sample_ends(self, key: PRNGKeyArray, n: int) -> Bool[Array, " n"]:
        """Whether the successors that `sample` draws with this key are terminal states."""
        assert self.expert.ends is not None
        return self.expert.ends.terminal[self.expert.starts[self._draw(key, n)] + 1]

    def _draw(self, key: PRNGKeyArray, n: int) -> Int[Array, " n"]:
        return jax.random.randint(key, (n,), 0, self.expert.starts.shape[0])

    def _read(self, rows: Int[Array, "..."]) -> Float[Array, "... obs"]:
        return self.scale(self.expert.rows[rows])
