"""The value function, whose output follows the scale of its targets."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from iddm.nets.mlp import MLP


class ValueFunction(eqx.Module):
    """V(s) = μ + σ·net(s), with μ and σ following the targets and the last layer corrected so that V does not jump (PopArt)."""

    net: MLP
    mean: Float[Array, ""]
    second: Float[Array, ""]
    weight: Float[Array, ""]
    """How much of the moving averages is data: corrects their start at zero."""
    rate: float = eqx.field(static=True, default=0.05)

    @staticmethod
    def start(net: MLP) -> "ValueFunction":
        return ValueFunction(net, jnp.zeros(()), jnp.zeros(()), jnp.zeros(()))  # three buffers: they are donated

    def scale(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        weight = jnp.maximum(self.weight, 1e-8)
        mean = self.mean / weight
        std = jnp.sqrt(jnp.maximum(self.second / weight - mean**2, 1e-8))
        fresh = self.weight == 0
        return jnp.where(fresh, 0.0, mean), jnp.where(fresh, 1.0, std)

    def __call__(self, s: Float[Array, "*b obs"]) -> Float[Array, "*b"]:
        mean, std = self.scale()
        return mean + std * self.net(s)[..., 0]

    def normalise(self, target: Float[Array, "*b"]) -> Float[Array, "*b"]:
        mean, std = self.scale()
        return (target - mean) / std

    def follow(self, target: Float[Array, " rows"], valid: Float[Array, " rows"]) -> "ValueFunction":
        """Move μ and σ towards the targets' without changing V anywhere."""
        n = valid.sum()
        batch_mean, batch_second = (valid @ target) / n, (valid @ target**2) / n
        moved = ValueFunction(
            self.net,
            self.mean + self.rate * (batch_mean - self.mean),
            self.second + self.rate * (batch_second - self.second),
            self.weight + self.rate * (1 - self.weight),
        )
        (old_mean, old_std), (mean, std) = self.scale(), moved.scale()
        weight, bias = (
            self.net.weights[-1] * old_std / std,
            (old_mean + old_std * self.net.biases[-1] - mean) / std,
        )
        net = eqx.tree_at(lambda m: (m.weights[-1], m.biases[-1]), self.net, (weight, bias))
        return eqx.tree_at(lambda v: v.net, moved, net)
