"""Terms that are not in the paper: effort, the entropy of the inverse model, and the entropy of states by neighbours."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iddm.config import default_config
from iddm.envs.spec import resolve, shape_of
from iddm.errors import UserError
from iddm.methods import OFF_POLICY, PAPER, TUNED, Method
from iddm.rewards import Effort, InverseEntropy, StateEntropy
from iddm.rewards.rows import AgentRows, Transitions
from iddm.rewards.state_entropy import entropy_estimate, log_distance
from iddm.training.setup import Setup

KEY = jax.random.PRNGKey(0)
FURTHER = ("gaifo-effort", "iddm-inverse", "iddm-knn", "iddm-zero")


def rows_of(s: jax.Array, a: jax.Array, s_next: jax.Array, valid: jax.Array | None = None) -> AgentRows:
    n = len(s)
    zeros = jnp.zeros(n)
    return AgentRows(
        transitions=Transitions(s=s, a=a, s_next=s_next),
        log_prob=zeros,
        env_reward=zeros,
        valid=jnp.ones(n) if valid is None else valid,
        terminated=zeros > 0,
        step=jnp.zeros(n, int),
        next_obs=s_next,
        target=None,
    )


def test_effort_is_the_squared_norm_of_the_action() -> None:
    rows = rows_of(jnp.zeros((2, 1)), jnp.array([[0.0, 0.0], [0.6, -0.8]]), jnp.zeros((2, 1)))
    np.testing.assert_allclose(Effort(0.5).reward((), rows, KEY), [0.0, -0.5], atol=1e-6)


def test_effort_of_choices_is_refused() -> None:
    with pytest.raises(UserError, match="choices, which have no effort"):
        Effort().for_env(shape_of(resolve("CartPole")))


def learned(term: InverseEntropy, rows: AgentRows) -> tuple[jax.Array, jax.Array]:
    """The surprise of each row after learning from these rows, and the reward."""

    def learn(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = term.init(key, rows.transitions.s.shape[1], rows.transitions.a.shape[1])
        state, _ = term.update(state, rows, None, key)
        return term.surprise(state[0], rows.transitions), term.reward(state, rows, key)

    return jax.jit(learn)(KEY)


def test_inverse_entropy_rewards_nothing_where_actions_are_determined_and_rare_actions_elsewhere() -> None:
    """Three choices: 0 moves; 1 and 2 both stay, and 1 is taken three times as often."""
    choice = jax.random.choice(KEY, 3, (2000,), p=jnp.array([0.5, 0.375, 0.125]))
    s_next = (choice == 0).astype(float)[:, None]
    rows = rows_of(jnp.zeros((2000, 1)), jax.nn.one_hot(choice, 3), s_next)
    term = InverseEntropy(1.0, "categorical", updates=150, learning_rate=1e-2, hidden=(16,))
    surprise, reward = learned(term, rows)
    found = [float(surprise[choice == i].mean()) for i in range(3)]
    np.testing.assert_allclose(found, [0.0, -np.log(0.75), -np.log(0.25)], atol=0.1)
    assert abs(float(reward.mean())) < 1e-5  # being alive is not rewarded
    assert reward[choice == 2].mean() > reward[choice == 1].mean() > reward[choice == 0].mean()


def test_inverse_entropy_of_a_box_is_nothing_where_the_step_names_the_action() -> None:
    a = jax.random.uniform(KEY, (2000, 1), minval=-1, maxval=1)
    moves = (jax.random.uniform(jax.random.fold_in(KEY, 1), (2000, 1)) > 0.5).astype(float)
    rows = rows_of(moves, a, moves + moves * a)  # s' = s + a where s is 1; where s is 0 the action has no effect
    term = InverseEntropy(1.0, "gaussian", updates=300, learning_rate=5e-3, batch_size=128, hidden=(32,))
    surprise, _ = learned(term, rows)
    named, free = (float(surprise[moves[:, 0] == side].mean()) for side in (1, 0))
    assert named < 0.35  # against log(0.58 / 0.1) + ½ of a uniform action that nothing determines
    assert free == pytest.approx(np.log(np.sqrt(1 / 3) / 0.1) + 0.5, abs=0.25)


def test_neighbours_estimate_the_entropy_of_a_gaussian() -> None:
    x = jax.random.normal(KEY, (2000, 3)) * jnp.array([1.0, 2.0, 0.5])
    truth = 1.5 * np.log(2 * np.pi * np.e)  # log det of the deviations is 0
    assert float(jax.jit(entropy_estimate, static_argnums=2)(x, jnp.ones(2000), 5)) == pytest.approx(truth, abs=0.1)


def test_invalid_rows_are_nobodys_neighbours() -> None:
    x = jnp.array([[0.0], [0.1], [1.0]])
    distance = jnp.exp(jax.jit(log_distance, static_argnums=2)(x, jnp.array([1.0, 0.0, 1.0]), 1))
    np.testing.assert_allclose(distance, [1.0, 0.1, 1.0], atol=1e-5)


def test_a_lonely_state_is_rewarded_more_than_a_crowded_one() -> None:
    s = jnp.concatenate([0.01 * jnp.arange(50.0), jnp.array([5.0])])[:, None]
    reward = jax.jit(lambda s: StateEntropy(1.0, 3).reward((), rows_of(s, s, s), KEY))(s)
    assert int(jnp.argmax(reward)) == 50
    assert abs(float(reward.mean())) < 1e-5


@pytest.mark.parametrize("method", FURTHER)
def test_further_methods_are_in_both_presets_and_are_no_defaults(method: str) -> None:
    assert method in TUNED
    assert PAPER[method].learner == PAPER["gaifo"].learner
    assert default_config("Hopper").method == "iddm"
    assert "effort" not in default_config("Hopper").terms


@pytest.mark.parametrize("methods", [TUNED, OFF_POLICY])
def test_the_control_of_two_equal_methods_has_no_weight_of_its_own(methods: dict[str, Method]) -> None:
    terms = {term.name: term for term in methods["iddm-zero"].terms}
    assert terms["adversarial"] == methods["gaifo"].terms[0]
    assert (terms["entropy"].weight, terms["mi"].weight) == (0.0, 0.0)


def test_the_control_starts_from_another_discriminator_off_policy() -> None:
    setups = [Setup.prepare(default_config("Hopper", method, learner="sac")) for method in ("gaifo", "iddm-zero")]
    states = (jax.tree.leaves(setup.initial_state().terms["adversarial"]) for setup in setups)
    assert any((one != other).any() for one, other in zip(*states, strict=True))
