"""Random finite MDPs and policies from a seed: what the theorems are tried on."""

from typing import Literal

import numpy as np

from iddm.errors import UserError
from iddm.theory.mdp import Array, FiniteMDP

Kind = Literal["dense", "sparse", "deterministic", "injective"]


def random_mdp(
    kind: Kind, num_states: int, num_actions: int, seed: int, discount: float = 0.9, num_terminal: int = 0
) -> FiniteMDP:
    """An MDP whose dynamics are of a kind; its last `num_terminal` states end the episode.

    dense: every transition is possible. sparse: (s,a) leads to one of two states. deterministic: to one,
    which actions may share. injective: to one, another for each action (so there must be at least as many
    states as actions).
    """
    if kind == "injective" and num_actions > num_states:
        raise UserError(f"{num_actions} actions cannot lead to different ones of {num_states} states: use more states.")
    rng = np.random.default_rng(seed)
    transitions = np.zeros((num_states, num_actions, num_states))
    for s in range(num_states):
        distinct = rng.permutation(num_states)
        for a in range(num_actions):
            if kind == "dense":
                transitions[s, a] = rng.dirichlet(np.ones(num_states))
            elif kind == "sparse":
                pair = rng.choice(num_states, size=2, replace=False)
                transitions[s, a, pair] = rng.dirichlet(np.ones(2))
            else:
                s_next = distinct[a] if kind == "injective" else rng.integers(num_states)
                transitions[s, a, s_next] = 1.0
    terminal = np.arange(num_states) >= num_states - num_terminal
    initial = np.where(terminal, 0.0, rng.dirichlet(np.ones(num_states)))
    return FiniteMDP(transitions, initial / initial.sum(), discount, terminal)


def random_policy(mdp: FiniteMDP, seed: int) -> Array:
    """π(·|s) uniform over the simplex, independently for each s; every action has positive probability."""
    return np.random.default_rng(seed).dirichlet(np.ones(mdp.num_actions), size=mdp.num_states)


def uniform_policy(mdp: FiniteMDP) -> Array:
    """π(a|s) = 1/|A|."""
    return np.full((mdp.num_states, mdp.num_actions), 1.0 / mdp.num_actions)
