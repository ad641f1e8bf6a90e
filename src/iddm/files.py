"""Files are written whole, then renamed: a reader never sees half of one, and a crash loses nothing."""

import os
from contextlib import suppress
from pathlib import Path

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
