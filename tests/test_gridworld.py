import math
from collections import deque

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from iddm.envs.gridworld import ENV_ID, Gridworld, draw_maze, register
from iddm.errors import UserError
from iddm.theory import (
    FiniteMDP,
    corollary_1,
    disagreement,
    is_injective,
    kl,
    occupancy,
    random_policy,
    shared_transitions,
    state_entropy,
    theorem_1,
)
from iddm.theory.maze import CELLS, MAX_STEPS, MAZE, START, TARGET, distances, gridworld_mdp, gridworld_rewards
from iddm.theory.toy import approximate_disagreement, exact_measures, expected_return, shortest_path_moves, spread

LEFT, RIGHT, UP, DOWN = range(4)


def uniform(num_choices):
    return np.full(num_choices, 1 / num_choices)


def walk(env, policy, rng, max_steps=MAX_STEPS):
    """One episode: its (s, a, s') and its return."""
    s, _ = env.reset()
    steps, total = [], 0.0
    for _ in range(max_steps):
        a = int(np.searchsorted(np.cumsum(policy[s]), rng.random()))
        s_next, reward, terminated, _, _ = env.step(a)
        steps.append((s, a, s_next))
        total += reward
        s = s_next
        if terminated:
            break
    return steps, total


# --- the maze ---


def test_the_shortest_path_has_13_moves():
    places = {mark: (r, c) for r, row in enumerate(MAZE) for c, mark in enumerate(row) if mark in "ST"}
    found, queue = {places["S"]: 0}, deque([places["S"]])
    while queue:
        r, c = queue.popleft()
        for cell in ((r, c - 1), (r, c + 1), (r - 1, c), (r + 1, c)):
            if MAZE[cell[0]][cell[1]] != "#" and cell not in found:
                found[cell] = found[r, c] + 1
                queue.append(cell)
    assert found[places["T"]] == 13
    assert set(found) == set(CELLS)  # and no cell is cut off
    assert distances()[START] == 13


def test_the_maze_is_closed_by_walls():
    assert {len(row) for row in MAZE} == {len(MAZE[0])}
    assert set(MAZE[0] + MAZE[-1] + "".join(row[0] + row[-1] for row in MAZE)) == {"#"}


# --- the environment ---


@pytest.mark.parametrize("num_choices", [1, 4])
def test_gymnasium_accepts_the_environment(num_choices):
    register()
    check_env(gym.make(ENV_ID, num_choices=num_choices, render_mode="rgb_array").unwrapped)


def test_the_environment_is_registered_once_with_a_time_limit():
    register()
    register()
    env = gym.make(ENV_ID, num_choices=3)
    assert env.action_space == gym.spaces.Discrete(12)
    assert env.observation_space == gym.spaces.Discrete(len(CELLS))
    env.reset(seed=0)
    for t in range(1, MAX_STEPS + 1):
        _, _, terminated, truncated, _ = env.step(LEFT)  # into the wall
        assert not terminated
        assert truncated == (t == MAX_STEPS)
    env.close()


@pytest.mark.parametrize("num_choices", [1, 2, 4])
def test_the_arrays_and_the_environment_agree_on_every_state_and_action(num_choices):
    env, mdp, rewards = Gridworld(num_choices), gridworld_mdp(num_choices), gridworld_rewards(num_choices)
    for s in range(len(CELLS)):
        for a in range(4 * num_choices):
            if s == TARGET:
                continue
            env.reset()
            env._visited = [s]
            s_next, reward, terminated, truncated, _ = env.step(a)
            assert mdp.transitions[s, a, s_next] == 1
            assert reward == rewards[s, a]
            assert terminated == mdp.terminal[s_next]
            assert not truncated


def test_a_step_costs_1_or_5_and_the_target_pays_100():
    env = Gridworld(num_choices=2)
    env.reset()
    assert env.step(RIGHT)[1] == -1
    assert env.step(4 + LEFT)[1] == -5
    s, reward, *_ = env.step(UP)
    assert (s, reward) == (START, -1)  # a wall costs the same, and one stays
    rewards = gridworld_rewards(2)
    assert set(np.unique(rewards[np.arange(len(CELLS)) != TARGET])) == {-5.0, -1.0, 95.0, 99.0}


@pytest.mark.parametrize("num_choices", [1, 2, 11])
def test_the_best_return_is_87(num_choices):
    env, distance = Gridworld(num_choices), distances()
    best = spread(shortest_path_moves(noise=0.0), np.eye(num_choices)[0])
    steps, total = walk(env, best, np.random.default_rng(0))
    assert len(steps) == distance[START] == 13
    assert total == 87
    measured = expected_return(gridworld_mdp(num_choices), gridworld_rewards(num_choices), best, MAX_STEPS)
    assert measured == pytest.approx((87, 1))


