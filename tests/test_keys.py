"""Random keys: no two uses draw the same numbers."""

import jax
import numpy as np

from iddm.utils.keys import Use, key_for


def test_no_two_uses_or_iterations_share_a_key_nor_what_a_split_of_it_gives() -> None:
    seen = set()
    for use in Use:
        for iteration in range(4):
            key = key_for(0, use, iteration)
            drawn = [key, *jax.random.split(key, 8)]
            seen |= {tuple(np.asarray(jax.random.key_data(k)).ravel().tolist()) for k in drawn}
    assert len(seen) == len(Use) * 4 * 9
