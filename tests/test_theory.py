import ast
import io
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import iddm.theory
from iddm.errors import UserError
from iddm.theory import (
    Claim,
    FiniteMDP,
    check_policy,
    conditional_entropy,
    conditional_kl,
    corollary_1,
    corollary_1_js,
    disagreement,
    disagreement_js,
    entropy,
    entropy_chain,
    entropy_decomposition,
    epsilon,
    inverse_dynamics,
    inverse_entropy_bound,
    is_injective,
    jeffreys_bound,
    js,
    kl,
    largest_cross_entropy,
    largest_inverse_cross_entropy,
    lemma_1,
    lemma_1_js,
    lemma_2,
    mutual_information,
    occupancy,
    random_mdp,
    random_policy,
    state_entropy,
    theorem_1,
    theorem_1_js,
    theorem_2,
    theorem_2_js,
    uniform_policy,
)
from iddm.theory.report import all_claims, print_theory, theory_report

TIGHT = 1e-9
SIZES = [(4, 2), (5, 3), (12, 4), (30, 6)]
KINDS = ["dense", "sparse", "deterministic", "injective"]
EXAMPLES = [
    pytest.param(kind, states, actions, seed, terminal, id=f"{kind}-{states}x{actions}-{seed}-ends{terminal}")
    for kind in KINDS
    for states, actions in SIZES
    for seed, terminal in ((0, 0), (1, 1), (2, 0))
]


def example(kind, num_states, num_actions, seed, num_terminal=0, discount=0.9):
    mdp = random_mdp(kind, num_states, num_actions, seed, discount, num_terminal)
    return mdp, random_policy(mdp, 100 + seed), random_policy(mdp, 200 + seed)


@pytest.fixture
def shared():
    """Deterministic dynamics in which actions share transitions."""
    return example("deterministic", 5, 6, 0)


# --- occupancy measures and inverse dynamics ---


@pytest.mark.parametrize(("kind", "num_states", "num_actions", "seed", "num_terminal"), EXAMPLES)
def test_occupancies_equal_the_truncated_series(kind, num_states, num_actions, seed, num_terminal):
    mdp, policy, _ = example(kind, num_states, num_actions, seed, num_terminal, discount=0.8)
    at, series = mdp.initial.copy(), np.zeros((num_states, num_actions, num_states))
    for t in range(200):
        step = at[:, None, None] * policy[:, :, None] * mdp.transitions
        series += (1 - mdp.discount) * mdp.discount**t * step
        arrived = step.sum(axis=(0, 1))
        at = np.where(mdp.terminal, 0.0, arrived) + arrived[mdp.terminal].sum() * mdp.initial
    rho = occupancy(mdp, policy)
    np.testing.assert_allclose(rho.sas, series, rtol=1e-10, atol=0)
    np.testing.assert_allclose(rho.ss, series.sum(axis=1), rtol=1e-10, atol=0)
    np.testing.assert_allclose(rho.sa, series.sum(axis=2), rtol=1e-10, atol=0)
    np.testing.assert_allclose(rho.s, series.sum(axis=(1, 2)), rtol=1e-10, atol=0)
    assert all(abs(part.sum() - 1) < 1e-12 for part in (rho.s, rho.sa, rho.ss, rho.sas))


def test_ending_an_episode_and_starting_again_give_the_same_occupancy():
    mdp, policy, _ = example("sparse", 10, 3, 4, num_terminal=2)
    stay = np.where(mdp.terminal, 0.0, np.einsum("sa,sat->st", policy, mdp.transitions))
    stopped = np.linalg.solve(np.eye(10) - mdp.discount * stay.T, mdp.initial)
    np.testing.assert_allclose(occupancy(mdp, policy).s, stopped / stopped.sum(), rtol=1e-12)


