"""Measures a peer from our own process: `run_peer("imitation_gail", steps=20_480, demos="demos.npz")`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from .environment import PeersUnavailable, ensure

PEERS = ("imitation_gail", "sb3_ppo")


def run_peer(name: str, **options: Any) -> dict[str, Any]:
    """The measurement that the peer's script prints; `steps=1` stands for its flag `--steps 1`.

    An option that is None is left out. Makes the peers' environment where it is missing.
    """
    if name not in PEERS:
        raise ValueError(f"unknown peer {name!r}; known are {', '.join(PEERS)}")
    command = [str(ensure()), str(Path(__file__).with_name(f"{name}.py"))]
    for option, value in options.items():
        if value is not None:
            command.append(f"--{option.replace('_', '-')}={value}")
    # Paths of our environment must not reach the peer's.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    try:
        if done.returncode == 0:
            return json.loads(lines[-1])
    except (IndexError, json.JSONDecodeError):
        pass
    tail = "\n".join(done.stderr.splitlines()[-15:])
    raise PeersUnavailable(f"{name} gave no measurement (exit code {done.returncode}):\n{tail}")
