"""Networks: a batched perceptron, the two policies, and the one normaliser at every network's input."""

import itertools
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from iddm.spaces import ActionSpace


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


Policy = GaussianPolicy | CategoricalPolicy


def make_policy(key: PRNGKeyArray, obs_size: int, space: ActionSpace, hidden: Sequence[int], log_std_init: float) -> Policy:
    """A policy whose first actions are near the middle of the Box (or uniform), whatever the state."""
    net = MLP(key, obs_size, hidden, space.size, last_gain=0.01)
    if space.discrete:
        return CategoricalPolicy(net)
    low, high = space.limits
    return GaussianPolicy(net, jnp.full(space.size, log_std_init, jnp.float32), (tuple(low.tolist()), tuple(high.tolist())))


class Normaliser(eqx.Module):
    """The running statistics of the agent's observations and the demonstrations' own, read in two ways.

    `mixture` puts agent and expert on one scale, for networks that see both: the even mixture of the two sets. `own` is the
    agent's scale, for its policy and value: where the expert is far away (its speed, say), the mixture's scale would squeeze
    what the agent itself sees into a small corner. Both are frozen within an iteration.
    """

    count: Float[Array, ""]
    mean: Float[Array, " obs"]
    var: Float[Array, " obs"]
    expert_mean: Float[Array, " obs"] | None
    expert_var: Float[Array, " obs"] | None
    clip: float = eqx.field(static=True, default=10.0)
    known: Float[Array, " obs"] | None = None
    """1 where the demonstrations have the column, else 0; None where they have all."""

    @staticmethod
    def start(
        obs_size: int, expert_rows: Float[Array, "rows shown"] | None, columns: Int[Array, " shown"] | None = None
    ) -> "Normaliser":
        zero, one = jnp.zeros(obs_size), jnp.ones(obs_size)
        if expert_rows is None:
            return Normaliser(jnp.zeros(()), zero, one, None, None)
        if columns is not None:
            mean, var = zero.at[columns].set(expert_rows.mean(0)), one.at[columns].set(expert_rows.var(0))
            return Normaliser(jnp.zeros(()), zero, one, mean, var, known=zero.at[columns].set(1.0))
        return Normaliser(jnp.zeros(()), zero, one, expert_rows.mean(0), expert_rows.var(0))

    def own(self, obs: Float[Array, "*b obs"]) -> Float[Array, "*b obs"]:
        """On the agent's scale."""
        return self._scaled(obs, *self.own_scale())

    def mixture(self, obs: Float[Array, "*b obs"]) -> Float[Array, "*b obs"]:
        """On the scale of agent and expert together."""
        return self._scaled(obs, *self.mixture_scale())

    def mixture_of(self, rows: Float[Array, "*b shown"], columns: Int[Array, " shown"] | None) -> Float[Array, "*b shown"]:
        """`mixture` for rows that hold only some of the columns."""
        mean, std = self.mixture_scale()
        return self._scaled(rows, mean, std) if columns is None else self._scaled(rows, mean[columns], std[columns])

    def own_scale(self) -> tuple[Float[Array, " obs"], Float[Array, " obs"]]:
        """Mean and deviation of what the agent has seen; before its first rollout, the expert's."""
        return self._scale(jnp.where(self.count > 0, 1.0, 0.0))

    def mixture_scale(self) -> tuple[Float[Array, " obs"], Float[Array, " obs"]]:
        """Mean and deviation of both sets, with equal weight."""
        return self._scale(jnp.where(self.count > 0, 0.5, 0.0))

    def _scale(self, weight: Float[Array, "..."]) -> tuple[Float[Array, " obs"], Float[Array, " obs"]]:
        mean, var = self.mean, self.var
        if self.expert_mean is not None and self.expert_var is not None:
            if self.known is not None:  # elsewhere there is only the agent
                weight = jnp.where(self.known > 0, weight, 1.0)
            mean = weight * self.mean + (1 - weight) * self.expert_mean
            spread = weight * (1 - weight) * (self.mean - self.expert_mean) ** 2
            var = weight * self.var + (1 - weight) * self.expert_var + spread
        return mean, jnp.sqrt(jnp.maximum(var, 1e-8))

    def _scaled(
        self, obs: Float[Array, "*b obs"], mean: Float[Array, " obs"], std: Float[Array, " obs"]
    ) -> Float[Array, "*b obs"]:
        return jnp.clip((obs - mean) / std, -self.clip, self.clip)

    def update(self, obs: Float[Array, "rows obs"], valid: Float[Array, " rows"]) -> "Normaliser":
        """Merge a rollout's valid rows into the agent's statistics (Chan et al.)."""
        n = valid.sum()
        new_mean = (valid @ obs) / n
        new_var = (valid @ (obs - new_mean) ** 2) / n
        total = self.count + n
        delta = new_mean - self.mean
        mean = self.mean + delta * n / total
        var = (self.var * self.count + new_var * n + delta**2 * self.count * n / total) / total
        return Normaliser(total, mean, var, self.expert_mean, self.expert_var, self.clip, self.known)
