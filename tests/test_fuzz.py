"""A little of `make fuzz` in every run of the tests."""

import pytest

from tests.fuzz import COUNTS, fuzz


@pytest.mark.parametrize(("kind", "count"), [("demos", 24), ("policies", 50), ("checkpoints", 100), ("configs", 60)])
def test_a_changed_file_is_read_or_refused_in_one_sentence(kind: str, count: int) -> None:
    result = fuzz(kind, count)
    assert result.failures == []
    assert sum(result.counts.values()) == count


@pytest.mark.slow
@pytest.mark.parametrize("kind", COUNTS)
def test_thousands_of_changed_files_are_read_or_refused_in_one_sentence(kind: str) -> None:
    assert fuzz(kind, COUNTS[kind], seed=1).failures == []
