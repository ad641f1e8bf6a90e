"""A second look before training: what is not an error but ruins runs. Each finding says what to do about it."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from iddm.demos.boundaries import jumps
from iddm.demos.compatible import Finding
from iddm.demos.types import Demos
from iddm.envs.spaces import EnvSizes

SCALE_FACTOR = 30.0
"""A spread more than this many times the environment's means other units (a degree is 1/57 of a radian), not another skill."""


class EnvSample(NamedTuple):
    """What an environment itself shows: the states of a few random episodes, and the return of doing nothing."""

    rows: np.ndarray
    idle_return: float | None = None
    """Return of an episode of zero actions; None where actions are choices."""


def look_at_episodes(demos: Demos) -> list[Finding]:
    """What the demonstrations alone show."""
    findings = []
    for key in ("note_rows", "note_boundaries", "note_short", "note_words", "note_time", "warning_time", "warning_units"):
        if key in demos.metadata:
            findings.append(Finding("warning" if key.startswith("warning") else "note", str(demos.metadata[key])))
    if isinstance(notes := demos.metadata.get("notes"), str) and notes.strip():
        findings.append(Finding("note", f"From the file: {notes.strip()[:300]}"))
    rows = np.concatenate(demos.observations)
    std = rows.std(axis=0, dtype=np.float64).astype(np.float32)
    std[((rows == 0) | (rows == 1)).all(axis=0)] = 0.0  # a flag jumps by nature: a leg touches the ground
    found = [(e, int(row)) for e, episode in enumerate(demos.observations) for row in jumps(episode, std)]
    if found:
        places = ", ".join(f"episode {e} row {row}" for e, row in found[:3]) + (", …" if len(found) > 3 else "")
        findings.append(
            Finding(
                "warning",
                f"The state jumps back to a start inside an episode, {len(found)} times ({places}): a boundary is missing there, "
                "and the jump would be taught as a move; store where episodes end (such as 'episode_lengths' in npz).",
            )
        )
    if time := _time_columns(demos):
        findings.append(
            Finding(
                "warning",
                f"{ranges(time).capitalize()} only counts time: a discriminator would learn the clock; leave it out with "
                "--demo-columns, or with --columns where the environment has it too.",
            )
        )
    spread = rows.std(axis=0, dtype=np.float64)
    if len(spread) > 1 and (np.abs(spread - 1) < 0.02).all() and (np.abs(rows.mean(axis=0, dtype=np.float64)) < 0.02).all():
        findings.append(
            Finding(
                "warning",
                "Every column has mean 0 and deviation 1: these states were normalised; undo that, because the agent's are raw.",
            )
        )
    still = np.concatenate([(rows[1:] == rows[:-1]).all(axis=1) for rows in demos.observations])
    if still.mean() > 0.01:
        findings.append(
            Finding(
                "warning",
                f"In {still.mean():.0%} of the transitions no column changes at all: if frames were repeated, take every k-th "
                "row and train with --stride k.",
            )
        )
    copies = demos.num_episodes - len({episode.tobytes() for episode in demos.observations})
    if copies:
        findings.append(
            Finding(
                "warning",
                f"{copies} of {demos.num_episodes} episodes are copies of others and would count twice; keep one of each.",
            )
        )
    short = int((demos.lengths < demos.lengths.max() / 2).sum())
    if short:
        findings.append(Finding("note", f"{short} of {demos.num_episodes} episodes are shorter than half of the longest."))
    returns = demos.episode_returns
    if returns is not None and returns.mean() > 0 and returns.min() < returns.mean() / 2:
        findings.append(
            Finding(
                "note",
                f"The returns range from {returns.min():,.0f} to {returns.max():,.0f}: the weak episodes are imitated as much as "
                "the good ones; leave them out if you do not want that.",
            )
        )
    return findings


