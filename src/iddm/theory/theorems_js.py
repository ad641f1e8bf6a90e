"""The paper's theorems under the Jensen-Shannon divergence, which GAN-like training minimises (App. A.2, A.3)."""

import math

import numpy as np
from numpy.typing import ArrayLike

from iddm.theory.claims import Claim
from iddm.theory.divergences import conditional_js, conditional_kl, entropy, js
from iddm.theory.mdp import FiniteMDP, inverse_dynamics, is_injective, occupancy
from iddm.theory.theorems import disagreement, largest_cross_entropy


def disagreement_js(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> float:
    """JS(ρ_π(a|s,s') ‖ ρ_E(a|s,s')), each expectation under its own ρ(s,a,s'): IDDM, App. A.2. ≤ log 2."""
    pi, ex = occupancy(mdp, agent), occupancy(mdp, expert)
    return conditional_js(pi.sas, ex.sas, inverse_dynamics(mdp, agent), inverse_dynamics(mdp, expert))


def lemma_1_js(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> Claim:
    """JS(ρ_π(s,a,s') ‖ ρ_E(s,a,s')) = JS(ρ_π(s,a) ‖ ρ_E(s,a)): IDDM, Lemma 3."""
    pi, ex = occupancy(mdp, agent), occupancy(mdp, expert)
    return Claim("Lemma 1 (JS)", "Lemma 3", "JS(s,a,s') = JS(s,a)", js(pi.sas, ex.sas), js(pi.sa, ex.sa))


def epsilon(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> float:
    """ε = E_M[log M(a|s,s') − log ½(ρ_π(a|s,s') + ρ_E(a|s,s'))], M = ½(ρ_π + ρ_E): IDDM, Theorem 3's ε.

    M(a|s,s') weighs the two inverse models by how often each policy makes the transition; the paper's
    conditional JS weighs them equally. ε is the KL between the two mixtures, so it is never negative, and it
    vanishes when the transitions are equally frequent (ρ_π(s,s') = ρ_E(s,s')) or the models agree. The
    paper's proof defines it as a remainder, with the sign opposite to its theorem; we keep the theorem's.
    """
    mixture = 0.5 * (occupancy(mdp, agent).sas + occupancy(mdp, expert).sas)
    total = np.broadcast_to(mixture.sum(axis=1, keepdims=True), mixture.shape)
    weighted = np.divide(mixture, total, out=np.full_like(mixture, np.nan), where=total > 0)
    equal = 0.5 * (inverse_dynamics(mdp, agent) + inverse_dynamics(mdp, expert))
    return conditional_kl(mixture, weighted, equal)


def theorem_1_js(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> Claim:
    """JS(ρ_π(a|s,s')‖ρ_E(a|s,s')) = JS(ρ_π(s,a)‖ρ_E(s,a)) − JS(ρ_π(s,s')‖ρ_E(s,s')) + ε: IDDM, Theorem 3."""
    pi, ex = occupancy(mdp, agent), occupancy(mdp, expert)
    eps = epsilon(mdp, agent, expert)
    return Claim(
        "Theorem 1 (JS)",
        "Theorem 3",
        "JS(a|s,s') = JS(s,a) − JS(s,s') + ε",
        disagreement_js(mdp, agent, expert),
        js(pi.sa, ex.sa) - js(pi.ss, ex.ss) + eps,
        terms={"ε": eps},
    )


def corollary_1_js(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> Claim:
    """JS(ρ_π(s,a) ‖ ρ_E(s,a)) = JS(ρ_π(s,s') ‖ ρ_E(s,s')) for dynamics injective in a: IDDM, Corollary 2."""
    pi, ex = occupancy(mdp, agent), occupancy(mdp, expert)
    left, right = js(pi.sa, ex.sa), js(pi.ss, ex.ss)
    return Claim("Corollary 1 (JS)", "Corollary 2", "JS(s,a) = JS(s,s')", left, right, premise=is_injective(mdp))


def theorem_2_js(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> Claim:
    """JS(ρ_π(a|s,s') ‖ ρ_E(a|s,s')) ≤ −H_π(s,a) + Const + δ + log 2: IDDM, Theorem 4.

    δ = max(0, KL(ρ_E(a|s,s')‖ρ_π(a|s,s')) − KL(ρ_π(a|s,s')‖ρ_E(a|s,s'))) is the least that meets Assumption
    2. True, and empty: the rest of the right side is an upper bound of a KL, so the right side is at least
    log 2, which no JS exceeds. `jeffreys_bound` is the step without the log 2.
    """
    forward, backward = disagreement(mdp, agent, expert), disagreement(mdp, expert, agent)
    delta = max(0.0, backward - forward) if not math.isinf(forward) else 0.0
    rho = occupancy(mdp, agent)
    return Claim(
        "Theorem 2 (JS)",
        "Theorem 4",
        "JS(a|s,s') ≤ −H(s,a) + Const + δ + log 2",
        disagreement_js(mdp, agent, expert),
        -entropy(rho.sa) + largest_cross_entropy(mdp, expert) + delta + math.log(2.0),
        relation="≤",
        terms={"δ": delta},
    )


def jeffreys_bound(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> Claim:
    """JS(ρ_π(a|s,s') ‖ ρ_E(a|s,s')) ≤ ¼ KL(ρ_π(a|s,s')‖ρ_E(a|s,s')) + ¼ KL(ρ_E(a|s,s')‖ρ_π(a|s,s')).

    Not in the paper: its proof of Theorem 4 uses log(1+x) ≥ log x, which costs the log 2; log(1+x) ≥ log 2 +
    ½ log x does not. The bound is 0 where the disagreement is.
    """
    forward, backward = disagreement(mdp, agent, expert), disagreement(mdp, expert, agent)
    return Claim(
        "Jeffreys bound",
        "not in the paper",
        "JS(a|s,s') ≤ ¼ (KL + reverse KL)",
        disagreement_js(mdp, agent, expert),
        0.25 * forward + 0.25 * backward,
        relation="≤",
        terms={"KL": forward, "reverse KL": backward},
    )
