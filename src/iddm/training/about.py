"""What made a run, and when (about.json)."""

from dataclasses import dataclass
from datetime import UTC, datetime

from iddm.utils.provenance import commit


@dataclass(frozen=True)
class About:
    """The code that began a run, and when."""

    version: str
    commit: str | None
    """Where the code is in its repository; None where it is installed."""
    began: str
    """ISO date and time, UTC."""

    @staticmethod
    def now() -> "About":
        import iddm

        return About(iddm.__version__, commit(), datetime.now(UTC).isoformat(timespec="seconds"))
