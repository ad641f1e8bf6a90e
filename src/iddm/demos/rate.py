"""How fast demonstrations were recorded, beside how fast an environment steps."""

from fractions import Fraction

from iddm.demos.align import MAX_LAG
from iddm.demos.compatible import Finding
from iddm.demos.types import Demos
from iddm.envs.spaces import EnvSizes


def row_seconds(demos: Demos) -> float | None:
    """Seconds between two rows, where the file has times (a table's column) or a rate (LeRobot's fps)."""
    seconds, fps = demos.metadata.get("row_seconds"), demos.metadata.get("fps")
    if seconds is None and isinstance(fps, int | float) and 1e-6 < fps < 1e6:
        seconds = 1 / fps
    return float(seconds) if isinstance(seconds, int | float) and 1e-6 < seconds < 1e6 else None


def in_words(seconds: float) -> str:
    """ "0.0167 s (60 Hz)"."""
    return f"{seconds:.3g} s ({1 / seconds:.3g} Hz)"


def propose_stride(row: float, step: float) -> Fraction:
    """Environment steps per row, in small numbers where these are within a hundredth."""
    exact = row / step
    near = (Fraction(exact).limit_denominator(limit) for limit in (MAX_LAG, 1000))
    return next((stride for stride in near if abs(stride / Fraction(exact) - 1) < 0.01), Fraction(exact))


def look_at_rate(demos: Demos, env: EnvSizes, stride: Fraction) -> tuple[list[Finding], Fraction]:
    """Whether `stride` fits the times in the file and the environment's step, and the stride that does, where both are known."""
    row, step = row_seconds(demos), env.step_seconds
    if row is None:
        return [], stride
    if step is None:
        advice = (
            "--stride is a row's seconds divided by a step's"
            if stride == 1
            else f"--stride {stride} takes it for {row / stride:.3g} s"
        )
        told = f"The rows are {in_words(row)} apart, and {env.env_id} does not say how long its step is: {advice}."
        return [Finding("note", told)], stride
    fitting = propose_stride(row, step)
    if abs(stride / fitting - 1) < 0.02:
        return [], stride
    told = f"The rows are {in_words(row)} apart, and a step of {env.env_id} is {in_words(step)}: use --stride {fitting}"
    return [Finding("warning", f"{told}, not {stride}." if stride != 1 else f"{told}.")], fitting
