"""Finite Markov decision processes and what a policy visits in them, exactly.

The paper's theorems are statements about four distributions (IDDM, Tab. 1). With finitely many states and
actions each is an array, and one linear solve gives them all, to the precision of float64:

    ρ(s)   ρ(s,a) = ρ(s) π(a|s)   ρ(s,a,s') = ρ(s,a) T(s'|s,a)   ρ(s,s') = Σ_a ρ(s,a,s')

**Normalised.** IDDM, Eq. 1 sums γ^t P(s_t = s), which adds up to 1/(1−γ). Everything here carries the factor
(1−γ) and adds up to 1: KL divergences, entropies and mutual information are defined for distributions.

**The end of an episode.** Reaching a state marked `terminal` ends the episode: nothing is done there, and the
next step is the first of a new episode, drawn from `initial`. Stopping the process at the end and normalising
gives the same ρ as re-starting it (a renewal: ρ_restart = ρ_stopped + E[γ^T] ρ_restart, so the two are
proportional). The transition *into* the terminal state counts, as in a rollout; the re-start is no
transition, and ρ(s) = 0 at a terminal state. An absorbing state is the other common model: leave `terminal`
empty and write the self-loop into `transitions`. Mind that ρ then also compares actions taken after the end,
which have no effect and are in nobody's demonstrations.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iddm.errors import UserError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# float32 softmax rows are off by about 1e-7; what passes is normalised again, so that identities hold to 1e-9
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """T(s'|s,a), μ(s) and γ as arrays: `transitions` [S, A, S], `initial` [S], `discount` in [0, 1).

    `terminal` [S] marks the states that end the episode when reached (none by default; see the module's text).
    The rows of `transitions` at a terminal state are never used, but must still be distributions. Arrays are
    copied and read-only.
    """

    transitions: Array
    initial: Array
    discount: float
    terminal: Mask = None  # pyright: ignore[reportAssignmentType]  # filled in below, never None afterwards

    def __post_init__(self) -> None:
        transitions = np.asarray(self.transitions)
        if transitions.ndim != 3 or transitions.shape[0] != transitions.shape[2] or 0 in transitions.shape:
            raise UserError(
                f"transitions has shape {transitions.shape}: expected [S, A, S], "
                "a distribution over the S next states for each of S states and A actions."
            )
        num_states = transitions.shape[0]
        transitions = _distributions(transitions, "transitions", ("state", "action"))
        initial = np.asarray(self.initial)
        if initial.shape != (num_states,):
            raise UserError(f"initial has shape {initial.shape}: expected ({num_states},), one entry per state.")
        initial = _distributions(initial, "initial", ())
        discount = float(self.discount)
        if not 0.0 <= discount < 1.0:
            raise UserError(f"discount is {discount}: expected a number in [0, 1).")
        terminal = np.zeros(num_states, bool) if self.terminal is None else np.array(self.terminal)
        if terminal.shape != (num_states,) or terminal.dtype != np.bool_:
            raise UserError(f"terminal is {terminal.dtype} of shape {terminal.shape}: expected ({num_states},) booleans.")
        if np.any(initial[terminal] > 0):
            state = int(np.flatnonzero(terminal & (initial > 0))[0])
            raise UserError(f"initial starts episodes in state {state}, which is terminal: an episode needs a step.")
        for name, array in (("transitions", transitions), ("initial", initial), ("terminal", terminal)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "discount", discount)

    @property
    def num_states(self) -> int:
        return self.transitions.shape[0]

    @property
    def num_actions(self) -> int:
        return self.transitions.shape[1]

    def continuing(self) -> Array:
        """[S, A, S]: where the *next step* is taken: T(s'|s,a), a terminal s' replaced by a draw from μ."""
        ends = self.transitions[:, :, self.terminal].sum(axis=2, keepdims=True)
        return np.where(self.terminal, 0.0, self.transitions) + ends * self.initial


def check_policy(mdp: FiniteMDP, policy: ArrayLike, name: str = "policy") -> Array:
    """π(a|s) as float64 [S, A] with normalised rows, or a sentence that says what is wrong."""
    policy = np.asarray(policy)
    expected = (mdp.num_states, mdp.num_actions)
    if policy.shape != expected:
        raise UserError(f"{name} has shape {policy.shape}: expected {expected}, a distribution over actions for each state.")
    return _distributions(policy, name, ("state",))


@dataclass(frozen=True, eq=False)
class Occupancy:
    """The occupancy measures of one policy (IDDM, Tab. 1), each of which sums to 1."""

    s: Array
    """ρ(s) [S]"""
    sa: Array
    """ρ(s,a) [S, A]"""
    ss: Array
    """ρ(s,s') [S, S]"""
    sas: Array
    """ρ(s,a,s') [S, A, S]"""


def occupancy(mdp: FiniteMDP, policy: ArrayLike) -> Occupancy:
    """ρ(s) = (1−γ) Σ_t γ^t P(s_t = s | π): IDDM, Eq. 1 normalised; then Tab. 1.

    Solved as (I − γ Pᵀ) ρ = (1−γ) μ. The matrix is a column-dominant M-matrix: elimination needs no pivoting and
    subtracts on the diagonal only. So rare states keep their relative precision, and a state that cannot be
    reached gets exactly 0, on which infinite divergences rely.
    """
    policy = check_policy(mdp, policy)
    step = np.einsum("sa,sat->st", policy, mdp.continuing())
    system = np.eye(mdp.num_states) - mdp.discount * step.T
    rho_s = np.linalg.solve(system, (1.0 - mdp.discount) * mdp.initial)
    rho_sa = rho_s[:, None] * policy
    rho_sas = rho_sa[:, :, None] * mdp.transitions
    return Occupancy(rho_s, rho_sa, rho_sas.sum(axis=1), rho_sas)


def inverse_dynamics(mdp: FiniteMDP, policy: ArrayLike) -> Array:
    """ρ(a|s,s') = T(s'|s,a) π(a|s) / Σ_ā T(s'|s,ā) π(ā|s): IDDM, Eq. 2, as [S, A, S], indexed [s, a, s'].

    NaN where the policy cannot make the transition s → s': the model is a distribution over nothing there.
    """
    joint = check_policy(mdp, policy)[:, :, None] * mdp.transitions
    total = np.broadcast_to(joint.sum(axis=1, keepdims=True), joint.shape)
    return np.divide(joint, total, out=np.full_like(joint, np.nan), where=total > 0)


def shared_transitions(mdp: FiniteMDP) -> list[tuple[int, int]]:
    """The transitions (s, s') that several actions can make: what stops T from being injective in a."""
    num_causes = (mdp.transitions > 0).sum(axis=1)
    num_causes[mdp.terminal] = 0
    return [(int(s), int(s_next)) for s, s_next in np.argwhere(num_causes > 1)]


def is_injective(mdp: FiniteMDP) -> bool:
    """Whether a transition (s, s') names its action: the premise of Corollary 1."""
    return not shared_transitions(mdp)


def _distributions(values: NDArray, name: str, axes: tuple[str, ...]) -> Array:
    """`values` as float64 with its last axis normalised; `axes` are the words for the axes before it."""
    if values.dtype.kind not in "fiub":
        raise UserError(f"{name} holds {values.dtype}: expected numbers.")
    values = values.astype(np.float64)
    totals = values.sum(axis=-1)
    wrong = ~((np.abs(totals - 1.0) <= SUM_TOLERANCE) & np.all(values >= 0, axis=-1))  # true for NaN as well
    if np.any(wrong):
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        row, total = values[where], float(totals[where])
        place = " at " + ", ".join(f"{word} {i}" for word, i in zip(axes, where, strict=True)) if axes else ""
        if np.isnan(row).any():
            fault = f"has NaN (entry {int(np.flatnonzero(np.isnan(row))[0])})"
        elif (row < 0).any():
            fault = f"has a negative probability ({row.min():.6g})"
        else:
            fault = f"sums to {total:.6g} instead of 1"
        raise UserError(f"{name} is not a distribution{place}: it {fault}.")
    return values / totals[..., None]
