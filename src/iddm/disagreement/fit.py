"""A small network fitted to rows with early stopping: the one learner behind the estimate of the disagreement."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from iddm.nets import MLP

HIDDEN = (64, 64)
STEPS, CHECK_EVERY = 1_000, 50
BATCH_SIZE = 256
LEARNING_RATE = 2e-3
RIDGE = 1e-4
"""Of the linear part, per unit of weight; inputs have deviation 1."""

Loss = Callable[[Array, Array], Array]
"""From predictions and targets [rows, outputs] to a loss per row."""


def squared_error(predicted: Float[Array, "rows outputs"], target: Float[Array, "rows outputs"]) -> Float[Array, " rows"]:
    return jnp.sum((predicted - target) ** 2, axis=-1)


def cross_entropy(logits: Float[Array, "rows choices"], target: Float[Array, "rows choices"]) -> Float[Array, " rows"]:
    """−log softmax(logits) of the choice that is one-hot in `target`."""
    return -jnp.sum(jax.nn.log_softmax(logits) * target, axis=-1)


class Net(eqx.Module):
    """x ↦ W x + b + MLP(x)."""

    linear: Float[Array, "inputs_and_one outputs"]
    mlp: MLP

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        return _with_one(x) @ self.linear + self.mlp(x)


class Rows(eqx.Module):
    """What a network is fitted to: the target is to be near base + net(x), where the weight is not 0."""

    x: Float[Array, "rows inputs"]
    target: Float[Array, "rows outputs"]
    base: Float[Array, "rows outputs"]
    weight: Float[Array, " rows"]


@functools.partial(jax.jit, static_argnames=("loss", "steps"))
def fit(key: PRNGKeyArray, known: Rows, held_out: Rows, loss: Loss, steps: int = STEPS) -> Net:
    """The network that does best on the held-out rows on its way, or the start of that way, which predicts `base`.

    For squared errors the linear part begins at its least squares, so that the network adds to it where it can.
    """
    k_init, k_draw = jax.random.split(key)
    num_inputs, num_outputs = known.x.shape[1], known.target.shape[1]
    optimise = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, steps))

    def mean_loss(net: Net, rows: Rows) -> Array:
        return (rows.weight @ loss(rows.base + net(rows.x), rows.target)) / jnp.maximum(rows.weight.sum(), 1e-12)

    def step(carry: tuple, key: PRNGKeyArray) -> tuple[tuple, None]:
        net, state = carry
        chosen = jax.random.randint(key, (BATCH_SIZE,), 0, known.x.shape[0])
        grads = jax.grad(mean_loss)(net, jax.tree.map(lambda part: part[chosen], known))
        updates, state = optimise.update(grads, state)
        return (eqx.apply_updates(net, updates), state), None

    def some_steps(carry: tuple, key: PRNGKeyArray) -> tuple[tuple, None]:
        net, state, best, lowest = carry
        (net, state), _ = jax.lax.scan(step, (net, state), jax.random.split(key, CHECK_EVERY))
        return (net, state, *_better((net, mean_loss(net, held_out)), (best, lowest))), None

    nothing = Net(jnp.zeros((num_inputs + 1, num_outputs)), MLP(k_init, num_inputs, HIDDEN, num_outputs, 0.0, "relu"))
    start = nothing if loss is not squared_error else Net(_least_squares(known), nothing.mlp)
    best = _better((start, mean_loss(start, held_out)), (nothing, mean_loss(nothing, held_out)))
    carry = (start, optimise.init(eqx.filter(start, eqx.is_array)), *best)
    (_, _, best, _), _ = jax.lax.scan(some_steps, carry, jax.random.split(k_draw, steps // CHECK_EVERY))
    return best


def _better(new: tuple[Net, Array], old: tuple[Net, Array]) -> tuple[Net, Array]:
    return jax.tree.map(lambda a, b: jnp.where(new[1] < old[1], a, b), new, old)


def _least_squares(rows: Rows) -> Float[Array, "inputs_and_one outputs"]:
    x = _with_one(rows.x)
    weighted = x.T * (rows.weight / rows.weight.sum())
    return jnp.linalg.solve(weighted @ x + RIDGE * jnp.eye(x.shape[1]), weighted @ (rows.target - rows.base))


def _with_one(x: Float[Array, "rows inputs"]) -> Float[Array, "rows inputs_and_one"]:
    return jnp.concatenate([x, jnp.ones((x.shape[0], 1))], axis=1)
