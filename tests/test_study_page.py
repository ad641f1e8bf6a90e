"""The studies' page: what it says, that nothing in results becomes markup, and how it behaves in a real browser."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from iddm.cli import main
from iddm.report import pictures
from iddm.report.charts import line
from iddm.studies.catalogue import STUDIES
from iddm.studies.report import film
from iddm.studies.report.charts import curves
from iddm.studies.report.docs import tables
from iddm.studies.report.page import study_page
from iddm.studies.results import Outcome, Result, Results
from iddm.studies.spec import SIX, study_steps
from iddm.studies.study import Section, ShowChart

from . import made_up

HOSTILE = "</script><img src=x onerror=alert(1)>{{style}}"
ROOT = Path(__file__).parents[1]


class Elements(HTMLParser):
    """The elements of a page with their attributes, as a browser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def data_in(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def hostile_results() -> Results:
    """Made-up results with one run more, all of whose texts are hostile."""
    evil = Result(HOSTILE, HOSTILE, HOSTILE, 0, 10, HOSTILE, 5, 1.0, 0.5, 0.0, HOSTILE)
    about = {"commit": HOSTILE, "seconds": 1.0}
    return made_up.results(["table2"], seeds=2).with_outcomes([Outcome(evil, ((5, 1.0),), about)])


def test_headline_counts_runs_and_tasks_and_gives_an_interval() -> None:
    page = study_page(made_up.results(["table2"], seeds=3))
    assert re.search(r"<h1>IDDM reaches \d+ % of the expert over 6 tasks \(\d+ % on \w+, the lowest\)</h1>", page)
    assert re.search(r"over 18 runs of IDDM, 95 % interval \d+ to \d+ %", page)


def test_headline_names_the_lowest_task_and_compares_with_gaifo_seed_by_seed() -> None:
    known = made_up.results(["table2"], seeds=2)
    worse = [
        replace(o, result=replace(o.result, mean=o.result.mean / 3))
        for o in known.outcomes.values()
        if o.result.task == "Ant" and o.result.method == "iddm"
    ]
    page = study_page(known.with_outcomes(worse))
    assert "% on Ant, the lowest)</h1>" in page
    found = STUDIES["table2"].results(known.with_outcomes(worse))
    ours, theirs = found.scores["iddm"], found.scores["gaifo"]
    mean = sum(sum(a - b for a, b in zip(ours[task], theirs[task], strict=True)) / 2 for task in ours) / 6
    assert (
        f"IDDM minus GAIfO: {100 * mean:+.1f} percentage points over 12 pairs of runs with the same seed (95 % interval" in page
    )


def test_lighter_runs_are_marked_where_they_are_drawn_and_the_heat_map_has_its_scale() -> None:
    page = study_page(made_up.results(["grid", "lambda_p", "demos"], seeds=1))
    charts = data_in(page)["charts"]
    assert [chart["title"] for chart in charts["lambda_p"]] == ["HalfCheetah, lighter runs"]
    assert {chart["title"] for chart in charts["demos"]} >= {"CartPole", "Hopper, lighter runs"}
    means = [cell.spread.mean for cell in STUDIES["grid"].results(made_up.results(["grid"], seeds=1)).cells]
    assert f"<span>{min(means):,.1f}</span><i></i><span>{max(means):,.1f}</span>" in page


def test_partial_and_quick_results_are_called_so() -> None:
    partial = study_page(made_up.results(["table2"], seeds=1, only=["Hopper"]))
    assert "over 1 of 6 tasks" in partial
    assert "too few seeds for an interval" in partial
    quick = study_page(made_up.results(["table2"], seeds=1, quick=True))
    assert "<h1>A quick look" in quick
    assert "No headline yet" in study_page(made_up.results(["lambda_p"], seeds=1))


def test_page_needs_no_network() -> None:
    page = study_page(made_up.results(seeds=2), directory=ROOT / "results" / "studies")
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org/2000/svg)", page)
    for _, attributes in Elements(page).found:
        assert all((attributes.get(name) or "data:").startswith("data:") for name in ("src", "href"))


def test_nothing_in_results_becomes_markup(monkeypatch) -> None:
    with_hostile_charts(monkeypatch)
    page = study_page(hostile_results())
    elements = Elements(page).found
    assert not [attributes for tag, attributes in elements if tag == "img"]
    assert len([tag for tag, _ in elements if tag == "script"]) == 2
    assert page.count("<style>") == 1
    assert data_in(page)["charts"]["curves"][0]["title"] == HOSTILE


