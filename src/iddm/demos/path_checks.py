"""Only plain files are read: no devices or pipes, no links out of a folder, no sparse files that claim more than they hold."""

import os
import stat
from pathlib import Path

from iddm.errors import UserError

LARGEST_HOLE = 1 << 30
"""A file that claims this many bytes more than it takes on disk, and more than a compressing file system explains, is sparse."""


def check_plain(path: Path) -> None:
    """Refuse a folder that reaches outside of itself, and any file that is not a plain one."""
    if not os.path.isdir(path):
        _check_entry(path, path, path.parent)
        return
    home = _home(path)
    for where, folders, files in os.walk(path):
        for name in folders + files:
            _check_entry(Path(where) / name, path, home)


def _home(folder: Path) -> Path:
    """Where a folder's links may lead: into itself, or into the blobs beside it in Hugging Face's cache of downloads."""
    real = Path(os.path.realpath(folder))
    return real.parents[1] if len(real.parents) > 1 and real.parent.name == "snapshots" else real


def _check_entry(entry: Path, given: Path, home: Path) -> None:
    inside = f"'{entry.relative_to(given)}' " if entry != given else ""
    if entry != given and entry.is_symlink() and not Path(os.path.realpath(entry)).is_relative_to(home):
        raise UserError(f"{given}: {inside}is a link that leads out of the folder; put the file itself there")
    try:
        about = entry.stat()
    except OSError:  # a broken or circular link; the reader that needs the file reports it
        return
    if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
        raise UserError(f"{given}: {inside}is a device or a pipe, not a regular file")
    on_disk = about.st_blocks * 512 if hasattr(about, "st_blocks") else about.st_size
    if stat.S_ISREG(about.st_mode) and about.st_size - on_disk > max(LARGEST_HOLE, 20 * on_disk):
        raise UserError(f"{given}: {inside}claims {about.st_size:,} bytes, but takes only {on_disk:,} on disk; write it again")
