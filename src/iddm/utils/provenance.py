"""Where a result comes from: the commit of the code that made it."""

import subprocess
from pathlib import Path


def commit() -> str | None:
    """The commit that this code is at, marked where files differ from it; None where it is in no repository of its own."""
    here = Path(__file__)
    try:
        _git("ls-files", "--error-unmatch", here.name)  # installed in somebody else's repository, it is no file of that
        head, changed = _git("rev-parse", "--short", "HEAD"), _git("status", "--porcelain", "--", str(here.parents[1]))
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + (" with changes" if changed else "")


def _git(*args: str) -> str:
    done = subprocess.run(["git", *args], cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    return done.stdout.strip()
