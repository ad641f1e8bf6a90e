"""Nothing that is not finite is saved: the last good checkpoint stays good."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from iddm.errors import UserError
from iddm.training.run_dir import Run


class Diverged(UserError):
    """A loss, reward or parameter became non-finite."""


def stop_if_not_finite(row: dict[str, float], run: Run) -> None:
    """Take the finiteness flags out of the row; raise where one is down."""
    flags = {key.removeprefix("finite/"): row.pop(key) for key in list(row) if key.startswith("finite/")}
    bad = [name for name, ok in flags.items() if not ok]
    if bad:
        raise Diverged(
            f"{run.path}: {bad[0]} became non-finite at step {row['steps']:.0f}; {what_is_kept(run)}. "
            f"Lower the learning rate of {bad[0]}, or its weight."
        )


def check_before_saving(arrays: Mapping[str, np.ndarray], run: Run) -> None:
    """Raise where any number of a learner's state is not finite, be it a network's, an optimiser's or the normaliser's."""
    bad = next((name for name, x in arrays.items() if x.dtype.kind == "f" and not np.isfinite(x).all()), None)
    if bad is not None:
        raise Diverged(
            f"{run.path}: {bad.lstrip('.')} is not finite, so it was not saved; {what_is_kept(run)}. Observations that are very "
            "large can do that, as can a learning rate that is too high: look at both."
        )


@contextmanager
def telling_what_is_kept(run: Run) -> Iterator[None]:
    """Where an environment stops a run, say what is left of it."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{str(error).removesuffix('.')}; {what_is_kept(run)}.") from (error.__cause__ or error)


def what_is_kept(run: Run) -> str:
    if run.checkpoints.paths():
        return f"the last good checkpoint stays (iddm train --resume {run.path})"
    return "there is no checkpoint yet"
