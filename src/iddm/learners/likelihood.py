"""Maximum likelihood, θ* = argmax Σ log p_θ(a | x): for a policy x is the state, for an inverse model the state and its change.

So one `maximise` serves both, and an inverse dynamics model is a policy that sees more.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from iddm.nets import GaussianPolicy, Policy

HELD_OUT = 0.1
"""The share of the rows, the last in time, that is held out to report an error."""
LOWEST_LOG_STD = -3.0
"""A deterministic expert's likelihood has no maximum: σ would go to 0. It stops here."""


class Fit(NamedTuple):
    """A model and its optimiser's state."""

    model: Policy
    opt_state: PyTree

    @staticmethod
    def start(model: Policy) -> "Fit":
        return Fit(model, optax.adam(1.0).init(eqx.filter(model, eqx.is_array)))


class Rows(NamedTuple):
    """What a model learns: actions `a` given inputs `x`, with weight 0 where a row does not count."""

    x: Float[Array, "rows inputs"]
    a: Float[Array, "rows actions"] | Int[Array, " rows"]
    weight: Float[Array, " rows"]

    def split(self) -> tuple["Rows", "Rows"]:
        """The rows to learn from, and the held-out ones: the last in time, so that neighbours in time are on one side."""
        n = self.x.shape[0]
        cut = n - round(HELD_OUT * n)
        return Rows(*(v[:cut] for v in self)), Rows(*(v[cut:] for v in self))


def cloning_loss(model: Policy, rows: Rows) -> Float[Array, ""]:
    """−E[log p(a | x)]: cross-entropy for choices, Gaussian likelihood (squared error in units of σ) for a Box."""
    return -(rows.weight @ model.log_prob(rows.x, rows.a)) / jnp.maximum(rows.weight.sum(), 1.0)


def prediction_error(model: Policy, rows: Rows) -> Float[Array, ""]:
    """How wrong the most likely action is: the share of wrong choices, or the root mean square in half-widths of the Box."""
    best, total = model.mode(rows.x), rows.weight.sum()
    if isinstance(model, GaussianPolicy):
        return jnp.sqrt(rows.weight @ jnp.mean((best - rows.a) ** 2, axis=-1) / total)
    return rows.weight @ (best != rows.a) / total


def maximise(
    state: Fit,
    rows: Rows,
    key: PRNGKeyArray,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    num_epochs: Int[Array, ""] | None = None,
    last: Bool[Array, ""] | bool = False,
) -> tuple[Fit, dict[str, Array]]:
    """Maximum likelihood by Adam for some epochs, and how well it does on held-out rows.

    Of `epochs`, only the first `num_epochs` are run where that is given. The last time, as many epochs follow on all rows,
    the held-out ones too. Both may be traced.
    """
    optimise = optax.adam(learning_rate)
    known, held_out = rows.split()
    num_epochs = jnp.asarray(epochs) if num_epochs is None else num_epochs

    def step(state: Fit, batch: Rows) -> tuple[Fit, Array]:
        loss, grads = jax.value_and_grad(cloning_loss)(state.model, batch)
        updates, opt_state = optimise.update(grads, state.opt_state)
        return Fit(_bounded(eqx.apply_updates(state.model, updates)), opt_state), loss

    def run(state: Fit, rows: Rows, key: PRNGKeyArray, num_epochs: Array) -> tuple[Fit, Array]:
        num_rows = rows.x.shape[0]
        size = min(batch_size, num_rows)
        num_batches = num_rows // size

        def epoch(i: Array, carry: tuple[Fit, Array]) -> tuple[Fit, Array]:
            order = jax.random.permutation(jax.random.fold_in(key, i), num_rows)[: num_batches * size]
            batches = jax.tree.map(lambda v: v[order].reshape(num_batches, size, *v.shape[1:]), rows)
            return jax.lax.scan(step, carry[0], batches)

        return jax.lax.fori_loop(0, num_epochs, epoch, (state, jnp.zeros(num_batches)))

    k_known, k_all = jax.random.split(key)
    state, losses = run(state, known, k_known, num_epochs)
    metrics = {
        "loss": losses.mean(),
        "held_out_loss": cloning_loss(state.model, held_out),
        "held_out_error": prediction_error(state.model, held_out),
    }
    state, _ = run(state, rows, k_all, jnp.where(last, num_epochs, 0))
    return state, metrics


def _bounded(model: Policy) -> Policy:
    if not isinstance(model, GaussianPolicy):
        return model
    return eqx.tree_at(lambda m: m.log_std, model, jnp.maximum(model.log_std, LOWEST_LOG_STD))


def as_action(model: Policy, features: Array) -> Array:
    """An action's features in the form that `log_prob` takes: the number of a choice, or the components of a Box."""
    return features if isinstance(model, GaussianPolicy) else jnp.argmax(features, axis=-1)
