"""What we imitate: episodes of states, with actions only where somebody recorded them."""

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float32, Int32, Int64, Integer, Shaped

from iddm.demos.check import (
    check_actions,
    check_count,
    check_metadata,
    check_observations,
    check_returns,
    check_terminated,
)


@dataclass(frozen=True, eq=False, repr=False)
class Demos:
    """Demonstrations. Creating one checks it and makes the arrays read-only, so every `Demos` is sound.

    An episode of T steps has T+1 rows of observations: the state before each step and the one after the last.
    Any array of numbers may go in; what comes out has the types below. Anything wrong raises
    `iddm.errors.UserError`, with a sentence that says where.
    """

    observations: tuple[np.ndarray, ...]
    """[T+1, D] float32 per episode."""
    actions: tuple[np.ndarray, ...] | None = None
    """[T, A] float32 or [T] int64 per episode; None where there are none."""
    episode_returns: np.ndarray | None = None
    """[E] float64: the environment's own return, where it is known for every episode."""
    terminated: np.ndarray | None = None
    """[E] bool: whether an episode's last row is a terminal state (True) or the recording was cut there (False)."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Anything that JSON can hold: source, licence, `env_id`, notes."""

    def __post_init__(self) -> None:
        names = self.metadata.get("columns") if isinstance(self.metadata, dict) else None
        observations = check_observations(self.observations, names)
        checked = {
            "observations": observations,
            "actions": check_actions(self.actions, observations),
            "episode_returns": check_returns(self.episode_returns, len(observations)),
            "terminated": check_terminated(self.terminated, len(observations)),
            "metadata": check_metadata(self.metadata),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        actions = "no actions" if self.actions is None else "with actions"
        return f"Demos({self.num_episodes} episodes, {self.num_transitions} transitions, {self.obs_size} columns, {actions})"

    @property
    def num_episodes(self) -> int:
        return len(self.observations)

    @property
    def num_transitions(self) -> int:
        return int(self.lengths.sum())

    @property
    def obs_size(self) -> int:
        return self.observations[0].shape[1]

    @property
    def lengths(self) -> Int64[np.ndarray, " episodes"]:
        """T of each episode: its transitions, one fewer than its rows."""
        return np.array([len(rows) - 1 for rows in self.observations], dtype=np.int64)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names where the metadata gives them, else nothing."""
        names = self.metadata.get("columns")
        known = isinstance(names, list) and len(names) == self.obs_size and all(isinstance(name, str) for name in names)
        return tuple(names) if known and names is not None else ()

    def states_only(self) -> "Demos":
        """The same without actions: a method that gets this cannot leak them."""
        return replace(self, actions=None)

    def take_episodes(self, n: int, seed: int | None = None) -> "Demos":
        """The first n episodes, or n drawn at random with a seed, in their order."""
        n = check_count(n, self.num_episodes, "episode(s)")
        return self.choose_episodes(
            np.arange(n) if seed is None else np.sort(np.random.default_rng(seed).permutation(self.num_episodes)[:n])
        )

    def choose_episodes(self, chosen: Integer[np.ndarray, " chosen"]) -> "Demos":
        """The episodes with these numbers."""
        return replace(
            self,
            observations=tuple(self.observations[i] for i in chosen),
            actions=None if self.actions is None else tuple(self.actions[i] for i in chosen),
            episode_returns=None if self.episode_returns is None else self.episode_returns[chosen],
            terminated=None if self.terminated is None else self.terminated[chosen],
        )

    def take_transitions(self, n: int, seed: int = 0) -> "Demos":
        """n transitions (s, s') at random, without replacement or order: the paper's 32, 128 and 256 pairs.

        Each pair becomes an episode of two rows. With one seed, the first 32 of 128 are the 32. A pair has no
        return; it is terminated if it was the last of an episode that was.
        """
        n = check_count(n, self.num_transitions, "transition(s)")
        rows, starts = self.flat()
        chosen = np.random.default_rng(seed).permutation(len(starts))[:n]
        first = starts[chosen]
        actions = self.flat_actions()
        terminated = None
        if self.terminated is not None:
            ends_terminal = np.zeros(len(starts), dtype=bool)
            ends_terminal[np.cumsum(self.lengths) - 1] = self.terminated
            terminated = ends_terminal[chosen]
        return Demos(
            observations=tuple(np.stack([rows[first], rows[first + 1]], axis=1)),
            actions=None if actions is None else tuple(actions[chosen][:, None]),
            terminated=terminated,
            metadata={**self.metadata, "taken_transitions": {"number": n, "seed": int(seed)}},
        )

    def digest(self) -> str:
        """SHA-256 of observations and actions, in hex: equal if and only if a trainer would see the same."""
        sha = hashlib.sha256()
        for name, episodes in (("observations", self.observations), ("actions", self.actions)):
            for array in episodes or ():
                # The byte order is fixed so that the digest is the same on every machine.
                little = array.astype(array.dtype.newbyteorder("<"), copy=False)
                sha.update(f"{name} {little.dtype.str} {little.shape}\n".encode())
                sha.update(little.tobytes())
        return sha.hexdigest()

    def flat(self) -> tuple[Float32[np.ndarray, "rows obs"], Int32[np.ndarray, " transitions"]]:
        """All rows one after another, and the indices i whose successor i+1 is in the same episode."""
        rows = np.concatenate(self.observations)
        has_successor = np.ones(len(rows), dtype=bool)
        has_successor[np.cumsum(self.lengths + 1) - 1] = False
        return rows, np.flatnonzero(has_successor).astype(np.int32)

    def flat_actions(self) -> Shaped[np.ndarray, "transitions ..."] | None:
        """The action taken at each of `flat`'s starts, or None."""
        return None if self.actions is None else np.concatenate(self.actions)
