"""From an environment that a file names to one that runs. A file names registered environments; code is named by the user."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iddm.envs.spec import EnvSpec, MakeEnv, resolve
from iddm.errors import UserError
from iddm.utils.text import printable

WORD = re.compile(r"(\w[\w .+-]*)?")
"""Text that an option in a file may hold: no path, no `module:name`."""


@dataclass(frozen=True)
class StoredEnv:
    """An environment as a run or a policy names it."""

    name: str
    max_episode_steps: int | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    source: str = "The policy"
    """Who names it, for error messages."""

    def own(self, env: str | MakeEnv | None = None, kwargs: Mapping[str, Any] | None = None) -> EnvSpec:
        """This very environment. `env` and `kwargs` are what the user said again, where a file cannot say it."""
        if isinstance(env, str) and env != self.name:
            raise UserError(f"{self.source} was learned in {printable(self.name)}, not in {env}.")
        if kwargs is not None and _json(kwargs) != _json(self.kwargs):
            raise UserError(f"{self.source} was learned with the options {printable(_json(self.kwargs))}, not {_json(kwargs)}.")
        return self._resolve(env, kwargs, self.max_episode_steps)

    def elsewhere(
        self,
        env: str | MakeEnv | EnvSpec | None = None,
        kwargs: Mapping[str, Any] | None = None,
        max_episode_steps: int | None = None,
    ) -> EnvSpec:
        """This environment, or another that the user names; the time limit holds where the other has none of its own."""
        if isinstance(env, EnvSpec):
            return env
        limit = max_episode_steps or self.max_episode_steps
        if env is None or _name(env) == self.name:
            return self._resolve(env, kwargs, limit)
        return resolve(env, limit if _is_code(env) else max_episode_steps, dict(kwargs or {}))

    def _resolve(self, env: str | MakeEnv | None, kwargs: Mapping[str, Any] | None, limit: int | None) -> EnvSpec:
        code = _is_code(self.name if env is None else env)
        untold = kwargs is None and (bool(self.kwargs) if code else not _plain(self.kwargs))
        if (code and env is None) or untold:
            what = "module:function" if code else "a path or code in its options"
            raise UserError(
                f"{self.source} was learned in {printable(self.name)}, and a file cannot name {what}: where it is yours, say it "
                f"again: {flags_again(self.name, self.kwargs)} (in Python, the function and its env_kwargs)."
            )
        return resolve(env or self.name, limit, dict(self.kwargs if kwargs is None else kwargs))


def flags_again(name: str, kwargs: Mapping[str, Any]) -> str:
    """The flags that say again what a file cannot say, quoted for a shell; "" where it can say everything."""
    flags = []
    if _is_code(name):
        flags.append(f"--env {shlex.quote(printable(name))}")
    if kwargs and (_is_code(name) or not _plain(kwargs)):
        flags.append(f"--env-kwargs {shlex.quote(printable(_json(kwargs)))}")
    return " ".join(flags)


def _is_code(env: str | MakeEnv) -> bool:
    """Whether it is not the name of a registered environment. Gymnasium too imports what stands before a colon."""
    return not isinstance(env, str) or ":" in env


def _plain(value: Any, depth: int = 0) -> bool:
    """Whether an option holds numbers and words alone."""
    if isinstance(value, Mapping | list | tuple):
        parts = value.values() if isinstance(value, Mapping) else value
        return depth < 10 and all(_plain(part, depth + 1) for part in parts)
    return WORD.fullmatch(value) is not None if isinstance(value, str) else True


def _name(env: str | MakeEnv) -> str:
    return env if isinstance(env, str) else resolve(env).id


def _json(kwargs: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(kwargs), sort_keys=True)
    except RecursionError:
        return "{…}"
