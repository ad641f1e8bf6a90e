"""Tables in the docs: made from the results, and the committed ones from the committed results."""

from pathlib import Path

import pytest

from iddm.cli import main
from iddm.errors import UserError
from iddm.files import from_csv
from iddm.studies.report.docs import NO_RUNS, PLACES, with_tables, write_docs, written_docs
from iddm.studies.report.tables import TABLES, tables
from iddm.studies.results import Results

from . import made_up

ROOT = Path(__file__).parents[1]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Files with markers and nothing else."""
    for file, names in PLACES.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("before\n" + "".join(f"<!-- {name} -->\n<!-- /{name} -->\n" for name in names) + "after\n")
    return tmp_path


def test_committed_docs_agree_with_the_committed_results() -> None:
    if not (ROOT / "results" / "studies" / "runs.csv").exists():
        pytest.skip("results/studies/runs.csv is not here yet")
    for path, text in written_docs(Results.load(ROOT / "results" / "studies"), ROOT).items():
        assert path.read_text() == text, "make them anew: iddm report results/studies --docs"


def test_docs_have_markers_for_every_table() -> None:
    assert {name for names in PLACES.values() for name in names} == set(TABLES)
    written_docs(Results({}), ROOT)


def test_writing_twice_changes_nothing(repository: Path) -> None:
    results = made_up.results(seeds=2)
    first = {path: path.read_text() for path in write_docs(results, repository)}
    assert {path: path.read_text() for path in write_docs(results, repository)} == first
    assert all(text.startswith("before\n") and text.endswith("after\n") for text in first.values())
    assert not any(NO_RUNS in text for text in first.values())


def test_without_results_every_place_says_so(repository: Path) -> None:
    write_docs(made_up.results(seeds=2), repository)
    texts = [path.read_text() for path in write_docs(Results({}), repository)]
    assert sum(text.count(NO_RUNS) for text in texts) == len(TABLES)


def test_missing_marker_is_one_clear_sentence(repository: Path, monkeypatch, capsys) -> None:
    (repository / "README.md").write_text("nothing marked\n")
    made_up.results(["lambda_p"], seeds=1).save(repository / "studies")
    monkeypatch.chdir(repository)
    assert main(["report", "studies", "--docs"]) == 2
    assert "README.md: needs the markers <!-- compact --> and <!-- /compact -->" in capsys.readouterr().err
    assert "<!-- table2 -->\n<!-- /table2 -->" in (repository / "docs/results.md").read_text()  # nothing half-done


def test_a_table_is_put_in_as_it_is() -> None:
    text = with_tables("<!-- a -->\nold\n<!-- /a -->", {"a": r"| \1 | back\slash |"}, "x.md")
    assert text == "<!-- a -->\n\n| \\1 | back\\slash |\n\n<!-- /a -->"
    with pytest.raises(UserError, match="once"):
        with_tables(text + text, {"a": ""}, "x.md")


def test_table2_sets_the_papers_figures_below_ours_and_marks_controls() -> None:
    sheet = tables(made_up.results(["table2"], seeds=3))["table2"]
    rows = {row[0]: row for row in sheet.rows}
    cheetah = sheet.columns.index("HalfCheetah")
    assert rows["IDDM"][cheetah].endswith("(3)\npaper 5,699.3 ± 51.8")
    assert rows["DeepMimic"][sheet.columns.index("CartPole")] == "–"
    assert "paper" not in rows["BC"][cheetah]
    assert rows["expert"][cheetah].startswith("6,700.0 ± 0.0 (50 ep.)")
    assert {"random actions (control)", "constant reward (control)"} <= set(rows)


def test_only_studies_with_results_have_tables() -> None:
    shared = {"table2", "discriminators", "compact"}  # by all that have a method with its default settings
    assert set(tables(made_up.results(["absorbing"], seeds=2))) == {"absorbing", *shared}
    assert set(tables(made_up.results(["table2"], seeds=2))) == {"aggregate", "experts", *shared}
    assert tables(made_up.results(["table2"], only=["random", "expert"])) == {}


def test_quick_runs_are_called_quick() -> None:
    sheets = tables(made_up.results(["table2"], seeds=1, quick=True))
    assert all("--quick" in sheet.note for sheet in sheets.values())


def test_performance_page_agrees_with_the_committed_measurements() -> None:
    from benchmarks.page import PAGE, written

    assert PAGE.read_text() == written(), "make it anew: python benchmarks/page.py"


def test_further_results_agree_with_their_file() -> None:
    from benchmarks.further import PAGE, RESULTS, written

    assert PAGE.read_text() == written(from_csv(RESULTS)), "make it anew: python benchmarks/further.py"