def with_hostile_charts(monkeypatch) -> None:
    """Charts whose titles and a method's name are hostile."""

    def hostile(known) -> list[dict]:
        return [chart | {"title": HOSTILE, "lines": _renamed(chart)} for chart in curves(known)]

    monkeypatch.setitem(STUDIES, "curves", replace(STUDIES["curves"], sections=(Section((ShowChart(hostile),)),)))


def _renamed(chart: dict) -> list[dict]:
    return [each | {"method": HOSTILE if each["method"] == "gail" else each["method"]} for each in chart["lines"]]


def test_every_run_is_listed_with_command_commit_and_settings() -> None:
    results = made_up.results(["lambda_p"], seeds=1)
    page = study_page(results)
    assert all(f">{row.command}</td>" in page and f">{row.settings}</td>" in page for row in results.rows)
    assert page.count(">0000000</td>") == len(results.rows)


def test_a_weights_curves_are_in_its_order_and_not_among_the_switches() -> None:
    drawn = data_in(study_page(made_up.results(["lambda_p", "lambda_s"], seeds=2)))
    names = {name: [each["method"] for each in drawn["charts"][name][0]["lines"]] for name in ("lambda_p", "lambda_s")}
    assert names == {
        "lambda_p": ["λₚ 0", "λₚ 0.0005", "λₚ 0.001", "λₚ 0.01"],
        "lambda_s": ["λₛ 0", "λₛ 0.001", "λₛ 0.01", "λₛ 0.1"],
    }
    assert [each["shade"] for each in drawn["charts"]["lambda_s"][0]["lines"]] == [0, 1, 2, 3]
    assert drawn["methods"] == []


def test_mean_over_seeds_is_taken_where_all_seeds_have_points() -> None:
    found = line("iddm", [[(0, 0.0), (10, 10.0), (20, 20.0)], [(5, 15.0), (15, 5.0)], []])
    assert found is not None
    assert found["x"] == [5, 10, 15]
    assert found["mean"] == [10.0, 10.0, 10.0]
    assert (found["low"], found["high"]) == ([5.0, 10.0, 5.0], [15.0, 10.0, 15.0])
    assert line("bc", [[], [(1, float("nan"))]]) is None


def test_curves_leave_out_what_is_not_learned() -> None:
    charts = data_in(study_page(made_up.results(["table2"], seeds=2)))["charts"]["curves"]
    assert [chart["title"] for chart in charts] == list(SIX)
    assert not {"random", "expert", "bc"} & {each["method"] for chart in charts for each in chart["lines"]}
    assert [mark["label"] for mark in charts[0]["marks"]] == ["expert", "random"]


def test_demonstrations_are_compared_on_the_tasks_that_have_several_amounts() -> None:
    known = made_up.results(["table2"], seeds=3).with_outcomes(
        made_up.results(["demos"], seeds=2, only=["CartPole"]).outcomes.values()
    )
    (chart,) = data_in(study_page(known))["charts"]["demos"]
    assert chart["title"] == "CartPole"
    # though "all ten" has a seed more than the others; the A/A control has that amount alone
    assert sorted(each["x"] for each in chart["lines"]) == [[0, 1, 2, 3, 4]] * 3 + [[4]]
    rows = tables(known)["demos"].rows
    assert [row[:2] for row in rows] == [
        ("CartPole", much) for much in ("32 pairs", "1 episode", "4 episodes", "7 episodes", "all ten")
    ]
    assert "demos" not in tables(made_up.results(["table2"], seeds=2))


def test_report_tells_runs_and_studies_apart(tmp_path: Path, capsys) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "no run here (no config.json), and no results of studies (no runs.csv)" in capsys.readouterr().err
    (tmp_path / "config.json").write_text("{}")
    assert main(["report", str(tmp_path), "--docs"]) == 2
    assert "--docs is for results of studies" in capsys.readouterr().err
    made_up.results(["absorbing"], seeds=1).save(tmp_path / "studies")
    report = ["report", str(tmp_path / "studies"), "--no-film", "--out"]
    assert main([*report, str(tmp_path / "page.html")]) == 0
    assert "Absorbing states" in (tmp_path / "page.html").read_text()
    assert main([*report, str(tmp_path / "page.html")]) == 0  # its own page is made again


