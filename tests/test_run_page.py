"""A run's page: what it shows of the run's record, in a real browser too, and that it is nobody else's page."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

import iddm
from iddm.cli import main
from iddm.cli.train import train_flags
from iddm.config import changed_settings, command_of, configure, default_config, expert_config
from iddm.report.run_charts import run_charts
from iddm.report.run_page import Row, page
from iddm.training.demonstrations import DemosRecord
from iddm.training.run_dir import Run
from tests.test_study_page import browser, lines_in, opened

ROWS = [
    Row("random actions", 20.0, 1.0, 2, 0.0, 20.0),
    Row("iddm", 110.0, 1.0, 2, 0.5, 110.0),
    Row("expert", 200.0, 0.0, 2, 1.0, 200.0),
]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of twenty iterations, written by hand."""
    config = configure(default_config("CartPole", "iddm"), {"steps": 2000, "mi": {"weight": 0.5}})
    demos = DemosRecord("mine.npz", "", 2, 380, None, (0,), (0.0,), (1.0,), num_steps=190.0)
    with Run.create(tmp_path / "run", config, demos) as run:
        for i in range(1, 21):
            row = {"iteration": i, "steps": 100 * i, "seconds": float(i), "episode_return": 5.0 * i, "episodes": 5}
            discriminator = {"adversarial/expert_accuracy": 0.9, "adversarial/agent_accuracy": 0.7}
            run.metrics_file.append(
                row | discriminator | {"evaluation_length": 9.0 * i, "closeness": 0.01 * i, "mi/information": 0.2}
            )
        iddm.bundled_expert("CartPole").save(run.policy_path)
    return run


def data_in(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_the_page_draws_what_the_run_measured_and_only_that(run: Run) -> None:
    charts = {chart["title"]: chart for chart in run_charts(run, {"expert": 200.0, "random": 20.0})}
    assert list(charts) == [
        "Return",
        "Steps of an evaluated episode",
        "Closeness to the demonstrations",
        "Discriminator right, %",
        "Mutual information I(s; (s', a)), nats",
    ]
    assert charts["Return"]["marks"] == [{"label": "expert", "value": 200.0}, {"label": "random", "value": 20.0}]
    lengths = charts["Steps of an evaluated episode"]
    assert lengths["marks"] == [{"label": "demos", "value": 190.0}]
    assert lengths["lines"][0]["mean"][-1] == 180.0
    assert [(line["method"], line["mean"][-1]) for line in charts["Discriminator right, %"]["lines"]] == [
        ("on expert", 90.0),
        ("on agent", 70.0),
    ]


def test_the_page_says_how_far_it_came_and_what_made_it(run: Run) -> None:
    text = page(run, ROWS, ["A <b>bad</b> sign."])
    assert "<h1>iddm on CartPole reaches 50 % of the expert</h1>" in text
    assert ">110</td>" in text  # steps of an episode
    assert "A &lt;b&gt;bad&lt;/b&gt; sign." in text
    assert run.about is not None
    assert f"iddm {iddm.__version__}" in text
    assert f"began {run.about.began[:10]}" in text
    assert "iddm train CartPole --method iddm --learner ppo --steps 2000 --seed 0 --mi.weight 0.5</pre>" in text
    assert changed_settings(run.config) == {"steps": 2000, "mi.weight": 0.5}


@pytest.mark.parametrize(
    "config",
    [
        configure(default_config("Ant", "gaifo", learner="sac"), {"inverse": {"share": 0.25}, "seed": 3}),
        configure(
            default_config("Hopper", "iddm", "paper"), {"anneal": True, "hidden": (8,), "adversarial": {"absorbing": True}}
        ),
        configure(expert_config("Hopper"), {"discount": 0.9}),
        configure(default_config("Hopper", "bco"), {"demos": "it's mine.npz", "env_kwargs": '{"a": [1]}'}),
    ],
)
def test_the_command_of_a_run_makes_its_config_again(config) -> None:
    words = shlex.split(command_of(config))
    assert train_flags(words[2:], expert=words[1] == "expert")[0] == config
    assert changed_settings(expert_config("Hopper")) == {}


def test_a_page_of_one_run_is_not_overwritten_by_another(run: Run, tmp_path: Path, capsys) -> None:
    report = ["report", str(run.path), "--episodes", "1", "--no-film"]
    assert main(report) == 0
    assert main(report) == 0
    ours = run.path / "report.html"
    other = tmp_path / "other"
    with Run.create(other, replace(run.config, seed=1), None) as another:
        iddm.bundled_expert("CartPole").save(another.policy_path)
    assert main(["report", str(other), "--episodes", "1", "--no-film", "--out", str(ours)]) == 2
    assert "is not an earlier page of the same results" in capsys.readouterr().err


@browser
@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_draws_every_chart_without_complaint_and_nothing_scrolls_sideways(run: Run, tmp_path: Path, width: int) -> None:
    text = page(run, ROWS)
    then = "document.title = document.documentElement.scrollWidth <= innerWidth;"
    document = opened(text, tmp_path, then=then, width=width)
    assert len(lines_in(document)) == sum(len(chart["lines"]) for chart in data_in(text)["charts"]["run"])
    assert "<title>true</title>" in document
