"""Packages that only some users need; the error for a missing one names the extra that has it."""

import importlib
from typing import Any

from iddm.errors import UserError

DISTRIBUTION = "iddm-imitation"
"""The name to install: `iddm` on the package index is another project."""


def need(module: str, extra: str, what: str) -> Any:
    """Import a package of an extra: `need("h5py", "hdf5", "HDF5 files")`."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UserError(f"{what} need an extra: pip install '{DISTRIBUTION}[{extra}]'") from None
