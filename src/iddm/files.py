"""Files are written whole, then renamed: a reader never sees half of one, and a crash loses nothing."""

import csv
import io
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from iddm.errors import UserError


def write_whole(path: Path, content: bytes | str) -> None:
    """Replace `path` by `content` in one step."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise UserError(f"{path}: could not be written ({error.strerror or error}).") from error


def to_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def from_csv(file: Path) -> list[dict[str, str]]:
    with open(file, newline="") as lines:
        return list(csv.DictReader(lines))


@contextmanager
def alone(directory: Path, otherwise: str) -> Iterator[None]:
    """Hold the directory's lock, or raise `otherwise`. A killed process leaves no lock behind."""
    try:
        import fcntl
    except ImportError:  # no file locks on this platform
        yield
        return
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / ".lock", "w") as file:
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # somebody may just be looking whether the lock is held
                time.sleep(0.1)
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(otherwise) from error
        yield
