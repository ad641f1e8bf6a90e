"""A batched perceptron."""

import itertools
from collections.abc import Callable, Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


def orthogonal(draw: Float[Array, " numbers"], rows: int, columns: int) -> Float[Array, "{rows} {columns}"]:
    """A matrix whose shorter side is orthonormal, evenly spread over all such: from the first of these normal numbers."""
    q, r = jnp.linalg.qr(draw[: rows * columns].reshape(max(rows, columns), min(rows, columns)))
    q = q * jnp.sign(jnp.diag(r))
    return q if rows >= columns else q.T


Activation = Literal["tanh", "relu"]
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"tanh": jnp.tanh, "relu": jax.nn.relu}


class MLP(eqx.Module):
    """A perceptron over the last axis, with orthogonal initialisation; its hidden layers may be normalised (Ba et al. 2016)."""

    weights: list[Float[Array, "inputs outputs"]]
    biases: list[Float[Array, " outputs"]]
    gains: list[Float[Array, " outputs"]]
    """Of the normalised hidden layers; none without layer normalisation."""
    shifts: list[Float[Array, " outputs"]]
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        key: PRNGKeyArray,
        num_inputs: int,
        hidden: Sequence[int],
        num_outputs: int,
        last_gain: float = 1.0,
        activation: Activation = "tanh",
        layer_norm: bool = False,
    ) -> None:
        sizes = [num_inputs, *hidden, num_outputs]
        shapes = list(itertools.pairwise(sizes))
        gains = [2**0.5] * len(hidden) + [last_gain]
        # One draw for all layers, as long as the largest needs: a draw for each takes longer to compile.
        longest = max(rows * columns for rows, columns in shapes)
        draws = jax.vmap(lambda k: jax.random.normal(k, (longest,)))(jax.random.split(key, len(shapes)))
        self.weights = [gain * orthogonal(draw, *shape) for gain, draw, shape in zip(gains, draws, shapes, strict=True)]
        self.biases = [jnp.zeros(size) for size in sizes[1:]]
        self.gains = [jnp.ones(size) for size in hidden] if layer_norm else []
        self.shifts = [jnp.zeros(size) for size in hidden] if layer_norm else []
        self.activation = activation

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        *hidden, last = zip(self.weights, self.biases, strict=True)
        for layer, (weight, bias) in enumerate(hidden):
            x = x @ weight + bias
            if self.gains:
                x = x - x.mean(axis=-1, keepdims=True)
                x = x * jax.lax.rsqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * self.gains[layer] + self.shifts[layer]
            x = ACTIVATIONS[self.activation](x)
        return x @ last[0] + last[1]