def test_report_overwrites_no_page_of_other_results(tmp_path: Path, capsys) -> None:
    for name in ("a", "b"):
        made_up.results(["absorbing"], seeds=1).save(tmp_path / name)
    (tmp_path / "notes.html").write_text("mine")
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "a"), "--no-film", "--out", str(page)]) == 0
    before = page.read_bytes()
    for out in (page, tmp_path / "notes.html", tmp_path):
        assert main(["report", str(tmp_path / "b"), "--no-film", "--out", str(out)]) == 2
    first, *_, third = capsys.readouterr().err.splitlines()
    assert first.endswith("page.html is not an earlier page of the same results; remove it, or choose another --out.")
    assert "is a directory" in third
    assert (page.read_bytes(), (tmp_path / "notes.html").read_text()) == (before, "mine")


def test_empty_or_damaged_results_are_one_sentence(tmp_path: Path, capsys) -> None:
    Results({}).save(tmp_path)
    assert main(["report", str(tmp_path)]) == 2
    assert "no results of studies here yet" in capsys.readouterr().err
    (tmp_path / "runs.csv").write_text("name,task\na,b\n")
    assert main(["report", str(tmp_path)]) == 2
    assert "not the results of studies" in capsys.readouterr().err


# In a real browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
browser = pytest.mark.skipif(CHROMIUM is None, reason="neither chromium nor google-chrome is on PATH")