def test_what_cannot_be_reached_is_exactly_zero_and_what_is_rare_keeps_its_precision():
    chain = np.zeros((40, 2, 40))
    chain[np.arange(39), 0, [*range(1, 39), 38]] = 1  # action 0 goes on, up to state 38
    chain[:39, 1, 0] = 1  # action 1 starts over
    chain[39, :, 0] = 1  # nothing leads to state 39
    policy = np.tile([1e-6, 1 - 1e-6], (40, 1))
    rho = occupancy(FiniteMDP(chain, np.eye(40)[0], 0.9), policy)
    assert rho.s[39] == 0
    expected = np.array([rho.s[0] * (0.9e-6) ** k for k in range(38)])  # down to 1e-222
    np.testing.assert_allclose(rho.s[:38], expected, rtol=1e-11)


def test_inverse_dynamics_is_the_conditional_of_the_joint_occupancy(shared):
    mdp, policy, _ = shared
    rho, model = occupancy(mdp, policy), inverse_dynamics(mdp, policy)
    made = rho.ss > 0
    joint = np.moveaxis(rho.sas, 1, 2)[made]
    np.testing.assert_allclose(np.moveaxis(model, 1, 2)[made], joint / rho.ss[made][:, None], rtol=1e-12)


def test_inverse_dynamics_is_undefined_where_the_policy_makes_no_such_transition(shared):
    mdp, policy, _ = shared
    possible = np.einsum("sa,sat->st", policy, mdp.transitions) > 0
    model = inverse_dynamics(mdp, policy)
    assert np.isnan(np.moveaxis(model, 1, 2)[~possible]).all()
    np.testing.assert_allclose(model.sum(axis=1)[possible], 1.0)


# --- divergences ---


def test_divergences_of_two_coins():
    p, q = [0.5, 0.5], [0.25, 0.75]
    assert kl(p, q) == pytest.approx(0.5 * math.log(4 / 3))
    assert entropy(p) == pytest.approx(math.log(2))
    assert js(p, q) == pytest.approx(entropy([0.375, 0.625]) - 0.5 * entropy(p) - 0.5 * entropy(q))


def test_divergences_ignore_the_shape_of_the_array():
    p, q = np.random.default_rng(0).dirichlet(np.ones(24), size=2)
    for shape in ((4, 6), (2, 3, 4)):
        assert kl(p.reshape(shape), q.reshape(shape)) == pytest.approx(kl(p, q), abs=1e-12)
        assert js(p.reshape(shape), q.reshape(shape)) == pytest.approx(js(p, q), abs=1e-12)


def test_zero_probability_costs_nothing_on_the_left_and_is_infinite_on_the_right():
    assert entropy([1.0, 0.0]) == 0.0
    assert kl([1.0, 0.0], [0.5, 0.5]) == pytest.approx(math.log(2))
    assert kl([0.5, 0.5], [1.0, 0.0]) == math.inf
    assert js([1.0, 0.0], [0.0, 1.0]) == pytest.approx(math.log(2))
    assert conditional_kl([0.5, 0.5], [0.5, 0.5], [1.0, 0.0]) == math.inf
    assert math.isnan(conditional_kl([0.5, 0.5], [0.5, 0.5], [1.0, math.nan]))
    assert conditional_kl([1.0, 0.0], [1.0, 0.5], [0.5, math.nan]) == pytest.approx(math.log(2))


def test_mutual_information_is_zero_for_independent_and_entropy_for_equal_variables():
    p, q = np.random.default_rng(1).dirichlet(np.ones(5), size=2)
    assert mutual_information(np.outer(p, q), x=0) == pytest.approx(0, abs=1e-12)
    assert mutual_information(np.diag(p), x=0) == pytest.approx(entropy(p))
    assert conditional_entropy(np.diag(p), given=1) == pytest.approx(0, abs=1e-12)
    assert conditional_entropy(np.outer(p, q), given=-1) == pytest.approx(entropy(p))


# --- theorems ---


