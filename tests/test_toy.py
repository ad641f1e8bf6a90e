"""The Gridworld study: what is exact about it, and the whole of it, small."""

import json
from pathlib import Path

import numpy as np
import pytest

from iddm.cli import main
from iddm.errors import UserError
from iddm.studies.report.toy import less_disagreement, markdown
from iddm.studies.statistics import mean_interval
from iddm.studies.toy import SETTINGS, ToyRow, read_rows, rows_to_csv, toy_cell, toy_config, toy_study
from iddm.theory.toy import exact_measures, relabellings, shortest_path_moves, spread
from iddm.training.train import finish

ROOT = Path(__file__).parents[1]


def test_relabelling_changes_names_and_nothing_that_states_show() -> None:
    expert = spread(shortest_path_moves(0.1), [0.9, 0.06, 0.04])
    agent = spread(shortest_path_moves(0.3), [0.2, 0.7, 0.1])
    measures = [exact_measures(3, other, expert) for other in relabellings(3, agent)]
    np.testing.assert_allclose([m.kl_ss for m in measures], measures[0].kl_ss, rtol=1e-9)
    assert len({round(m.disagreement, 6) for m in measures}) == 3


def test_over_all_names_the_even_policy_disagrees_less_than_any_collapsed_one() -> None:
    expert = spread(shortest_path_moves(0.1), [0.9, 0.06, 0.04])
    moves = shortest_path_moves(0.1)
    even, lucky = spread(moves, [1 / 3] * 3), spread(moves, [0.98, 0.01, 0.01])
    over_names = lambda p: np.mean([exact_measures(3, q, expert).disagreement for q in relabellings(3, p)])  # noqa: E731
    assert exact_measures(3, lucky, expert).disagreement < exact_measures(3, even, expert).disagreement
    assert over_names(lucky) > over_names(even)


def test_all_methods_have_the_same_settings_but_for_iddms_own_terms() -> None:
    assert SETTINGS["gail"] == SETTINGS["gaifo"]
    assert {key: x for key, x in SETTINGS["iddm"].items() if not key.startswith("entropy.")} == SETTINGS["gaifo"]


def row(method: str, seed: int, disagreement: float) -> ToyRow:
    return ToyRow(2, seed, method, 10, 50.0, 1.0, disagreement, 0.0, disagreement, 0.01, disagreement)


def test_interval_of_a_difference_is_over_pairs_of_one_seed() -> None:
    rows = [row(m, seed, 3.0 * seed + (m == "gaifo")) for m in ("gaifo", "iddm") for seed in range(4)]
    assert less_disagreement(rows, 2) == mean_interval([-1.0] * 4)


def test_rows_come_back_from_their_file(tmp_path) -> None:
    rows = [row("gail", 0, 0.5), row("iddm", 1, float("inf"))]
    (tmp_path / "toy.csv").write_text(rows_to_csv(rows))
    assert read_rows(tmp_path / "toy.csv") == rows


def test_study_writes_table_and_figures_and_does_nothing_twice(tmp_path, capsys) -> None:
    command = ["toy", "--seeds", "1", "--choices", "2", "--steps", "1024", "--workers", "1"]
    command += ["--out", str(tmp_path / "out"), "--runs", str(tmp_path / "runs")]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "n =  2  seed 0  gaifo" in printed
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {"toy.csv", "about.json", "table.md", "fig1a.svg", "fig1b.png", "fig1c.svg"}
    first = (tmp_path / "out" / "toy.csv").read_text()
    policies = {file: file.stat().st_mtime_ns for file in tmp_path.glob("runs/*/*/policy.safetensors")}
    assert len(policies) == 4
    rows = toy_cell(2, 0, tmp_path / "runs", 1024)
    assert rows_to_csv(rows) == first
    assert policies == {file: file.stat().st_mtime_ns for file in policies}
    with pytest.raises(UserError, match="other settings"):
        finish(toy_config("gaifo", 2, 0, 2048), tmp_path / "runs" / "n2-seed0" / "gaifo")


def test_study_toy_runs_the_same_study(tmp_path, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr("iddm.studies.catalogue.gridworld.run_toy", lambda seeds, **given: asked.append((seeds, given["steps"])))
    assert main(["study", "toy"]) == main(["study", "toy", "--quick"]) == main(["study", "toy", "--quick", "--seeds", "3"]) == 0
    assert asked == [(5, None), (1, 4_096), (3, 4_096)]


@pytest.mark.parametrize("wrong", [["--seeds", "0"], ["--choices", "0"], ["--workers", "0"]])
def test_wrong_numbers_are_one_sentence(wrong, tmp_path, capsys) -> None:
    assert main(["toy", *wrong, "--out", str(tmp_path), "--runs", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not any(tmp_path.iterdir())


def committed() -> list[ToyRow]:
    return read_rows(ROOT / "results" / "toy" / "toy.csv")


def test_committed_study_shows_what_the_page_says() -> None:
    rows = committed()
    assert markdown(rows) == (ROOT / "results" / "toy" / "table.md").read_text()
    assert json.loads((ROOT / "results" / "toy" / "about.json").read_text())["seeds"] == 5
    assert min(row.success for row in rows) > 0.99
    for n in (2, 4, 11):
        assert less_disagreement(rows, n).value < 0
        assert less_disagreement(rows, n, "disagreement_relabelled").high < 0
    at_one = [row for row in rows if row.num_choices == 1 and row.method != "expert"]
    means = {m: mean_interval([r.expected_return for r in at_one if r.method == m]) for m in ("gail", "gaifo", "iddm")}
    assert max(i.low for i in means.values()) <= min(i.high for i in means.values())


def test_study_needs_a_seed(tmp_path) -> None:
    with pytest.raises(UserError, match="at least one seed"):
        toy_study(0, out=tmp_path, runs=tmp_path)