def test_the_drawing_has_a_red_agent_a_green_target_black_cells_and_grey_walls():
    env = Gridworld(render_mode="rgb_array")
    env.reset()
    env.step(RIGHT)
    image, middle = env.render(), 16
    assert image is not None
    assert image.shape == (32 * len(MAZE), 32 * len(MAZE[0]), 3)
    assert image.dtype == np.uint8

    def colour(row, col):
        return tuple(int(x) for x in image[32 * row + middle, 32 * col + middle])

    red, green, wall = colour(1, 2), colour(*CELLS[TARGET]), colour(0, 0)
    assert red[0] > 2 * max(red[1:])
    assert green[1] > 2 * max(green[0], green[2])
    assert colour(1, 3) == (0, 0, 0)
    assert len(set(wall)) == 1
    assert wall[0] > 100 > colour(*CELLS[START])[0] > 0  # left behind: dark grey
    np.testing.assert_array_equal(draw_maze(), draw_maze([START]))


def test_bad_use_of_the_gridworld_is_refused_in_a_sentence():
    env = Gridworld(2)
    env.reset()
    with pytest.raises(UserError, match="no action 8: expected 0 to 7"):
        env.step(8)
    with pytest.raises(UserError, match="num_choices is 0"):
        Gridworld(0)
    with pytest.raises(UserError, match="num_choices is 0"):
        gridworld_mdp(0)
    with pytest.raises(UserError, match='cannot render "human"'):
        Gridworld(render_mode="human")
    env._visited = [TARGET]
    with pytest.raises(UserError, match="call reset"):
        env.step(0)


# --- exact against sampled ---


def test_occupancies_and_return_match_rollouts_in_the_environment():
    num_choices, discount, rng = 2, 0.95, np.random.default_rng(0)
    mdp = gridworld_mdp(num_choices, discount)
    policy = spread(shortest_path_moves(0.5), [0.7, 0.3])
    env, counts, returns = Gridworld(num_choices), np.zeros(mdp.transitions.shape), []
    for _ in range(3000):
        steps, total = walk(env, policy, rng)
        returns.append(total)
        for t, (s, a, s_next) in enumerate(steps):
            counts[s, a, s_next] += discount**t
    rho = occupancy(mdp, policy)
    assert np.abs(counts / counts.sum() - rho.sas).sum() < 0.05  # in L1, over all (s, a, s')
    exact, success = expected_return(mdp, gridworld_rewards(num_choices), policy, MAX_STEPS)
    assert abs(np.mean(returns) - exact) < 4 * np.std(returns) / math.sqrt(len(returns))
    assert success == pytest.approx(1, abs=1e-3)
    assert rho.s[TARGET] == 0  # nothing is done there
    assert rho.ss[:, TARGET].sum() > 0  # but it is arrived at


def test_the_return_with_a_time_limit_approaches_the_one_without():
    mdp, rewards, policy = gridworld_mdp(), gridworld_rewards(), shortest_path_moves(0.5)
    going = np.where(mdp.terminal, 0.0, np.einsum("sa,sat->st", policy, mdp.transitions))
    value = np.linalg.solve(np.eye(len(CELLS)) - going, np.sum(policy * rewards, axis=1))
    assert expected_return(mdp, rewards, policy, 2000)[0] == pytest.approx(value[START])


# --- the theory in the maze ---


@pytest.mark.parametrize("num_choices", [1, 2, 4, 11])
def test_theorem_1_holds_in_the_maze(num_choices):
    mdp = gridworld_mdp(num_choices)
    assert theorem_1(mdp, random_policy(mdp, 0), random_policy(mdp, 1)).error < 1e-9


def test_theorem_1_keeps_its_precision_for_policies_that_are_all_but_deterministic():
    mdp, rng = gridworld_mdp(4), np.random.default_rng(0)
    logits = 30 * rng.standard_normal((2, mdp.num_states, mdp.num_actions))
    agent, expert = np.exp(logits - logits.max(axis=2, keepdims=True))
    agent, expert = agent / agent.sum(axis=1, keepdims=True), expert / expert.sum(axis=1, keepdims=True)
    claim = theorem_1(mdp, agent, expert)
    assert math.isfinite(claim.left)
    assert claim.error < 1e-9


def test_walls_stop_the_maze_from_being_injective_with_one_choice():
    mdp = gridworld_mdp(1)
    assert not is_injective(mdp)
    assert all(s == s_next for s, s_next in shared_transitions(mdp))  # two moves into two walls both stay
    measures = exact_measures(1, random_policy(mdp, 0), random_policy(mdp, 1))
    assert measures.disagreement > 0
    assert measures.disagreement_of_bumps == pytest.approx(measures.disagreement, abs=1e-12)
    assert corollary_1(mdp, random_policy(mdp, 0), random_policy(mdp, 1)).verdict == "premise not met"


