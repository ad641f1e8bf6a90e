"""Compiled code is kept between processes."""

import os
from pathlib import Path

import jax


def keep_compiled_code() -> None:
    """Let a second run start at once: keep compiled code in the user's cache, unless JAX is set to use another place."""
    if jax.config.jax_compilation_cache_dir is None:  # pyright: ignore[reportAttributeAccessIssue]
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(home / "iddm" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