@pytest.mark.parametrize(("kind", "num_states", "num_actions", "seed", "num_terminal"), EXAMPLES)
def test_identities_hold_for_any_dynamics(kind, num_states, num_actions, seed, num_terminal):
    mdp, agent, expert = example(kind, num_states, num_actions, seed, num_terminal)
    of_two = [f(mdp, agent, expert) for f in (lemma_1, theorem_1, lemma_1_js, theorem_1_js)]
    for claim in [*of_two, entropy_decomposition(mdp, agent), state_entropy(mdp, agent)]:
        assert claim.error < TIGHT, claim
    for claim in (theorem_2(mdp, agent, expert), theorem_2_js(mdp, agent, expert), jeffreys_bound(mdp, agent, expert)):
        assert claim.relation == "≤"
        assert claim.left <= claim.right + TIGHT, claim


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.999])
def test_disagreement_equals_kl_sa_minus_kl_ss_at_any_discount(discount):
    mdp, agent, expert = example("sparse", 9, 4, 3, discount=discount)
    claim = theorem_1(mdp, agent, expert)
    assert claim.left > 0.01
    assert claim.error < TIGHT


@pytest.mark.parametrize("seed", range(4))
def test_lfd_equals_naive_lfo_for_injective_dynamics(seed):
    mdp, agent, expert = example("injective", 8, 5, seed)
    assert is_injective(mdp)
    assert kl(occupancy(mdp, agent).sa, occupancy(mdp, expert).sa) > 0.01
    for claim in (corollary_1(mdp, agent, expert), corollary_1_js(mdp, agent, expert), lemma_2(mdp, agent, expert)):
        assert claim.premise
        assert claim.error < TIGHT


def test_injective_dynamics_may_be_stochastic():
    transitions = np.zeros((4, 2, 4))
    transitions[:, 0, :2] = [0.3, 0.7]  # action 0 leads to one half of the states, action 1 to the other
    transitions[:, 1, 2:] = [0.6, 0.4]
    mdp = FiniteMDP(transitions, np.full(4, 0.25), 0.9)
    claim = corollary_1(mdp, random_policy(mdp, 1), random_policy(mdp, 2))
    assert claim.premise
    assert claim.error < TIGHT


def test_lfd_differs_from_naive_lfo_when_actions_share_transitions(shared):
    mdp, agent, expert = shared
    claim = corollary_1(mdp, agent, expert)
    assert not is_injective(mdp)
    assert claim.verdict == "premise not met"
    assert claim.left - claim.right == pytest.approx(disagreement(mdp, agent, expert), abs=TIGHT)


@pytest.mark.parametrize("num_terminal", [0, 1])
def test_the_constant_of_theorem_2_is_the_supremum_over_all_policies(num_terminal):
    mdp, _, expert = example("sparse", 4, 3, 5, num_terminal)
    log_expert = np.log(np.where(mdp.terminal[:, None], 1.0, occupancy(mdp, expert).sa))
    deterministic = (np.eye(3)[list(choice)] for choice in itertools.product(range(3), repeat=4))
    best = max(-np.sum(occupancy(mdp, policy).sa * log_expert) for policy in deterministic)
    assert largest_cross_entropy(mdp, expert) == pytest.approx(best, abs=TIGHT)


def test_the_constant_of_theorem_2_is_infinite_when_the_expert_leaves_a_pair_out(shared):
    mdp, agent, _ = shared
    expert = np.eye(mdp.num_actions)[np.zeros(mdp.num_states, int)]
    assert largest_cross_entropy(mdp, expert) == math.inf
    assert theorem_2(mdp, agent, random_policy(mdp, 9)).right < math.inf


def test_the_slack_of_theorem_2_is_kl_ss_and_what_the_cross_entropy_lacks(shared):
    claim = theorem_2(*shared)
    assert claim.terms["KL(s,s')"] > 0.01  # the paper's premise, KL(s,s') = 0, is not met, and the bound holds
    assert claim.right - claim.left == pytest.approx(claim.terms["KL(s,s')"] + claim.terms["Const − cross entropy"], abs=TIGHT)


