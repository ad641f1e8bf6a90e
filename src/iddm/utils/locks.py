"""One process at a time in a directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from iddm.errors import UserError


@contextmanager
def locked(directory: Path, otherwise: str) -> Iterator[None]:
    """Hold the directory's lock, or raise `otherwise`. A killed process leaves no lock behind."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = FileLock(directory / ".lock", timeout=0.2)  # another process may just be checking whether the lock is held
        lock.acquire()
    except Timeout as error:
        raise UserError(otherwise) from error
    except OSError as error:
        raise UserError(f"{directory}: could not be written ({error.strerror or error}).") from error
    try:
        yield
    finally:
        lock.release()
