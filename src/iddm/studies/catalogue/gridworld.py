"""The Gridworld study, where actions are redundant: the paper's Fig. 1 and Table 5."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from iddm.errors import UserError
from iddm.report.html_page import svg_image
from iddm.studies.options import Options
from iddm.studies.report.toy import comparison, fig_1c, report_toy, summary
from iddm.studies.results import Results
from iddm.studies.study import Section, ShowHtml, ShowTable, Study
from iddm.studies.toy import CHOICES, ToyRow, read_rows, toy_study


@dataclass(frozen=True)
class ToyResults:
    """What the study's tables and figures are made of."""

    rows: list[ToyRow]
    quick: bool = False


@dataclass(frozen=True)
class ToyStudy(Study):
    """It has its own measures, so its results are in a directory of their own, beside those of the other studies."""

    def to_show(self, everything: Results, directory: Path | None) -> ToyResults | None:
        file = directory.parent / "toy" / "toy.csv" if directory else None
        return ToyResults(read_rows(file)) if file and file.is_file() else None

    def launch(self, options: Options, console: Console) -> int:
        if options.only or options.again or options.list or options.on != "local":
            raise UserError("The toy study runs whole and on this machine: --only, --on, --again and --list are for the others.")
        out, runs = ("runs/quick-results/toy", "runs/quick/toy") if options.quick else ("results/toy", "runs/toy")
        run_toy(
            (1 if options.quick else self.seeds) if options.seeds is None else options.seeds,
            steps=4_096 if options.quick else None,
            workers=options.workers,
            out=options.out or Path(out),
            runs=options.runs or Path(runs),
            console=console,
        )
        return 0


def run_toy(
    seeds: int,
    out: Path,
    runs: Path,
    console: Console,
    choices: Sequence[int] = CHOICES,
    steps: int | None = None,
    workers: int | None = None,
) -> None:
    """Run the study and write its table and figures."""

    def show(cell: list[ToyRow]) -> None:
        for row in cell:
            console.print(
                f"n = {row.num_choices:>2}  seed {row.seed}  {row.method:<6}  return {row.expected_return:7.1f}  "
                f"reaches the target {100 * row.success:5.1f} %  disagreement {row.disagreement:.3f}",
                highlight=False,
            )

    report_toy(toy_study(seeds, choices, out, runs, steps, workers, show), out, console)


TOY = ToyStudy(
    "toy",
    "Where actions are redundant: the Gridworld",
    in_paper="Fig. 1 and Table 5",
    sections=(
        Section(
            (
                ShowHtml(lambda known: svg_image(fig_1c(known.rows), "return, disagreement and divergence by n")),
                ShowTable("toy", lambda known: summary(known.rows), fold="the numbers", file="docs/theory.md"),
                ShowTable("toy_paired", lambda known: comparison(known.rows), fold="IDDM − GAIfO", file="docs/theory.md"),
            ),
            words="n equal choices per move, which states do not show; measured exactly.",
        ),
    ),
)