@pytest.mark.parametrize(("kind", "num_states", "num_actions", "seed", "num_terminal"), EXAMPLES)
def test_the_inverse_entropy_bound_holds_and_is_0_for_injective_dynamics(kind, num_states, num_actions, seed, num_terminal):
    mdp, agent, expert = example(kind, num_states, num_actions, seed, num_terminal)
    bound = inverse_entropy_bound(mdp, agent, expert)
    assert bound.holds
    if kind == "injective":
        assert bound.right == pytest.approx(0.0, abs=TIGHT)


def test_the_inverse_entropy_bound_is_usually_tighter_than_theorem_2_and_not_always():
    """A constant over all policies is one over bad ones too: of these examples, one has the paper's bound a little lower."""
    tighter = [
        inverse_entropy_bound(*trio).right <= theorem_2(*trio).right + TIGHT
        for trio in (example(*one.values) for one in EXAMPLES)
    ]
    assert (sum(tighter), len(tighter)) == (47, 48)


def test_the_constant_of_the_inverse_entropy_bound_is_the_supremum_over_all_policies():
    mdp, _, expert = example("deterministic", 4, 3, 0)
    inverse = inverse_dynamics(mdp, expert)
    surprise = np.where(mdp.transitions > 0, -np.log(np.where(mdp.transitions > 0, inverse, 1.0)), 0.0)
    choices = itertools.product(range(3), repeat=4)
    largest = max(float((occupancy(mdp, np.eye(3)[list(choice)]).sas * surprise).sum()) for choice in choices)
    assert largest_inverse_cross_entropy(mdp, expert) == pytest.approx(largest, abs=TIGHT)


def test_the_inverse_entropy_bound_is_infinite_where_the_expert_never_takes_a_redundant_action():
    mdp = FiniteMDP(np.ones((1, 2, 1)), np.ones(1), 0.9)
    assert largest_inverse_cross_entropy(mdp, [[1.0, 0.0]]) == math.inf


def test_once_transitions_are_matched_only_the_inverse_entropy_is_free():
    """Two actions make the same transition: whichever is preferred, H(s) and H(s,s') stay, and H(s,a) moves with H(a|s,s')."""
    transitions = np.zeros((2, 3, 2))
    transitions[0, :2, 1] = transitions[0, 2, 0] = transitions[1, :, 0] = 1.0
    mdp = FiniteMDP(transitions, np.array([1.0, 0.0]), 0.9)
    claims = [entropy_chain(mdp, [[p, 0.6 - p, 0.4], [1.0, 0.0, 0.0]]) for p in (0.3, 0.6)]
    even, collapsed = claims
    assert even.holds
    assert collapsed.holds
    assert even.terms["H(s,s')"] == pytest.approx(collapsed.terms["H(s,s')"], abs=TIGHT)
    gained = even.terms["H(a|s,s')"] - collapsed.terms["H(a|s,s')"]
    assert even.left - collapsed.left == pytest.approx(gained, abs=TIGHT)
    assert gained > 0.1


def test_more_entropy_can_mean_more_disagreement():
    """The bound of Theorem 2 falls as the entropy rises, whatever the expert does; the disagreement need not."""
    both_stay = FiniteMDP(np.ones((1, 2, 1)), np.ones(1), 0.9)
    expert, peaked, uniform = np.array([[0.9, 0.1]]), np.array([[0.8, 0.2]]), uniform_policy(both_stay)
    bounds = [theorem_2(both_stay, agent, expert) for agent in (peaked, uniform)]
    assert bounds[1].right < bounds[0].right
    assert bounds[1].left > bounds[0].left


