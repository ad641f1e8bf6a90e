"""Random keys: one for each use and iteration, so that a resumed run draws what an uninterrupted one does.

JAX's `fold_in(key, i)` equals `split(key, n)[i]`, so a key that is split is never also folded: uses are told apart first.
"""

from enum import IntEnum

import jax
from jaxtyping import PRNGKeyArray


class Use(IntEnum):
    """What a key is for."""

    INIT = 0
    ACTING = 1
    LEARNING = 2


def key_for(seed: int, use: Use, iteration: int = 0) -> PRNGKeyArray:
    return jax.random.fold_in(jax.random.fold_in(jax.random.PRNGKey(seed), use), iteration)