def test_walls_leave_the_past_in_doubt():
    mdp = gridworld_mdp(1)
    assert state_entropy(mdp, random_policy(mdp, 0)).terms["H(s|s',a)"] > 0.1


def test_choices_alone_change_the_disagreement_and_not_the_state_transitions():
    moves, agent, expert = shortest_path_moves(0.3), np.array([0.2, 0.5, 0.3]), np.array([0.8, 0.1, 0.1])
    measures = exact_measures(3, spread(moves, agent), spread(moves, expert))
    assert measures.kl_ss == pytest.approx(0, abs=1e-12)
    assert measures.disagreement == pytest.approx(kl(agent, expert))
    assert measures.kl_sa == pytest.approx(kl(agent, expert))


def test_a_blind_collapse_has_the_return_of_the_uniform_choice_and_more_disagreement():
    moves, n = shortest_path_moves(0.2), 4
    expert = spread(moves, [0.85, 0.05, 0.05, 0.05])
    sharp = 0.98 * np.eye(n) + 0.02 / n  # all but collapsed on one choice, which nobody told the agent
    collapsed = [exact_measures(n, spread(moves, choice), expert) for choice in sharp]
    even = exact_measures(n, spread(moves, uniform(n)), expert)
    assert np.mean([m.expected_return for m in collapsed]) == pytest.approx(even.expected_return)
    assert np.mean([m.disagreement for m in collapsed]) > even.disagreement + 0.5


def test_a_deterministic_expert_makes_the_divergences_infinite_and_says_so():
    expert = np.eye(8)[shortest_path_moves(0.0).argmax(axis=1)]
    measures = exact_measures(2, spread(shortest_path_moves(0.1), uniform(2)), expert)
    assert measures.kl_ss == measures.kl_sa == math.inf
    assert math.isnan(measures.disagreement)  # the expert has no inverse dynamics where it never goes
    same_way = np.eye(4)[expert.argmax(axis=1)]
    measures = exact_measures(2, spread(same_way, uniform(2)), expert)
    assert measures.kl_ss == pytest.approx(0, abs=1e-12)
    assert measures.disagreement == math.inf


def test_an_agent_equal_to_its_expert_has_no_divergence():
    policy = random_policy(gridworld_mdp(4), 3)
    measures = exact_measures(4, policy, policy)
    assert (measures.disagreement, measures.kl_ss, measures.kl_sa) == pytest.approx((0, 0, 0), abs=1e-12)


def test_exact_measures_name_the_policy_that_is_wrong():
    with pytest.raises(UserError, match=r"expert_policy has shape \(41, 8\): expected \(41, 4\)"):
        exact_measures(1, shortest_path_moves(), spread(shortest_path_moves(), uniform(2)))


# --- Fig. 1a ---


def test_one_choice_has_no_disagreement():
    estimate = approximate_disagreement(1, samples=100)
    assert estimate.mean == pytest.approx(0, abs=1e-12)


def test_two_choices_match_the_quadrature():
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    # KL = log cosh(d/2) with d = θ_1 − θ_2 ~ N(0, 2)
    exact = np.sum(weights * np.log(np.cosh(nodes / np.sqrt(2)))) / np.sqrt(2 * np.pi)
    estimate = approximate_disagreement(2, samples=40_000, seed=1)
    assert abs(estimate.mean - exact) < 4 * estimate.standard_error
    assert estimate.standard_error < 0.002


def test_the_approximate_disagreement_grows_with_the_choices_and_stays_below_a_half():
    means = [approximate_disagreement(k, samples=20_000).mean for k in (1, 2, 4, 11, 50, 200)]
    assert means == sorted(means)
    assert means[-1] < 0.5


def test_the_approximate_disagreement_is_that_of_a_two_state_mdp():
    rng, k = np.random.default_rng(0), 5
    go = np.zeros((2, k, 2))
    go[:, :, 1] = 1  # every action leads from s0 to s1, where the episode ends
    mdp = FiniteMDP(go, np.array([1.0, 0.0]), 0.9, np.array([False, True]))
    theta = rng.standard_normal(k)
    softmax = np.exp(theta) / np.exp(theta).sum()
    expected = np.log(np.exp(theta).mean()) - theta.mean()
    assert disagreement(mdp, np.tile(uniform(k), (2, 1)), np.tile(softmax, (2, 1))) == pytest.approx(expected)


def test_bad_counts_for_fig_1a_are_refused():
    with pytest.raises(UserError, match="k is 0"):
        approximate_disagreement(0)