def test_state_entropy_is_mutual_information_only_if_the_past_can_be_told():
    cycle = np.stack([np.roll(np.eye(5), 1, axis=1), np.roll(np.eye(5), 2, axis=1)], axis=1)
    mdp = FiniteMDP(cycle, np.full(5, 0.2), 0.9)  # each action permutes the states: (s', a) tells s
    assert state_entropy(mdp, random_policy(mdp, 0)).terms["H(s|s',a)"] == pytest.approx(0, abs=TIGHT)
    corridor = np.zeros((3, 2, 3))
    corridor[[0, 1, 2], 0, [0, 0, 1]] = 1  # left, with a wall at 0
    corridor[[0, 1, 2], 1, [1, 2, 2]] = 1  # right, with a wall at 2
    mdp = FiniteMDP(corridor, np.full(3, 1 / 3), 0.9)  # deterministic as well
    claim = state_entropy(mdp, random_policy(mdp, 0))
    assert claim.error < TIGHT
    assert claim.terms["H(s|s',a)"] > 0.1


@pytest.mark.parametrize(("kind", "num_states", "num_actions", "seed", "num_terminal"), EXAMPLES[::4])
def test_epsilon_is_never_negative(kind, num_states, num_actions, seed, num_terminal):
    mdp, agent, expert = example(kind, num_states, num_actions, seed, num_terminal)
    assert epsilon(mdp, agent, expert) >= -TIGHT


def test_epsilon_vanishes_as_the_state_transitions_agree():
    moves = np.random.default_rng(0).dirichlet(np.ones(3), size=6)
    single = random_mdp("injective", 6, 3, 0)
    mdp = FiniteMDP(np.repeat(single.transitions, 2, axis=1), single.initial, 0.9)  # two choices for each move

    def policy(first_choice):
        return np.stack([moves * first_choice, moves * (1 - first_choice)], axis=2).reshape(6, 6)

    agent, expert = policy(0.3), policy(0.8)
    assert kl(occupancy(mdp, agent).ss, occupancy(mdp, expert).ss) == pytest.approx(0, abs=TIGHT)
    assert epsilon(mdp, agent, expert) == pytest.approx(0, abs=TIGHT)
    assert disagreement_js(mdp, agent, expert) == pytest.approx(js([0.3, 0.7], [0.8, 0.2]), abs=TIGHT)
    assert disagreement(mdp, agent, expert) == pytest.approx(kl([0.3, 0.7], [0.8, 0.2]), abs=TIGHT)


def test_the_js_bound_of_the_paper_is_never_below_log_2(shared):
    mdp, agent, expert = shared
    assert theorem_2_js(mdp, agent, expert).right >= math.log(2)
    assert theorem_2_js(mdp, expert, expert).right >= math.log(2)
    assert jeffreys_bound(mdp, expert, expert).right == pytest.approx(0, abs=TIGHT)


def test_a_disagreement_with_an_action_the_expert_never_takes_is_infinite():
    both_stay = FiniteMDP(np.ones((1, 2, 1)), np.ones(1), 0.9)
    claim = theorem_1(both_stay, [[0.5, 0.5]], [[1.0, 0.0]])
    assert claim.left == math.inf
    assert claim.holds  # ∞ = ∞ − 0


def test_a_disagreement_over_transitions_the_expert_never_makes_is_undefined():
    apart = FiniteMDP(np.eye(2)[[[0, 1], [0, 1]]], np.array([1.0, 0.0]), 0.9)
    claim = theorem_1(apart, [[0.5, 0.5]] * 2, [[1.0, 0.0]] * 2)
    assert math.isnan(claim.left)
    assert claim.terms["KL(s,s')"] == math.inf
    assert claim.verdict == "undefined"
    assert lemma_1(apart, [[0.5, 0.5]] * 2, [[1.0, 0.0]] * 2).holds  # ∞ = ∞


def test_a_claim_that_is_wrong_says_so():
    assert Claim("", "", "", 1.0, 1.0 + 1e-6).verdict == "fails"
    assert Claim("", "", "", 1.0, math.inf).verdict == "fails"
    assert Claim("", "", "", 2.0, 1.0, "≤").error == 1.0
    assert Claim("", "", "", 1.0, 2.0, "≤").holds


# --- bad input ---

