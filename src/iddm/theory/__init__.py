"""Finite MDPs: occupancies, divergences and the paper's theorems, exactly. Pure NumPy, float64.

`iddm.theory.maze` and `iddm.theory.toy` (the Gridworld, exactly) and `iddm.theory.report` (`iddm theory`) are imported by name.
"""

from iddm.theory.claims import Claim
from iddm.theory.divergences import (
    conditional_entropy,
    conditional_js,
    conditional_kl,
    cross_entropy,
    entropy,
    js,
    kl,
    mutual_information,
)
from iddm.theory.examples import random_mdp, random_policy, uniform_policy
from iddm.theory.mdp import (
    FiniteMDP,
    Occupancy,
    check_policy,
    inverse_dynamics,
    is_injective,
    occupancy,
    shared_transitions,
)
from iddm.theory.theorems import (
    corollary_1,
    disagreement,
    disagreement_map,
    entropy_chain,
    entropy_decomposition,
    inverse_entropy_bound,
    largest_cross_entropy,
    largest_inverse_cross_entropy,
    lemma_1,
    lemma_2,
    state_entropy,
    theorem_1,
    theorem_2,
)
from iddm.theory.theorems_js import (
    corollary_1_js,
    disagreement_js,
    epsilon,
    jeffreys_bound,
    lemma_1_js,
    theorem_1_js,
    theorem_2_js,
)

__all__ = [
    "Claim",
    "FiniteMDP",
    "Occupancy",
    "check_policy",
    "conditional_entropy",
    "conditional_js",
    "conditional_kl",
    "corollary_1",
    "corollary_1_js",
    "cross_entropy",
    "disagreement",
    "disagreement_js",
    "disagreement_map",
    "entropy",
    "entropy_chain",
    "entropy_decomposition",
    "epsilon",
    "inverse_dynamics",
    "inverse_entropy_bound",
    "is_injective",
    "jeffreys_bound",
    "js",
    "kl",
    "largest_cross_entropy",
    "largest_inverse_cross_entropy",
    "lemma_1",
    "lemma_1_js",
    "lemma_2",
    "mutual_information",
    "occupancy",
    "random_mdp",
    "random_policy",
    "shared_transitions",
    "state_entropy",
    "theorem_1",
    "theorem_1_js",
    "theorem_2",
    "theorem_2_js",
    "uniform_policy",
]
