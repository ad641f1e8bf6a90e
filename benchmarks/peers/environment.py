"""The peers' own virtual environment, made once.

`python3 benchmarks/peers/environment.py` makes it where it is missing or out of date and prints its
interpreter as the last line. It lies in `.venv-peers` at the root of the repository, or where
`IDDM_PEERS_VENV` says.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
PYTHON = (3, 11)  # mujoco < 3 has no wheels for later ones


class PeersUnavailable(RuntimeError):
    """The peers' environment could not be made, or a peer did not give a measurement."""


def location() -> Path:
    """Where the environment lies."""
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("IDDM_PEERS_VENV") or root / ".venv-peers").absolute()


def ensure() -> Path:
    """The peers' interpreter, after making its environment if need be."""
    venv = location()
    python = venv / "bin" / "python"
    stamp = venv / "requirements.sha256"  # written last: an interrupted installation is taken up again
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    if venv.exists() and not (venv / "pyvenv.cfg").exists() and (not venv.is_dir() or any(venv.iterdir())):
        raise PeersUnavailable(f"{venv}: is no virtual environment; set IDDM_PEERS_VENV to another path")
    print(f"Setting up the peers' environment in {venv} (once, some minutes)", file=sys.stderr)
    if not python.exists():
        _call(_base_python(), "-m", "venv", str(venv))
    _call(str(python), "-m", "pip", "install", "--disable-pip-version-check", "-qq", "-r", str(REQUIREMENTS))
    stamp.write_text(wanted)
    return python


def _base_python() -> str:
    if sys.version_info[:2] == PYTHON:
        return sys.executable
    name = ".".join(map(str, PYTHON))
    found = shutil.which(f"python{name}")
    if found is None:
        raise PeersUnavailable(f"the peers need Python {name}, which was not found; install it, or skip them")
    return found


def _call(*command: str) -> None:
    # stdout stays free for the interpreter's path.
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode:
        raise PeersUnavailable(f"the peers' environment could not be made: {' '.join(command)} failed, see above")


if __name__ == "__main__":
    try:
        print(ensure())
    except PeersUnavailable as error:
        sys.exit(str(error))