GOOD = np.full((3, 2, 3), 1 / 3)
START = np.array([1.0, 0.0, 0.0])


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            (changed(GOOD, (2, 1), 0.3), START, 0.9),
            "not a distribution at state 2, action 1: it sums to 0.9 instead of 1",
        ),
        ((changed(GOOD, (0, 1, 2), np.nan), START, 0.9), "at state 0, action 1: it has NaN"),
        ((changed(GOOD, (0, 1), [1.2, -0.2, 0]), START, 0.9), "at state 0, action 1: it has a negative probability"),
        ((GOOD[0], START, 0.9), r"transitions has shape \(2, 3\): expected \[S, A, S\]"),
        ((GOOD, START[:2], 0.9), r"initial has shape \(2,\): expected \(3,\)"),
        ((GOOD, START / 2, 0.9), "initial is not a distribution: it sums to 0.5"),
        ((GOOD, START, 1.0), r"discount is 1.0: expected a number in \[0, 1\)"),
        ((GOOD, START, math.nan), "discount is nan"),
        ((GOOD, START, 0.9, np.array([True, False, False])), "starts episodes in state 0, which is terminal"),
        ((GOOD, START, 0.9, np.zeros(2, bool)), "terminal is bool of shape"),
        ((GOOD.astype(str), START, 0.9), "expected numbers"),
    ],
)
def test_an_mdp_that_is_none_is_refused_in_a_sentence(arguments, sentence):
    with pytest.raises(UserError, match=sentence):
        FiniteMDP(*arguments)


def test_a_policy_that_is_none_is_refused_in_a_sentence():
    mdp = FiniteMDP(GOOD, START, 0.9)
    with pytest.raises(UserError, match=r"policy has shape \(2, 3\): expected \(3, 2\)"):
        occupancy(mdp, np.full((2, 3), 1 / 3))
    with pytest.raises(UserError, match=r"expert is not a distribution at state 1: it sums to 1\.5"):
        check_policy(mdp, [[0.5, 0.5], [0.5, 1.0], [0.5, 0.5]], "expert")


def test_divergences_refuse_what_is_no_distribution():
    with pytest.raises(UserError, match="p is not a distribution: its 2 entries sum to 3"):
        kl([1.0, 2.0], [0.5, 0.5])
    with pytest.raises(UserError, match="not a distribution"):
        entropy([math.nan, 1.0])
    with pytest.raises(UserError, match=r"p has shape \(2,\) and q has shape \(1,\)"):
        kl([0.5, 0.5], [1.0])


def test_injective_dynamics_need_as_many_states_as_actions():
    with pytest.raises(UserError, match="5 actions cannot lead to different ones of 4 states"):
        random_mdp("injective", 4, 5, 0)


def test_a_float32_policy_keeps_the_identities():
    mdp, agent, expert = example("sparse", 12, 4, 0)
    assert theorem_1(mdp, agent.astype(np.float32), expert.astype(np.float32)).error < TIGHT


def test_an_mdp_cannot_be_changed_after_it_was_checked():
    mdp = FiniteMDP(GOOD, START, 0.9)
    with pytest.raises(ValueError, match="read-only"):
        mdp.transitions[0, 0, 0] = 2.0


# --- the report ---


def test_no_theorem_fails_in_the_report():
    rows = theory_report()
    assert len({row.example for row in rows}) == 6
    assert {row.claim.verdict for row in rows} == {"holds", "premise not met"}
    assert all(row.claim.error < TIGHT for row in rows if row.claim.premise)


def test_the_report_prints_each_theorem_with_its_error():
    out = io.StringIO()
    print_theory(console=Console(file=out, width=80))
    for claim in all_claims(*example("dense", 4, 2, 0)):
        assert claim.name in out.getvalue()
    assert "Gridworld, n = 4" in out.getvalue()
    assert "H(s|s',a)" in out.getvalue()


def test_the_theory_needs_no_jax():
    for path in Path(iddm.theory.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not [name for name in imported if name.split(".")[0] in ("jax", "equinox", "optax")], path