def opened(page: str, directory: Path, address: str = "", then: str = "", width: int = 1280) -> str:
    """The document as the browser has it after `then` (JavaScript) ran; nothing may be complained of."""
    file = directory / "page.html"
    file.write_text(page.replace("</body>", f"<script>addEventListener('load', () => {{ {then} }});</script></body>"))
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    command += [f"--window-size={width},900", "--virtual-time-budget=3000", f"--user-data-dir={directory / 'profile'}"]
    shown = subprocess.run([*command, "--dump-dom", f"file://{file}{address}"], capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in shown.stderr, shown.stderr
    return shown.stdout


def lines_in(document: str) -> list[str]:
    return re.findall(r'<path class="line[^>]* data-method="([^"]*)"', document)


@browser
def test_every_chart_is_drawn_with_its_lines(tmp_path: Path) -> None:
    page = study_page(made_up.results(seeds=2))
    charts = [chart for some in data_in(page)["charts"].values() for chart in some]
    document = opened(page, tmp_path)
    assert document.count("<svg") == len(charts) == 20
    assert sorted(lines_in(document)) == sorted(each["method"] for chart in charts for each in chart["lines"])
    assert 'class="seed"' not in document
    assert "NaN" not in document[document.index("<main>") : document.index('id="data"')]


@browser
def test_address_sets_the_switches(tmp_path: Path) -> None:
    page = study_page(made_up.results(["table2"], seeds=2))
    document = opened(page, tmp_path, "#hide=gaifo,none&seeds=1")
    assert {"iddm", "gail"} <= set(lines_in(document))
    assert not {"gaifo", "none"} & set(lines_in(document))
    assert document.count('class="seed"') == 2 * len(lines_in(document))


@browser
def test_switching_a_method_off_takes_its_lines_away_and_stands_in_the_address(tmp_path: Path) -> None:
    page = study_page(made_up.results(["table2"], seeds=2))
    click = "document.querySelector('[data-method=gaifo]').click(); document.title = location.hash;"
    document = opened(page, tmp_path, then=click)
    assert "gaifo" not in lines_in(document)
    assert "<title>#hide=gaifo</title>" in document
    twice = opened(page, tmp_path, "#hide=gaifo", then=click)
    assert "gaifo" in lines_in(twice)


@browser
def test_keys_and_pointer_read_values(tmp_path: Path) -> None:
    page = study_page(made_up.results(["table2"], seeds=2, only=["Hopper"]))
    press = "document.querySelector('figure svg').dispatchEvent(new KeyboardEvent('keydown', {key: 'End', cancelable: true}));"
    assert f"{study_steps('Hopper'):,} steps" in opened(page, tmp_path, then=press)
    point = "document.querySelector('figure svg').dispatchEvent(new PointerEvent('pointermove', {clientX: 60, clientY: 99}));"
    assert f"{study_steps('Hopper') // 40:,} steps" in opened(page, tmp_path, then=point)  # the first of forty points


@browser
@pytest.mark.parametrize("width", [360, 1280])
def test_body_never_scrolls_sideways(tmp_path: Path, width: int) -> None:
    page = study_page(
        hostile_results().with_outcomes(made_up.results(seeds=2).outcomes.values()), directory=ROOT / "results" / "studies"
    )
    measure = (
        "document.querySelectorAll('details').forEach((each) => { each.open = true; });"
        "document.title = innerWidth + ' ' + document.documentElement.scrollWidth;"
    )
    if width < 500:  # narrower than the browser lets a window be
        (tmp_path / "inner").mkdir()
        inner = page.replace("</body>", f"<script>{measure} parent.postMessage(document.title, '*');</script></body>")
        (tmp_path / "inner" / "page.html").write_text(inner)
        page = f'<body><iframe src="inner/page.html" style="width:{width}px;height:800px;border:0"></iframe></body>'
        page = page.replace(
            "<body>", "<body><script>onmessage = (event) => { document.title = event.data; };</script><title></title>"
        )
        measure = ""
    title = re.search(r"<title>(\d+) (\d+)</title>", opened(page, tmp_path, then=measure, width=max(width, 500)))
    assert title
    assert int(title[1]) in (width, width - 15)  # without a scroll bar, or with one
    assert int(title[2]) <= int(title[1])


@browser
def test_hostile_results_do_nothing_in_the_browser(tmp_path: Path, monkeypatch) -> None:
    with_hostile_charts(monkeypatch)
    document = opened(study_page(hostile_results()), tmp_path, then="document.title = document.images.length;")
    assert "<title>0</title>" in document
    assert "&lt;img src=x" in document


# Film strips


def test_where_nothing_can_be_drawn_the_page_says_so(monkeypatch) -> None:
    monkeypatch.setattr(pictures, "BACKENDS", ("nonsense",))
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    pictures.drawing_backend.cache_clear()
    strips = film.film_strips(made_up.results(["table2"], seeds=1, only=["Hopper"]), None)
    assert strips[0].trouble.startswith("MuJoCo cannot draw here without a screen (nonsense: ")
    assert "MuJoCo cannot draw here" in study_page(made_up.results(["table2"], seeds=1), strips=strips)


def test_film_shows_the_expert_and_the_learned_policy_where_it_is(tmp_path: Path) -> None:
    results = made_up.results(["table2"], seeds=1, only=["Hopper"])
    learned = next(row.name for row in results.rows if row.method == "iddm")
    (tmp_path / learned).mkdir()
    shutil.copy(ROOT / "src/iddm/bundled/Hopper.safetensors", tmp_path / learned / "policy.safetensors")
    (strip,) = film.film_strips(results, tmp_path)
    if strip.trouble:
        pytest.skip(strip.trouble)
    assert list(strip.frames) == ["expert", "IDDM"]
    assert all(len(frames) == 8 for frames in strip.frames.values())
    assert strip.frames["expert"] == strip.frames["IDDM"]  # the same policy stands in for both
    assert len(set(strip.frames["expert"])) > 1
    page = study_page(results, strips=[strip, replace(strip, task="Other", frames={}, trouble="<b>")])
    assert page.count('src="data:image/jpeg') == 2 * 8
    assert "&lt;b&gt;" in page


def test_films_kept_beside_the_results_are_in_the_page_with_their_words(tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    for name, words in (("Ant", HOSTILE), ("Hopper", "seed 0")):
        (tmp_path / "films" / f"{name}.webp").write_bytes(b"film of " + name.encode())
        (tmp_path / "films" / f"{name}.txt").write_text(words)
    page = study_page(made_up.results(["table2"], seeds=1), tmp_path)
    assert 'src="data:image/webp;base64,ZmlsbSBvZiBBbnQ="' in page
    assert "<figcaption>seed 0</figcaption>" in page
    assert "<img src=x" not in page
    assert "How it looks" not in study_page(made_up.results(["table2"], seeds=1))


def test_the_films_of_our_results_are_small_and_each_says_what_it_shows() -> None:
    films = sorted((ROOT / "results" / "studies" / "films").glob("*.webp"))
    assert films
    for one in films:
        assert one.stat().st_size < 500_000
        assert re.search(r"iddm train .*\(seed \d+, commit \w+[^)]*\)", one.with_suffix(".txt").read_text())
