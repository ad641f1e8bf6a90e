"""The two policies: Gaussian for a Box of actions, categorical for a finite set of them."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from iddm.envs.spaces import ActionSpace
from iddm.nets.mlp import MLP

LOG_STD_LIMITS = (-5.0, 2.0)
"""Of a squashed Gaussian."""


class GaussianPolicy(eqx.Module):
    """π(a|s) = N(μ(s), diag σ²) with a σ that does not depend on the state; a bounded Box is [-1, 1] here."""

    net: MLP
    log_std: Float[Array, " actions"]
    limits: tuple[tuple[float, ...], tuple[float, ...]] = eqx.field(static=True)

    def noise(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
        return jax.random.normal(key, (*shape, self.log_std.shape[0]))

    def sample(self, s: Float[Array, "*b obs"], noise: Float[Array, "*b actions"]) -> Float[Array, "*b actions"]:
        return self.net(s) + jnp.exp(self.log_std) * noise

    def mode(self, s: Float[Array, "*b obs"]) -> Float[Array, "*b actions"]:
        return self.net(s)

    def log_prob(self, s: Float[Array, "*b obs"], a: Float[Array, "*b actions"]) -> Float[Array, "*b"]:
        z = (a - self.net(s)) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * z**2 - self.log_std - 0.5 * jnp.log(2 * jnp.pi), axis=-1)

    def entropy(self, s: Float[Array, "*b obs"]) -> Float[Array, "*b"]:
        total = jnp.sum(self.log_std + 0.5 * jnp.log(2 * jnp.pi * jnp.e))
        return jnp.full(s.shape[:-1], total)

    def features(self, a: Float[Array, "*b actions"]) -> Float[Array, "*b actions"]:
        """The action that the environment saw: clipped to the Box."""
        return jnp.clip(a, *map(jnp.asarray, self.limits))


class SquashedGaussianPolicy(eqx.Module):
    """π(a|s): the tanh of N(μ(s), diag σ(s)²), within [-1, 1]   (Haarnoja et al. 2018, App. C)."""

    net: MLP
    """Its outputs are μ and a number for each log σ, which lies within `LOG_STD_LIMITS`."""

    def _gaussian(self, s: Float[Array, "*b obs"]) -> tuple[Float[Array, "*b actions"], Float[Array, "*b actions"]]:
        mean, raw = jnp.split(self.net(s), 2, axis=-1)
        low, high = LOG_STD_LIMITS
        return mean, low + 0.5 * (high - low) * (jnp.tanh(raw) + 1)

    def noise(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
        return jax.random.normal(key, (*shape, self.net.biases[-1].shape[0] // 2))

    def sample(self, s: Float[Array, "*b obs"], noise: Float[Array, "*b actions"]) -> Float[Array, "*b actions"]:
        mean, log_std = self._gaussian(s)
        return jnp.tanh(mean + jnp.exp(log_std) * noise)

    def sample_with_log_prob(
        self, s: Float[Array, "rows obs"], key: PRNGKeyArray
    ) -> tuple[Float[Array, "rows actions"], Float[Array, " rows"]]:
        """a ~ π and log π(a|s), without the loss of digits that undoing the tanh would have."""
        mean, log_std = self._gaussian(s)
        noise = self.noise(key, s.shape[:-1])
        return jnp.tanh(mean + jnp.exp(log_std) * noise), self._log_density(mean + jnp.exp(log_std) * noise, noise, log_std)

    def mode(self, s: Float[Array, "*b obs"]) -> Float[Array, "*b actions"]:
        return jnp.tanh(self._gaussian(s)[0])

    def log_prob(self, s: Float[Array, "*b obs"], a: Float[Array, "*b actions"]) -> Float[Array, "*b"]:
        mean, log_std = self._gaussian(s)
        u = jnp.arctanh(jnp.clip(a, -1 + 1e-6, 1 - 1e-6))
        return self._log_density(u, (u - mean) * jnp.exp(-log_std), log_std)

    def _log_density(
        self, u: Float[Array, "*b actions"], z: Float[Array, "*b actions"], log_std: Float[Array, "*b actions"]
    ) -> Float[Array, "*b"]:
        """log N(z) − log σ − log(1 − tanh² u), where log(1 − tanh² u) = 2 (log 2 − u − softplus(−2u))."""
        slope = 2 * (jnp.log(2.0) - u - jax.nn.softplus(-2 * u))
        return jnp.sum(-0.5 * z**2 - log_std - 0.5 * jnp.log(2 * jnp.pi) - slope, axis=-1)

    def features(self, a: Float[Array, "*b actions"]) -> Float[Array, "*b actions"]:
        return a


class WithNoise(eqx.Module):
    """Acts like a policy, with more noise: its own may lie where an action does not matter."""

    policy: SquashedGaussianPolicy
    deviation: Float[Array, ""]

    def noise(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
        return self.policy.noise(key, shape)

    def sample(self, s: Float[Array, "*b obs"], noise: Float[Array, "*b actions"]) -> Float[Array, "*b actions"]:
        return jnp.clip(self.policy.sample(s, noise) + self.deviation * noise, -1.0, 1.0)


class CategoricalPolicy(eqx.Module):
    """π(a|s) = softmax of the network's output."""

    net: MLP

    def noise(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
        return jax.random.gumbel(key, (*shape, self.net.biases[-1].shape[0]))

    def sample(self, s: Float[Array, "*b obs"], noise: Float[Array, "*b choices"]) -> Int[Array, "*b"]:
        return jnp.argmax(self.net(s) + noise, axis=-1)

    def mode(self, s: Float[Array, "*b obs"]) -> Int[Array, "*b"]:
        return jnp.argmax(self.net(s), axis=-1)

    def log_prob(self, s: Float[Array, "*b obs"], a: Int[Array, "*b"]) -> Float[Array, "*b"]:
        log_p = jax.nn.log_softmax(self.net(s))
        return jnp.take_along_axis(log_p, a[..., None], axis=-1)[..., 0]

    def entropy(self, s: Float[Array, "*b obs"]) -> Float[Array, "*b"]:
        log_p = jax.nn.log_softmax(self.net(s))
        return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)

    def features(self, a: Int[Array, "*b"]) -> Float[Array, "*b choices"]:
        """One-hot."""
        return jax.nn.one_hot(a, self.net.biases[-1].shape[0])


Policy = GaussianPolicy | SquashedGaussianPolicy | CategoricalPolicy
Actor = Policy | WithNoise


def make_policy(
    key: PRNGKeyArray, obs_size: int, space: ActionSpace, hidden: Sequence[int], log_std_init: float
) -> GaussianPolicy | CategoricalPolicy:
    """A policy whose first actions are near the middle of the Box (or uniform), whatever the state."""
    net = MLP(key, obs_size, hidden, space.size, last_gain=0.01)
    if space.discrete:
        return CategoricalPolicy(net)
    low, high = space.limits
    return GaussianPolicy(net, jnp.full(space.size, log_std_init, jnp.float32), (tuple(low.tolist()), tuple(high.tolist())))
