"""Networks: how they start."""

import itertools

import jax
import numpy as np

from iddm.nets import MLP


def test_perceptron_starts_as_jaxs_orthogonal_initialiser_does() -> None:
    key, sizes = jax.random.PRNGKey(3), [5, 16, 16, 1]
    net = MLP(key, sizes[0], sizes[1:-1], sizes[-1], last_gain=0.01)
    gains = [2**0.5, 2**0.5, 0.01]
    for weight, k, gain, shape in zip(net.weights, jax.random.split(key, 3), gains, itertools.pairwise(sizes), strict=True):
        np.testing.assert_allclose(weight, jax.nn.initializers.orthogonal(gain)(k, shape), rtol=1e-5, atol=1e-7)
        assert weight.shape == shape
