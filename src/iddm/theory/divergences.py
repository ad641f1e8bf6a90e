"""Entropies, divergences and mutual information of distributions held as arrays of any shape, in nats.

0 · log 0 = 0 throughout. What is infinite is `math.inf`, never a large number; what is undefined is
`math.nan`.
"""

import numpy as np
from numpy.typing import ArrayLike

from iddm.errors import UserError
from iddm.theory.mdp import SUM_TOLERANCE, Array

Axes = int | tuple[int, ...]


def entropy(p: ArrayLike) -> float:
    """H(p) = −Σ p log p."""
    p = _distribution(p, "p")
    return _expect_log(p, 1.0, p)


def cross_entropy(p: ArrayLike, q: ArrayLike) -> float:
    """−Σ p log q; infinite where q = 0 and p > 0."""
    p, q = _pair(p, q)
    return _expect_log(p, 1.0, q)


def kl(p: ArrayLike, q: ArrayLike) -> float:
    """KL(p‖q) = Σ p log(p/q); infinite where q = 0 and p > 0."""
    p, q = _pair(p, q)
    return max(0.0, _expect_log(p, p, q))  # rounding may leave −1e-17


def js(p: ArrayLike, q: ArrayLike) -> float:
    """JS(p‖q) = ½ KL(p‖m) + ½ KL(q‖m) with m = ½ (p + q); between 0 and log 2, always finite."""
    p, q = _pair(p, q)
    m = 0.5 * (p + q)
    return 0.5 * kl(p, m) + 0.5 * kl(q, m)


def conditional_entropy(joint: ArrayLike, given: Axes) -> float:
    """H(X|Y) = −Σ p(x,y) log p(x|y), where Y are the axes `given` of the joint array and X are the others."""
    p = _distribution(joint, "joint")
    x = _other_axes(p, given)
    return max(0.0, _expect_log(p, p.sum(axis=x, keepdims=True), p))


def mutual_information(joint: ArrayLike, x: Axes) -> float:
    """I(X;Y) = Σ p(x,y) log p(x,y) / (p(x) p(y)), where X are the axes `x` of the joint and Y the others."""
    p = _distribution(joint, "joint")
    y = _other_axes(p, x)
    p_x, p_y = p.sum(axis=y, keepdims=True), p.sum(axis=_other_axes(p, y), keepdims=True)
    return max(0.0, _expect_log(p, p, p_x) + _expect_log(p, 1.0, p_y))  # p(x) p(y) itself could underflow to 0


def conditional_kl(joint: ArrayLike, p: ArrayLike, q: ArrayLike) -> float:
    """E_joint[log p/q]: KL between the conditionals p and q, as the paper takes it (proof of Theorem 1).

    With joint = ρ_π(s,a,s'), p = ρ_π(a|s,s') and q = ρ_E(a|s,s') this is the inverse dynamics disagreement.
    Infinite where q = 0 is needed; NaN where a conditional is itself NaN (undefined) and the joint has mass.
    """
    return float(conditional_kl_terms(joint, p, q).sum())


def conditional_kl_terms(joint: ArrayLike, p: ArrayLike, q: ArrayLike) -> Array:
    """joint · log p/q, entry by entry: what `conditional_kl` sums, to see where it comes from."""
    return _log_ratio(_distribution(joint, "joint"), np.asarray(p, np.float64), np.asarray(q, np.float64))


def conditional_js(joint_p: ArrayLike, joint_q: ArrayLike, p: ArrayLike, q: ArrayLike) -> float:
    """½ E_joint_p[log p/m] + ½ E_joint_q[log q/m], m = ½ (p + q): JS between conditionals (IDDM, App. A.2).

    Each expectation is under its own joint, while m weighs the two conditionals equally. That mismatch is
    what the ε of Theorem 3 makes up for. At most log 2; NaN where a conditional is undefined and either joint
    has mass.
    """
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    m = 0.5 * (p + q)
    return 0.5 * conditional_kl(joint_p, p, m) + 0.5 * conditional_kl(joint_q, q, m)


def _log_ratio(weight: Array, above: Array | float, below: Array) -> Array:
    """weight · log(above/below), 0 where weight is: the one place that decides on zeros, infinities and NaN."""
    terms, mass = np.zeros(weight.shape), weight > 0
    above = np.broadcast_to(above, weight.shape)[mass]
    below = np.broadcast_to(below, weight.shape)[mass]
    with np.errstate(divide="ignore"):  # log 0 = −inf is meant
        terms[mass] = weight[mass] * (np.log(above) - np.log(below))  # the ratio itself could overflow
    return terms


def _expect_log(weight: Array, above: Array | float, below: Array) -> float:
    return float(_log_ratio(weight, above, below).sum())


def _distribution(values: ArrayLike, name: str) -> Array:
    array = np.asarray(values, np.float64)
    if not (np.all(array >= 0) and abs(float(array.sum()) - 1.0) <= SUM_TOLERANCE):
        raise UserError(
            f"{name} is not a distribution: its {array.size} entries sum to {float(array.sum()):.6g} "
            f"and the smallest is {float(array.min(initial=np.inf)):.6g}."
        )
    return array


def _pair(p: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    p, q = _distribution(p, "p"), _distribution(q, "q")
    if p.shape != q.shape:
        raise UserError(f"p has shape {p.shape} and q has shape {q.shape}: both must be over the same outcomes.")
    return p, q


def _other_axes(array: Array, axes: Axes) -> tuple[int, ...]:
    axes = (axes,) if isinstance(axes, int) else axes
    return tuple(set(range(array.ndim)) - {axis % array.ndim for axis in axes})
