"""Whether demonstrations are compatible with an environment, and what to do where they are not."""

from fractions import Fraction
from typing import Literal, NamedTuple

from iddm.demos.types import Demos
from iddm.envs.spaces import EnvSizes
from iddm.errors import UserError


class Finding(NamedTuple):
    """Something to know about demonstrations; an error means that they cannot be used as they are."""

    level: Literal["note", "warning", "error"]
    sentence: str


WITH_POSITION = "make the environment with exclude_current_positions_from_observation=False, which keeps the position"
SIZE_ADVICE = {
    ("Ant", 27, 105): "make the environment with include_cfrc_ext_in_observation=False, which leaves out the 78 contact forces",
    ("Ant", 105, 27): "make the environment with include_cfrc_ext_in_observation=True, which adds the 78 contact forces",
    ("Ant", 111, 27): "keep the first 27 columns with --demo-columns 0:27; the others are contact forces of versions up to v3",
    (
        "Ant",
        111,
        105,
    ): "keep the first 27 columns with --demo-columns 0:27 (the others are contact forces of versions up to v3) and "
    "make the environment with include_cfrc_ext_in_observation=False",
    ("Ant", 112, 27): "keep the first 27 columns with --demo-columns 0:27; the others are old contact forces and the time",
    ("InvertedDoublePendulum", 11, 9): "leave out the last two columns with --demo-columns 0:9; they are always zero before v5",
    ("HalfCheetah", 18, 17): WITH_POSITION,
    ("Hopper", 12, 11): WITH_POSITION,
    ("Walker2d", 18, 17): WITH_POSITION,
}
"""(task, columns of the demonstrations, columns of the environment): what to do about it."""


def compare_with_env(demos: Demos, env: EnvSizes, stride: Fraction = Fraction(1)) -> tuple[Finding, ...]:
    """Observation size, actions, length and origin, each against the environment; rows are `stride` steps apart."""
    findings = []
    if demos.obs_size != env.obs_size:
        default = (
            "use demonstrations of this environment, make it with the options of the recording, or say which columns they share "
            "with --columns and --demo-columns"
        )
        if demos.columns and set(demos.columns) < set(env.columns):
            default = f"its columns have the same names: use --columns {','.join(demos.columns)}"
        advice = SIZE_ADVICE.get((_task(env.env_id), demos.obs_size, env.obs_size), default)
        findings.append(
            Finding(
                "error",
                f"The demonstrations have {demos.obs_size} columns, but an observation of {env.env_id} has "
                f"{env.obs_size}: {advice}.",
            )
        )
    if demos.actions is not None and env.action_size is not None:
        action = demos.actions[0]
        width = "discrete" if action.ndim == 1 else f"{action.shape[1]} wide"
        if action.shape[1:] != (env.action_size,):
            findings.append(
                Finding(
                    "warning",
                    f"The recorded actions are {width}, but those of {env.env_id} are {env.action_size} "
                    "wide: methods that use actions cannot learn from them.",
                )
            )
    longest = int(demos.lengths.max() * stride)
    if env.max_episode_steps is not None and longest > env.max_episode_steps:
        findings.append(
            Finding(
                "warning",
                f"The longest episode has {longest} steps, but {env.env_id} ends after "
                f"{env.max_episode_steps}: later states cannot be reached.",
            )
        )
    origin = str(demos.metadata.get("env_id", env.env_id))
    if _task(origin) != _task(env.env_id):
        findings.append(Finding("warning", f"The demonstrations were recorded on {origin}, not on {env.env_id}."))
    elif origin.split(" ")[0] != env.env_id:
        findings.append(
            Finding("note", f"The demonstrations were recorded on {origin}; {env.env_id} may move a little differently.")
        )
    return tuple(findings)


def require_compatible(demos: Demos, env: EnvSizes) -> None:
    """Stop before training where `compare_with_env` has an error."""
    for level, sentence in compare_with_env(demos, env):
        if level == "error":
            raise UserError(sentence)


def _task(env_id: str) -> str:
    """ "Ant" of "Ant-v5", "namespace/Ant-v5" and "Ant-v2 (an old simulator)"."""
    return env_id.split(" ")[0].split("/")[-1].rsplit("-v", 1)[0]
