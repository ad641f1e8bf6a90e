"""Advantages, the value's scale and the policy's update, against independent computations."""

import jax
import jax.numpy as jnp
import numpy as np

from iddm.envs.spaces import ActionSpace
from iddm.learners.ppo_loss import PPOBatch, gae, optimiser, ppo_epochs, ppo_loss
from iddm.nets import MLP, ValueFunction, make_policy

BOX = ActionSpace(2, False, (-1.0, -1.0), (1.0, 1.0), shape=(2,))


def random_trajectory(seed: int = 0, length: int = 12):
    rng = np.random.default_rng(seed)
    reward, value, next_value = (rng.normal(size=(length, 1)).astype(np.float32) for _ in range(3))
    no = np.zeros((length, 1), bool)
    return reward, value, next_value, no


def test_gae_equals_the_sum_of_discounted_deltas() -> None:
    reward, value, next_value, no = random_trajectory()
    ours = gae(*map(jnp.asarray, (reward, value, next_value, no, no)), 0.9, 0.8)[:, 0]
    delta = (reward + 0.9 * next_value - value)[:, 0]
    independent = [sum(0.72 ** (k - t) * delta[k] for k in range(t, len(delta))) for t in range(len(delta))]
    np.testing.assert_allclose(ours, independent, rtol=1e-5)


def test_gae_with_decay_one_is_the_discounted_return_minus_the_value() -> None:
    reward, value, _, no = random_trajectory()
    next_value = np.concatenate([value[1:], np.ones((1, 1), np.float32)])
    ours = gae(*map(jnp.asarray, (reward, value, next_value, no, no)), 0.9, 1.0)[:, 0]
    total = [sum(0.9 ** (k - t) * reward[k, 0] for k in range(t, 12)) + 0.9 ** (12 - t) for t in range(12)]
    np.testing.assert_allclose(ours, np.array(total) - value[:, 0], rtol=1e-4)


def test_gae_bootstraps_on_truncation_and_not_on_termination() -> None:
    reward, value, next_value, no = random_trajectory()
    ends = no.copy()
    ends[5] = True
    as_arrays = [jnp.asarray(x) for x in (reward, value, next_value)]
    truncated = gae(*as_arrays, jnp.asarray(no), jnp.asarray(ends), 0.9, 0.8)
    terminated = gae(*as_arrays, jnp.asarray(ends), jnp.asarray(ends), 0.9, 0.8)
    np.testing.assert_allclose(truncated[5], reward[5] + 0.9 * next_value[5] - value[5], rtol=1e-5)
    np.testing.assert_allclose(terminated[5], reward[5] - value[5], rtol=1e-5)


def test_nothing_flows_across_the_end_of_an_episode() -> None:
    reward, value, next_value, no = random_trajectory()
    ends = no.copy()
    ends[5] = True
    other = reward.copy()
    other[6:] += 100
    a, b = (gae(*map(jnp.asarray, (r, value, next_value, no, ends)), 0.9, 0.8) for r in (reward, other))
    np.testing.assert_array_equal(a[:6], b[:6])


def test_value_does_not_change_when_its_scale_follows_new_targets() -> None:
    value = ValueFunction.start(MLP(jax.random.PRNGKey(0), 3, (8,), 1))
    s = jax.random.normal(jax.random.PRNGKey(1), (64, 3))
    for shift in (0.0, 50.0, -20.0):
        target = shift + 7 * jax.random.normal(jax.random.PRNGKey(2), (64,))
        moved = value.follow(target, jnp.ones(64))
        np.testing.assert_allclose(moved(s), value(s), rtol=1e-3, atol=1e-3)
        value = moved


def batch_of(policy, rows: int = 64) -> PPOBatch:
    s = jax.random.normal(jax.random.PRNGKey(3), (rows, 3))
    action = policy.sample(s, policy.noise(jax.random.PRNGKey(4), (rows,)))
    advantage = jax.random.normal(jax.random.PRNGKey(5), (rows,))
    return PPOBatch(s, action, policy.log_prob(s, action), advantage, jnp.zeros(rows), jnp.ones(rows))


def test_first_gradient_of_the_clipped_loss_is_the_policy_gradient() -> None:
    policy, net = make_policy(jax.random.PRNGKey(0), 3, BOX, (8,), -1.0), MLP(jax.random.PRNGKey(1), 3, (8,), 1)
    batch = batch_of(policy)
    ours = jax.grad(lambda p: ppo_loss((p, net), batch, 0.2, 0.5)[0])(policy).log_std
    plain = jax.grad(lambda p: -(p.log_prob(batch.s, batch.action) * batch.advantage).mean())(policy).log_std
    np.testing.assert_allclose(ours, plain, rtol=1e-4)


def test_invalid_rows_do_not_move_the_update() -> None:
    policy, net = make_policy(jax.random.PRNGKey(0), 3, BOX, (8,), -1.0), MLP(jax.random.PRNGKey(1), 3, (8,), 1)
    batch = batch_of(policy)
    masked = batch._replace(valid=batch.valid.at[:32].set(0.0))
    poisoned = masked._replace(advantage=masked.advantage.at[:32].set(1e6), target=masked.target.at[:32].set(1e6))
    for a, b in zip(
        *(jax.tree.leaves(jax.grad(lambda p, x=x: ppo_loss(p, x, 0.2, 0.5)[0])((policy, net))) for x in (masked, poisoned)),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_update_raises_the_probability_of_rewarded_actions() -> None:
    policy, net = make_policy(jax.random.PRNGKey(0), 3, BOX, (32,), -1.0), MLP(jax.random.PRNGKey(1), 3, (32,), 1)
    batch = batch_of(policy, 256)
    batch = batch._replace(advantage=jnp.sign(batch.action[:, 0]))
    opt_state = optimiser(0.5).init((policy, net))
    settings = {"epochs": 10, "batch_size": 64, "clip": 0.2, "value_weight": 0.5, "max_grad_norm": 0.5}
    (after, _), _, metrics = jax.jit(
        lambda: ppo_epochs((policy, net), opt_state, batch, jax.random.PRNGKey(6), jnp.asarray(3e-3), **settings)
    )()
    assert (after.net(batch.s)[:, 0] - policy.net(batch.s)[:, 0]).mean() > 0.01
    assert np.isfinite(metrics["approx_kl"])
