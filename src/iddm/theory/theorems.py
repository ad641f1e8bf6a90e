"""The paper's theorems under KL, as functions of a finite MDP and two policies that return both sides.

Equation numbers are those of the paper's main text; Lemma 1 and Lemma 2 are in appendix A.1. The two sides of
an identity are computed along different ways: a disagreement comes from the inverse dynamics models of Eq. 2,
the divergences it is compared with come from occupancy measures. The same dynamics serve agent and expert
(Assumption 1) by construction.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from iddm.theory.claims import Claim, difference
from iddm.theory.divergences import (
    conditional_entropy,
    conditional_kl_terms,
    cross_entropy,
    entropy,
    kl,
    mutual_information,
)
from iddm.theory.mdp import Array, FiniteMDP, inverse_dynamics, is_injective, occupancy


def disagreement(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> float:
    """KL(ρ_π(a|s,s') ‖ ρ_E(a|s,s')) = E_{ρ_π(s,a,s')}[log ρ_π(a|s,s') − log ρ_E(a|s,s')]: IDDM, Eq. 5.

    Infinite when the expert makes some transition of the agent's, but never by the agent's action. NaN,
    undefined, when the agent makes a transition that the expert cannot make: the expert then has no inverse
    dynamics there (Eq. 2 is 0/0).
    """
    return float(disagreement_map(mdp, agent, expert).sum())


def disagreement_map(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> Array:
    """ρ_π(s,s') KL(ρ_π(·|s,s') ‖ ρ_E(·|s,s')) [S, S]: the share of each transition in the disagreement."""
    rho, p, q = occupancy(mdp, agent).sas, inverse_dynamics(mdp, agent), inverse_dynamics(mdp, expert)
    return conditional_kl_terms(rho, p, q).sum(axis=1)


def lemma_1(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> Claim:
    """KL(ρ_π(s,a,s') ‖ ρ_E(s,a,s')) = KL(ρ_π(s,a) ‖ ρ_E(s,a)): IDDM, Lemma 1.

    T(s'|s,a) cancels from the ratio, so the dynamics may be stochastic.
    """
    pi, ex = occupancy(mdp, agent), occupancy(mdp, expert)
    return Claim("Lemma 1", "App. A.1", "KL(s,a,s') = KL(s,a)", kl(pi.sas, ex.sas), kl(pi.sa, ex.sa))


def theorem_1(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> Claim:
    """KL(ρ_π(a|s,s') ‖ ρ_E(a|s,s')) = KL(ρ_π(s,a) ‖ ρ_E(s,a)) − KL(ρ_π(s,s') ‖ ρ_E(s,s')): IDDM, Eq. 6.

    The chain rule of KL and Lemma 1; true of stochastic dynamics as well. Undefined (NaN) where the agent
    makes a transition which the expert never makes: the right side is ∞ − ∞.
    """
    pi, ex = occupancy(mdp, agent), occupancy(mdp, expert)
    kl_sa, kl_ss = kl(pi.sa, ex.sa), kl(pi.ss, ex.ss)
    return Claim(
        "Theorem 1",
        "Eq. 6",
        "KL(a|s,s') = KL(s,a) − KL(s,s')",
        disagreement(mdp, agent, expert),
        difference(kl_sa, kl_ss),
        terms={"KL(s,a)": kl_sa, "KL(s,s')": kl_ss},
    )


def lemma_2(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> Claim:
    """ρ_π(a|s,s') = ρ_E(a|s,s') for injective dynamics: IDDM, Lemma 2. Left: the largest difference; right: 0.

    Taken over the transitions that both policies can make; of any other, one of the two models is undefined.
    """
    gap = np.abs(inverse_dynamics(mdp, agent) - inverse_dynamics(mdp, expert))[~mdp.terminal]
    largest = float(np.nanmax(gap)) if np.any(~np.isnan(gap)) else 0.0
    return Claim("Lemma 2", "App. A.1", "max |ρ_π(a|s,s') − ρ_E(a|s,s')| = 0", largest, 0.0, premise=is_injective(mdp))


def corollary_1(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> Claim:
    """KL(ρ_π(s,a) ‖ ρ_E(s,a)) = KL(ρ_π(s,s') ‖ ρ_E(s,s')) for dynamics injective in a: IDDM, Eq. 7.

    `premise` says whether they are injective. It is enough that no two actions share a transition; they may
    be stochastic.
    """
    pi, ex = occupancy(mdp, agent), occupancy(mdp, expert)
    left, right = kl(pi.sa, ex.sa), kl(pi.ss, ex.ss)
    return Claim("Corollary 1", "Eq. 7", "KL(s,a) = KL(s,s')", left, right, premise=is_injective(mdp))


def largest_cross_entropy(mdp: FiniteMDP, expert: ArrayLike) -> float:
    """Const = sup_ρ −Σ ρ(s,a) log ρ_E(s,a), over the occupancy measures ρ of all policies: IDDM, proof of Theorem 2.

    Infinite when the expert leaves out a pair (s,a) that some policy can reach.
    """
    rho_expert = occupancy(mdp, expert).sa
    return _largest_mean(mdp, _minus_log(rho_expert))


def largest_inverse_cross_entropy(mdp: FiniteMDP, expert: ArrayLike) -> float:
    """C' = sup_ρ −Σ ρ(s,a,s') log ρ_E(a|s,s'), over the occupancy measures ρ of all policies: `inverse_entropy_bound`'s constant.

    Infinite when some policy can make a transition by an action by which the expert never makes it.
    """
    surprise = _minus_log(np.nan_to_num(inverse_dynamics(mdp, expert)))
    possible = mdp.transitions > 0
    return _largest_mean(mdp, np.sum(np.where(possible, surprise, 0.0) * np.where(possible, mdp.transitions, 1.0), axis=2))


def _minus_log(p: Array) -> Array:
    with np.errstate(divide="ignore"):  # −log 0 = ∞ is meant
        return -np.log(p)


def _largest_mean(mdp: FiniteMDP, reward: Array) -> float:
    """sup_ρ Σ ρ(s,a) reward(s,a): linear in ρ, hence attained by a deterministic policy; found by policy iteration."""
    anything = np.full((mdp.num_states, mdp.num_actions), 1.0 / mdp.num_actions)
    reachable = occupancy(mdp, anything).s > 0
    if np.any(np.isinf(reward[reachable])):
        return math.inf
    reward = np.where(reachable[:, None], reward, 0.0)  # what cannot be reached is worth nothing, and nothing leads there
    step, states = mdp.continuing(), np.arange(mdp.num_states)
    choice = reward.argmax(axis=1)
    while True:
        system = np.eye(mdp.num_states) - mdp.discount * step[states, choice]
        value = np.linalg.solve(system, reward[states, choice])
        gain = reward + mdp.discount * step @ value
        better = gain.max(axis=1) > gain[states, choice] * (1 + 1e-12) + 1e-12  # ties must not cycle
        if not better.any():
            return float((1.0 - mdp.discount) * mdp.initial @ value)
        choice = np.where(better, gain.argmax(axis=1), choice)


def theorem_2(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> Claim:
    """KL(ρ_π(a|s,s') ‖ ρ_E(a|s,s')) ≤ −H_π(s,a) + Const: IDDM, Eq. 8, with Const = `largest_cross_entropy`.

    The paper asks for KL(s,s') to be minimised (to 0). That turns the first step below into an equality, and
    is not needed:

        KL(a|s,s') = KL(s,a) − KL(s,s') ≤ KL(s,a) = −H_π(s,a) − Σ ρ_π log ρ_E ≤ −H_π(s,a) + Const

    holds for any two policies. So the bound's slack is KL(s,s') plus what the cross entropy lacks to its
    supremum (`terms`).
    """
    pi, ex = occupancy(mdp, agent), occupancy(mdp, expert)
    cross, const = cross_entropy(pi.sa, ex.sa), largest_cross_entropy(mdp, expert)
    return Claim(
        "Theorem 2",
        "Eq. 8",
        "KL(a|s,s') ≤ −H(s,a) + Const",
        disagreement(mdp, agent, expert),
        -entropy(pi.sa) + const,
        relation="≤",
        terms={
            "KL(s,s')": kl(pi.ss, ex.ss),
            "Const": const,
            "Const − cross entropy": difference(const, cross),
        },
    )


def inverse_entropy_bound(mdp: FiniteMDP, agent: ArrayLike, expert: ArrayLike) -> Claim:
    """KL(ρ_π(a|s,s') ‖ ρ_E(a|s,s')) ≤ −H_π(a|s,s') + C', with C' = `largest_inverse_cross_entropy`. Not in the paper.

        KL(a|s,s') = −H_π(a|s,s') − Σ ρ_π(s,a,s') log ρ_E(a|s,s') ≤ −H_π(a|s,s') + C'

    It asks the policy for nothing that (s,s') determines: where transitions name their actions, both sides are 0. The
    agent's other entropies, H(s) and H(s'|s), do not enter; once (s,s') is matched they are the expert's.
    """
    entropy_left = conditional_entropy(occupancy(mdp, agent).sas, given=(0, 2))
    const = largest_inverse_cross_entropy(mdp, expert)
    return Claim(
        "Inverse entropy bound",
        "not in the paper",
        "KL(a|s,s') ≤ −H(a|s,s') + C'",
        disagreement(mdp, agent, expert),
        -entropy_left + const,
        relation="≤",
        terms={"H(a|s,s')": entropy_left, "C'": const},
    )


def entropy_chain(mdp: FiniteMDP, policy: ArrayLike) -> Claim:
    """H_π(s,a) = H_π(s,s') + H_π(a|s,s') − H_π(s'|s,a): what Theorem 2's entropy can still gain once (s,s') is matched.

    H(s,s') is then the expert's, and H(s) with it. With deterministic dynamics the last term is 0, and only H(a|s,s') is free.
    """
    rho = occupancy(mdp, policy)
    transitions, inverse = entropy(rho.ss), conditional_entropy(rho.sas, given=(0, 2))
    outcome = conditional_entropy(rho.sas, given=(0, 1))
    return Claim(
        "Free entropy",
        "not in the paper",
        "H(s,a) = H(s,s') + H(a|s,s') − H(s'|s,a)",
        entropy(rho.sa),
        transitions + inverse - outcome,
        terms={"H(s,s')": transitions, "H(a|s,s')": inverse, "H(s'|s,a)": outcome},
    )


def entropy_decomposition(mdp: FiniteMDP, policy: ArrayLike) -> Claim:
    """H_π(s,a) = H_π(a|s) + H_π(s): IDDM, Eq. 9."""
    rho = occupancy(mdp, policy)
    policy_entropy, state_entropy = conditional_entropy(rho.sa, given=0), entropy(rho.s)
    return Claim(
        "Entropy",
        "Eq. 9",
        "H(s,a) = H(a|s) + H(s)",
        entropy(rho.sa),
        policy_entropy + state_entropy,
        terms={"H(a|s)": policy_entropy, "H(s)": state_entropy},
    )


def state_entropy(mdp: FiniteMDP, policy: ArrayLike) -> Claim:
    """H_π(s) = I_π(s; (s',a)) + H_π(s|s',a): IDDM, Eq. 10, whose last term is computed here and not taken to be 0.

    The paper drops it since (s,a) → s' is deterministic. That is not enough: what is needed is that (s',a) →
    s is. A wall breaks it (a step up arrives from below, or stays after a bump), and so does anything that
    forgets where it came from.
    """
    rho = occupancy(mdp, policy)
    information, forgotten = mutual_information(rho.sas, x=0), conditional_entropy(rho.sas, given=(1, 2))
    return Claim(
        "State entropy",
        "Eq. 10",
        "H(s) = I(s;(s',a)) + H(s|s',a)",
        entropy(rho.s),
        information + forgotten,
        terms={"I(s;(s',a))": information, "H(s|s',a)": forgotten},
    )
