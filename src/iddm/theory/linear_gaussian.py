"""Linear-Gaussian systems: continuous states and actions with a disagreement in closed form.

    s' = A s + B a + w,  w ~ N(0, W)        a = K s + e,  e ~ N(0, Σ)

With |eigenvalues of A + BK| < 1 the process is stationary, and (s, a, s') is Gaussian with mean 0. So are (s, a) and (s, s'),
whose KL divergences are closed forms; their difference is the disagreement (IDDM, Theorem 1). What an estimator of it
says can be checked here, where a finite MDP does not have the shape of the problem.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from iddm.errors import UserError
from iddm.theory.mdp import Array


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """A [S, S], B [S, A] and the covariance W [S, S] of the noise, which must be positive definite."""

    a: Array
    b: Array
    noise: Array

    @property
    def num_states(self) -> int:
        return self.a.shape[0]


@dataclass(frozen=True, eq=False)
class LinearPolicy:
    """The gain K [A, S] and the covariance Σ [A, A] of the policy's noise, which must be positive definite."""

    gain: Array
    noise: Array


def joint_covariance(system: LinearSystem, policy: LinearPolicy) -> Array:
    """The covariance of (s, a, s') when the process is stationary: P = F P Fᵀ + B Σ Bᵀ + W with F = A + BK."""
    closed = system.a + system.b @ policy.gain
    radius = float(np.abs(np.linalg.eigvals(closed)).max())
    if radius >= 1:
        raise UserError(f"A + BK has an eigenvalue of size {radius:.3f}: the process is not stationary.")
    of_state = solve_discrete_lyapunov(closed, system.b @ policy.noise @ system.b.T + system.noise)
    s, a = system.num_states, policy.gain.shape[0]
    # (s, a, s') is linear in the independent (s, e, w)
    mixing = np.zeros((2 * s + a, 2 * s + a))
    mixing[:s, :s] = np.eye(s)
    mixing[s : s + a, : s + a] = np.hstack([policy.gain, np.eye(a)])
    mixing[s + a :] = np.hstack([closed, system.b, np.eye(s)])
    independent = np.zeros_like(mixing)
    for start, part in ((0, of_state), (s, policy.noise), (s + a, system.noise)):
        independent[start : start + len(part), start : start + len(part)] = part
    return mixing @ independent @ mixing.T


def gaussian_kl(p: Array, q: Array) -> float:
    """KL(N(0, P) ‖ N(0, Q)) = ½ (tr Q⁻¹P − d + log det Q − log det P)."""
    log_dets = np.linalg.slogdet(q)[1] - np.linalg.slogdet(p)[1]
    return 0.5 * float(np.trace(np.linalg.solve(q, p)) - len(p) + log_dets)


def linear_disagreement(system: LinearSystem, agent: LinearPolicy, expert: LinearPolicy) -> float:
    """KL(ρ_π(s,a) ‖ ρ_E(s,a)) − KL(ρ_π(s,s') ‖ ρ_E(s,s')): IDDM, Theorem 1."""
    pi, ex = joint_covariance(system, agent), joint_covariance(system, expert)
    s, total = system.num_states, len(pi)
    pair, transition = np.arange(total - s), np.r_[:s, total - s : total]
    kl_sa, kl_ss = (gaussian_kl(pi[np.ix_(of, of)], ex[np.ix_(of, of)]) for of in (pair, transition))
    return kl_sa - kl_ss


def sample_transitions(
    system: LinearSystem, policy: LinearPolicy, rows: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Independent rows (s, a, s') of the stationary process."""
    root = np.linalg.cholesky(joint_covariance(system, policy))
    drawn = rng.standard_normal((rows, len(root))) @ root.T
    s, total = system.num_states, len(root)
    return drawn[:, :s], drawn[:, s : total - s], drawn[:, total - s :]


def redundant_example(
    motors: int = 2, joints: int = 2, states: int = 4, shift: float = 0.0, null: float = 1.0, noise: float = 0.3, seed: int = 0
) -> tuple[LinearSystem, LinearPolicy, LinearPolicy]:
    """A random system whose joints have several motors (their mean acts), an agent and an expert.

    The expert's motors all do the same. The agent's also work against each other by `null`, which changes no state, and its
    joints follow gains that differ from the expert's by `shift`, which does.
    """
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((states, states))
    a *= 0.7 / np.abs(np.linalg.eigvals(a)).max()
    b = 0.5 * rng.standard_normal((states, joints))
    gain = -0.1 * rng.standard_normal((joints, states))
    moved = gain + shift * rng.standard_normal((joints, states))
    against = rng.standard_normal((motors, joints, states))
    against = null * (against - against.mean(axis=0)).reshape(-1, states)
    spread = noise**2 * np.eye(motors * joints)
    system = LinearSystem(a, np.hstack([b / motors] * motors), 1e-3 * np.eye(states))
    return system, LinearPolicy(np.vstack([moved] * motors) + against, spread), LinearPolicy(np.vstack([gain] * motors), spread)
