"""Tables in the docs: made from the results, and the committed ones from the committed results."""

from pathlib import Path

import pytest

from iddm.cli import main
from iddm.errors import UserError
from iddm.report.table import Table, with_tables
from iddm.studies.catalogue import STUDIES
from iddm.studies.report.docs import NO_RUNS, STUDIES_PAGE, places, tables, write_docs, written_docs
from iddm.studies.report.page import study_page
from iddm.studies.results import Results
from iddm.studies.spec import Grid
from iddm.studies.study import Section, ShowTable, Study
from iddm.utils.files import from_csv

from . import made_up

ROOT = Path(__file__).parents[1]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Files with markers and nothing else."""
    for file, names in {**places(), STUDIES_PAGE: ["studies"]}.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("before\n" + "".join(map(markers, names)) + "after\n")
    return tmp_path


def markers(name: str) -> str:
    return f"<!-- {name} -->\n<!-- /{name} -->\n"


def test_committed_docs_agree_with_the_committed_results() -> None:
    if not (ROOT / "results" / "studies" / "runs.csv").exists():
        pytest.skip("results/studies/runs.csv is not here yet")
    directory = ROOT / "results" / "studies"
    for path, text in written_docs(Results.load(directory), ROOT, directory).items():
        assert path.read_text() == text, "make them anew: iddm report results/studies --docs"


def test_docs_have_markers_for_every_table() -> None:
    written_docs(Results({}), ROOT)


def test_writing_twice_changes_nothing(repository: Path) -> None:
    results = made_up.results(seeds=2)
    directory = ROOT / "results" / "studies"
    first = {path: path.read_text() for path in write_docs(results, repository, directory)}
    assert {path: path.read_text() for path in write_docs(results, repository, directory)} == first
    assert all(text.startswith("before\n") and text.endswith("after\n") for text in first.values())
    assert not any(NO_RUNS in text for text in first.values())


def test_without_results_every_place_says_so(repository: Path) -> None:
    write_docs(made_up.results(seeds=2), repository)
    texts = [path.read_text() for path in write_docs(Results({}), repository)]
    assert sum(text.count(NO_RUNS) for text in texts) == sum(map(len, places().values()))


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


def test_a_new_study_is_one_value_that_page_docs_and_commands_find(repository: Path, monkeypatch, capsys) -> None:
    def table(known) -> Table:
        return Table(("task", "runs"), tuple((cell.spec.task, str(len(cell.outcomes))) for cell in known.cells))

    grid = Grid(("Hopper",), ("gaifo",), ({"num_envs": 4}, {"num_envs": 8}))
    new = Study("width", "Environments in parallel", (grid,), sections=(Section((ShowTable("width", table),)),))
    monkeypatch.setitem(STUDIES, "width", new)
    results = made_up.results(["width"], seeds=2)
    assert tables(results)["width"].rows == (("Hopper", "2"), ("Hopper", "2"))
    assert "Environments in parallel (not in the paper)" in study_page(results)
    with (repository / "docs/results.md").open("a") as page:
        page.write(markers("width"))
    write_docs(results, repository)
    assert "| Hopper | 2 |" in (repository / "docs/results.md").read_text()
    assert "| `width` | Environments in parallel | – | 5 |" in (repository / STUDIES_PAGE).read_text()
    assert main(["study"]) == 0
    assert "width" in capsys.readouterr().out


def test_table2_has_the_papers_numbers_below_ours_and_marks_controls() -> None:
    table = tables(made_up.results(["table2"], seeds=3))["table2"]
    rows = {row[0]: row for row in table.rows}
    cheetah = table.columns.index("HalfCheetah")
    assert rows["IDDM"][cheetah].endswith("(3)\npaper 5,699.3 ± 51.8")
    assert rows["DeepMimic"][table.columns.index("CartPole")] == "–"
    assert "paper" not in rows["BC"][cheetah]
    assert rows["expert"][cheetah].startswith("6,700.0 ± 0.0 (50 ep.)")
    assert {"random actions (control)", "constant reward (control)"} <= set(rows)


def test_only_studies_with_results_have_tables() -> None:
    shared = {"table2", "discriminators"}  # with every study that has a method with its default settings
    assert set(tables(made_up.results(["absorbing"], seeds=2))) == {"absorbing", *shared}
    assert set(tables(made_up.results(["table2"], seeds=2))) == {"aggregate", "paired", "experts", *shared}
    assert tables(made_up.results(["table2"], only=["random", "expert"])) == {}


def test_quick_runs_are_called_quick() -> None:
    found = tables(made_up.results(["table2"], seeds=1, quick=True))
    assert all("--quick" in table.caption for table in found.values())


def test_performance_page_agrees_with_the_committed_measurements() -> None:
    from benchmarks.page import PAGE, written

    assert PAGE.read_text() == written(), "make it anew: python benchmarks/page.py"


def test_further_results_agree_with_their_file() -> None:
    from benchmarks.further import PAGE, RESULTS, written

    assert PAGE.read_text() == written(from_csv(RESULTS)), "make it anew: python benchmarks/further.py"


def test_ranks_of_closeness_agree_with_their_file() -> None:
    from benchmarks.closeness_ranks import PAGE, RESULTS, written

    assert PAGE.read_text() == written(from_csv(RESULTS)), "make it anew: python benchmarks/closeness_ranks.py"
