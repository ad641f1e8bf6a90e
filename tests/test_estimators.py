"""Each estimator of mutual information against the closed form on correlated Gaussians, −½ log(1−ρ²) per dimension."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from iddm.nets import MLP
from iddm.rewards.estimators import ESTIMATORS, NUM_CONTRASTS, infonce_pmi, log_mean_exp, mine_loss
from iddm.rewards.mutual_information import critic_of

pytestmark = pytest.mark.usefixtures("well_compiled")


def correlated(key: jax.Array, rows: int, dims: int, rho: float) -> tuple[jax.Array, jax.Array]:
    x, noise = jax.random.normal(key, (2, rows, dims))
    return x, rho * x + jnp.sqrt(1 - rho**2) * noise


def gaussian_pmi(x: jax.Array, y: jax.Array, rho: float) -> jax.Array:
    """log p(x, y) / p(x)p(y), exactly."""
    joint = -(x**2 - 2 * rho * x * y + y**2) / (2 * (1 - rho**2)) - 0.5 * jnp.log(1 - rho**2)
    return jnp.sum(joint + 0.5 * (x**2 + y**2), axis=-1)


def train_critic(name: str, dims: int, rho: float, updates: int) -> MLP:
    batch = 128 if name == "infonce" else 512  # each of its rows has 64 contrasts
    estimator, optimise = ESTIMATORS[name], optax.adam(optax.cosine_decay_schedule(1e-3 if dims > 2 else 3e-3, updates))
    net = MLP(jax.random.PRNGKey(0), 2 * dims, (128, 128), 1)

    def loss(net: MLP, x: jax.Array, y: jax.Array, average: jax.Array) -> tuple[jax.Array, jax.Array]:
        return estimator.loss(critic_of(net), x, y, average)

    def step(carry, key):
        net, state, average = carry
        grads, average = jax.grad(loss, has_aux=True)(net, *correlated(key, batch, dims, rho), average)
        updates, state = optimise.update(grads, state)
        return (eqx.apply_updates(net, updates), state, average), None

    start = (net, optimise.init(net), jnp.zeros(()))
    (net, _, _), _ = jax.jit(lambda c, k: jax.lax.scan(step, c, k))(start, jax.random.split(jax.random.PRNGKey(1), updates))
    return net


trained = functools.cache(train_critic)


@pytest.mark.parametrize(
    ("name", "dims", "rho", "updates"),
    [
        ("mine", 2, 0.8, 600),
        ("js", 2, 0.8, 600),
        ("infonce", 2, 0.8, 300),
        ("mine", 6, 0.65, 600),
        ("js", 6, 0.65, 600),
        ("infonce", 6, 0.65, 500),
        pytest.param("mine", 20, 0.4, 4500, marks=pytest.mark.slow),
        pytest.param("js", 20, 0.4, 4500, marks=pytest.mark.slow),
        pytest.param("infonce", 20, 0.4, 2000, marks=pytest.mark.slow),
    ],
)
def test_estimate_is_within_ten_percent_of_the_truth_on_gaussians(name: str, dims: int, rho: float, updates: int) -> None:
    truth = -0.5 * dims * np.log(1 - rho**2)
    assert truth < np.log(NUM_CONTRASTS) / 2  # InfoNCE's bound allows it
    net = trained(name, dims, rho, updates=updates)
    x, y = correlated(jax.random.PRNGKey(7), 16384, dims, rho)
    estimate = ESTIMATORS[name].estimate(critic_of(net), x, y)
    if name == "infonce":  # 64 contrasts do not allow the whole truth: the bound with the exact critic is what they do
        truth = float(ESTIMATORS[name].estimate(lambda x, y: gaussian_pmi(x, y, rho), x, y))
    assert abs(estimate - truth) < 0.1 * truth


PMI = {name: e.pmi for name, e in ESTIMATORS.items()} | {"infonce": functools.partial(infonce_pmi, num_partners=128)}
"""InfoNCE's own reading has the noise of few partners; here it is given many."""


@pytest.mark.parametrize("name", ["mine", "js", "infonce"])
def test_pointwise_information_matches_the_closed_form(name: str) -> None:
    dims, rho = 2, 0.8
    net = trained(name, dims, rho, updates=300 if name == "infonce" else 600)
    x, y = correlated(jax.random.PRNGKey(8), 4096, dims, rho)
    truth = gaussian_pmi(x, y, rho)
    pmi = PMI[name](critic_of(net), x, y, jnp.ones(len(x)), jax.random.PRNGKey(9))
    assert np.corrcoef(pmi, truth)[0, 1] > 0.95
    assert abs(float(pmi.mean() - truth.mean())) < 0.15 * float(truth.mean())


def test_infonce_cannot_exceed_the_logarithm_of_its_contrasts() -> None:
    x = jnp.arange(NUM_CONTRASTS, dtype=float)[:, None]
    perfect = lambda x, y: -1e3 * jnp.abs(x - y)[:, 0]  # noqa: E731
    assert ESTIMATORS["infonce"].estimate(perfect, x, x) <= np.log(NUM_CONTRASTS) + 1e-5


def test_mine_gradient_is_the_bounds_gradient_when_the_average_is_exact() -> None:
    net = MLP(jax.random.PRNGKey(0), 4, (16,), 1)
    x, y = correlated(jax.random.PRNGKey(2), 256, 2, 0.5)
    exact = -jax.grad(lambda n: ESTIMATORS["mine"].estimate(critic_of(n), x, y))(net).weights[0]
    average = log_mean_exp(critic_of(net)(x, jnp.roll(y, 1, axis=0)))
    ours = jax.grad(lambda n: mine_loss(critic_of(n), x, y, average)[0])(net).weights[0]
    np.testing.assert_allclose(ours, exact, atol=1e-6)


@pytest.mark.parametrize("name", ["mine", "infonce"])
def test_invalid_rows_are_in_no_marginal(name: str) -> None:
    x = jax.random.normal(jax.random.PRNGKey(0), (200, 1))
    valid = jnp.ones(200).at[::5].set(0.0)
    poisoned = jnp.where(valid[:, None] > 0, x, 1e3)
    critic = lambda x, y: (x * y)[:, 0]  # noqa: E731
    clean, other = (PMI[name](critic, rows, x, valid, jax.random.PRNGKey(1)) for rows in (x, poisoned))
    np.testing.assert_allclose(clean[valid > 0], other[valid > 0], rtol=1e-4)