def look_beside(demos: Demos, env: EnvSizes, sample: EnvSample, stride: Fraction = Fraction(1)) -> list[Finding]:
    """What the environment's own states show beside the demonstrations', whose rows are `stride` steps apart."""
    findings = _length(demos, env, stride)
    if sample.idle_return is not None and demos.episode_returns is not None:
        mean = float(demos.episode_returns.mean())
        if sample.idle_return > 0 and mean < 1.5 * sample.idle_return:
            findings.append(
                Finding(
                    "warning",
                    f"Doing nothing earns {sample.idle_return:,.0f} on {env.env_id}, and the demonstrations {mean:,.0f}: "
                    "a policy that matches them may have learned little; compare its return with both.",
                )
            )
    if sample.rows.shape[1] != demos.obs_size:
        return findings
    ours, theirs = (rows.std(axis=0, dtype=np.float64) for rows in (sample.rows, np.concatenate(demos.observations)))
    still_there, still_here = theirs < 1e-9, ours < 1e-9
    if (odd := np.flatnonzero(still_there & ~still_here).tolist()) != []:
        findings.append(
            Finding(
                "warning",
                f"Constant in the demonstrations but not in {env.env_id}: {ranges(odd)}. A discriminator tells expert from agent "
                "by these alone; leave them out with --columns.",
            )
        )
    if (odd := np.flatnonzero(still_here & ~still_there).tolist()) != []:
        findings.append(
            Finding(
                "warning",
                f"Constant in {env.env_id} under random actions but not in the demonstrations: {ranges(odd)}. They were recorded "
                "with another version or option of the environment; use that one, or leave them out with --columns.",
            )
        )
    both = ~still_there & ~still_here
    ratio = np.where(both, theirs / np.maximum(ours, 1e-12), 1.0)
    if (odd := np.flatnonzero(ratio > SCALE_FACTOR).tolist()) != []:
        findings.append(
            Finding(
                "warning",
                f"Spread {ratio[odd].max():,.0f} times wider than in {env.env_id} under random actions: {ranges(odd)}. "
                f"If these and other columns are in degrees, say so of each: --scale {_shown(odd, demos.columns)}=deg "
                "(or mm, cm, or a number).",
            )
        )
    if both.any() and np.median(ratio[both]) < 1 / SCALE_FACTOR:
        findings.append(
            Finding(
                "note",
                f"Most columns spread less than 1/{SCALE_FACTOR:.0f} of what they do in {env.env_id} under random actions: "
                "either the expert holds still, or the units differ; compare the ranges above with the environment's.",
            )
        )
    return findings


def _length(demos: Demos, env: EnvSizes, stride: Fraction) -> list[Finding]:
    limit, longest = env.max_episode_steps, int(demos.lengths.max() * stride)
    ended = demos.terminated is not None and demos.terminated.any()
    if limit is None or ended or longest >= 0.99 * limit:
        return []
    return [
        Finding(
            "note",
            f"The longest episode shows {longest} of the {limit} steps of {env.env_id}, and none is known to have terminated: "
            f"what comes later is never shown; --max-episode-steps {longest} limits the agent to what is.",
        )
    ]


def _time_columns(demos: Demos) -> list[int]:
    """Columns that rise by the same amount with every step, and start at the same value in every episode or never go back."""
    if demos.lengths.max() < 5:
        return []
    steps = np.concatenate([np.diff(episode.astype(np.float64), axis=0) for episode in demos.observations])
    mean = steps.mean(axis=0)
    even = (np.abs(steps - mean) <= 1e-3 * np.abs(mean) + 1e-6 * np.abs(demos.observations[0]).max(axis=0)).all(axis=0)
    starts, ends = (np.stack([episode[i] for episode in demos.observations]).astype(np.float64) for i in (0, -1))
    restarts, runs_on = (np.abs(starts - starts[0]) <= mean / 2).all(axis=0), (starts[1:] > ends[:-1]).all(axis=0)
    return np.flatnonzero(even & (mean > 1e-6) & (restarts | runs_on)).tolist()


def _shown(indices: list[int], names: tuple[str, ...]) -> str:
    """Columns as a flag takes them."""
    return ",".join(names[i] for i in indices) if names else ",".join(map(str, indices))


def ranges(indices: list[int]) -> str:
    """ "columns 3, 7–9" of [3, 7, 8, 9]."""
    breaks = [i for i in range(1, len(indices)) if indices[i] != indices[i - 1] + 1]
    runs = [indices[a:b] for a, b in zip([0, *breaks], [*breaks, len(indices)], strict=True)]
    words = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
    return ("column " if len(indices) == 1 else "columns ") + words
