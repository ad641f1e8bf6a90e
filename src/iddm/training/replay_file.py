"""The replay buffer on disk: rows are appended and never changed, so a checkpoint writes only what is new."""

import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from iddm.errors import UserError
from iddm.learners.replay_buffer import ReplayBuffer

CHUNK = 1 << 24


class Mark(NamedTuple):
    """How much of the file belongs to a checkpoint."""

    num_rows: int = 0
    checksum: int = 0
    """CRC-32 of these rows."""


@dataclass(frozen=True)
class ReplayFile:
    """Rows of float32, one after another, without a header."""

    path: Path

    def append(self, rows: np.ndarray, mark: Mark) -> Mark:
        """Add rows after those of `mark`; on disk when this returns."""
        data = np.ascontiguousarray(rows, "<f4").tobytes()
        try:
            with open(self.path, "ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UserError(f"{self.path}: could not be written ({error.strerror or error}).") from error
        return Mark(mark.num_rows + len(rows), zlib.crc32(data, mark.checksum))

    def restore(self, buffer: ReplayBuffer, mark: Mark) -> None:
        """Fill the buffer with the rows up to a mark, and cut off what came after it: a killed run may have written more."""
        row_bytes = 4 * buffer.columns.width
        size = mark.num_rows * row_bytes
        if size == 0:
            self.path.unlink(missing_ok=True)
            return
        damaged = UserError(f"{self.path}: the replay buffer is damaged, so the run cannot be continued; start it anew.")
        try:
            if self.path.stat().st_size < size:
                raise damaged
            os.truncate(self.path, size)
            checksum, kept_from = 0, (mark.num_rows - min(mark.num_rows, buffer.capacity)) * row_bytes
            with open(self.path, "rb") as file:
                while piece := file.read(CHUNK):
                    checksum = zlib.crc32(piece, checksum)
            if checksum != mark.checksum:
                raise damaged
            rows = np.fromfile(self.path, "<f4", offset=kept_from).reshape(-1, buffer.columns.width)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read ({error.strerror or error}).") from error
        buffer.append_saved(rows, mark.num_rows)
