"""The site: built in strict mode, where a broken link or a missing page is an error, and nothing is loaded from the network."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="the extra `docs` is not installed")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "website/mkdocs.yml", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Learn a policy in" in (tmp_path / "api.html").read_text()
    assert "of the expert over" in (tmp_path / "all-studies.html").read_text()
