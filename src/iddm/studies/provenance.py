"""Where a result comes from: the commit of the code that made it."""

import subprocess
from pathlib import Path


def commit() -> str | None:
    """The commit that this code is at, marked where files differ from it; None outside a repository."""
    here = Path(__file__).parent
    try:
        head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
        changed = subprocess.run(["git", "status", "--porcelain", "--", here.parent], cwd=here, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + (" with changes" if changed.stdout.strip() else "")
