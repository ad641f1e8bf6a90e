"""A batched perceptron with orthogonal initialisation."""

import itertools
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


def orthogonal(draw: Float[Array, " numbers"], rows: int, columns: int) -> Float[Array, "{rows} {columns}"]:
    """A matrix whose shorter side is orthonormal, evenly spread over all such: from the first of these normal numbers."""
    q, r = jnp.linalg.qr(draw[: rows * columns].reshape(max(rows, columns), min(rows, columns)))
    q = q * jnp.sign(jnp.diag(r))
    return q if rows >= columns else q.T


class MLP(eqx.Module):
    """A tanh perceptron over the last axis, with orthogonal initialisation."""

    weights: list[Float[Array, "inputs outputs"]]
    biases: list[Float[Array, " outputs"]]

    def __init__(
        self,
        key: PRNGKeyArray,
        num_inputs: int,
        hidden: Sequence[int],
        num_outputs: int,
        last_gain: float = 1.0,
    ) -> None:
        sizes = [num_inputs, *hidden, num_outputs]
        shapes = list(itertools.pairwise(sizes))
        gains = [2**0.5] * len(hidden) + [last_gain]
        # One draw for all layers, as long as the largest needs: a draw for each takes longer to compile.
        longest = max(rows * columns for rows, columns in shapes)
        draws = jax.vmap(lambda k: jax.random.normal(k, (longest,)))(jax.random.split(key, len(shapes)))
        self.weights = [gain * orthogonal(draw, *shape) for gain, draw, shape in zip(gains, draws, shapes, strict=True)]
        self.biases = [jnp.zeros(size) for size in sizes[1:]]

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        *hidden, last = zip(self.weights, self.biases, strict=True)
        for weight, bias in hidden:
            x = jnp.tanh(x @ weight + bias)
        return x @ last[0] + last[1]
