"""Tables as people have them: text ids, times, degrees, names; and what `inspect` and `train` say of them."""

import runpy
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iddm.cli import main
from iddm.config import default_config
from iddm.demos import Demos, inspect_demos, load_demos
from iddm.demos.align import choose_columns
from iddm.demos.boundaries import jumps
from iddm.demos.oddities import look_at_episodes
from iddm.demos.rate import look_at_rate, propose_stride, row_seconds
from iddm.demos.units import parse_scale, scale_columns
from iddm.envs.spaces import EnvSizes
from iddm.envs.spec import resolve, shape_of
from iddm.errors import UserError
from iddm.training.demonstrations import align_demos, ended_by_themselves

EXAMPLE = Path(__file__).parents[1] / "examples" / "from_a_table.py"


def read(path: Path, text: str, episode_column: str | None = None) -> Demos:
    path.write_text(text)
    return load_demos(path, episode_column)


# Episodes


@pytest.mark.parametrize("name", ["trial", "Take", "subject_id", "Clip ID", "trajectory", "session", "episode_index"])
def test_an_episode_may_be_called_what_people_call_it_and_be_named_by_text(name: str, tmp_path: Path) -> None:
    demos = read(tmp_path / "d.csv", f"{name},x\nT01,1\nT01,2\nT02,5\nT02,6\nT02,7\n")
    assert [episode.ravel().tolist() for episode in demos.observations] == [[1, 2], [5, 6, 7]]
    assert demos.columns == ("x",)


def test_the_same_trial_of_two_subjects_is_two_episodes(tmp_path: Path) -> None:
    demos = read(tmp_path / "d.csv", "subject,trial,x\nA,1,1\nB,1,10\nA,1,2\nB,1,20\nA,2,3\nA,2,4\n")
    assert [episode.ravel().tolist() for episode in demos.observations] == [[1, 2], [10, 20], [3, 4]]


def test_a_column_of_any_name_can_be_the_episode_in_csv_and_parquet(tmp_path: Path) -> None:
    text = "gait,side,x\nrun,left,1\nrun,left,2\nwalk,left,3\nwalk,left,4\nwalk,right,5\nwalk,right,6\n"
    pq.write_table(pa.table({"gait": ["run", "run", "walk", "walk"], "x": [1.0, 2.0, 3.0, 4.0]}), tmp_path / "d.parquet")
    assert read(tmp_path / "d.csv", text, "gait").num_episodes == 2
    assert read(tmp_path / "d.csv", text, "gait, side").num_episodes == 3
    assert load_demos(tmp_path / "d.parquet", "gait").num_episodes == 2
    with pytest.raises(UserError, match="there is no column 'gate'; there are gait, side, x"):
        load_demos(tmp_path / "d.csv", "gate")
    np.save(tmp_path / "d.npy", np.zeros((3, 2)))
    with pytest.raises(UserError, match="--episode-column is for tables"):
        load_demos(tmp_path / "d.npy", "gait")


def test_without_an_episode_one_begins_where_the_time_goes_back(tmp_path: Path) -> None:
    demos = read(tmp_path / "d.csv", "t,x\n0,1\n1,2\n0,5\n1,6\n2,7\n")
    assert demos.lengths.tolist() == [1, 2]
    assert "wherever 't' goes back" in demos.metadata["note_boundaries"]


def test_words_and_the_index_of_pandas_are_not_states(tmp_path: Path) -> None:
    demos = read(tmp_path / "d.csv", ",kind,x\n0,run,1\n1,run,2\n2,,3\n")
    assert demos.columns == ("x",)
    assert demos.metadata["note_words"] == "Left out, because they are words: kind."


def test_a_number_that_is_missing_in_parquet_is_named_by_column_and_row(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, 2.0, None]}), tmp_path / "d.parquet")
    with pytest.raises(UserError, match="column 'x' has no value in row 2"):
        load_demos(tmp_path / "d.parquet")
    pq.write_table(pa.table({"x": [1.0, 2.0], "knee": [1.0, np.nan]}), tmp_path / "d.parquet")
    with pytest.raises(UserError, match=r"NaN in column 1 'knee' \(row 1\)"):
        load_demos(tmp_path / "d.parquet")


# Rates


def timed(path: Path, name: str, times: list[float]) -> Demos:
    return read(path, f"{name},x\n" + "".join(f"{time},{i % 7}\n" for i, time in enumerate(times)))


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("time", [round(i / 60, 3) for i in range(60)]),
        ("Time (ms)", [round(1000 * i / 60) for i in range(60)]),
        ("timestamp", [1.7e9 + i / 60 for i in range(60)]),
        ("t_ns", [int(1e9 * i / 60) for i in range(60)]),
    ],
)
def test_times_give_the_seconds_between_rows(name: str, times: list[float], tmp_path: Path) -> None:
    demos = timed(tmp_path / "d.csv", name, times)
    assert row_seconds(demos) == pytest.approx(1 / 60, rel=1e-3)
    assert demos.columns == ("x",)


def test_a_count_of_rows_is_no_time_and_other_whole_numbers_need_a_unit(tmp_path: Path) -> None:
    assert row_seconds(timed(tmp_path / "d.csv", "t", [0, 1, 2, 3])) is None
    demos = timed(tmp_path / "d.csv", "time", [0, 20, 40, 60])
    assert row_seconds(demos) is None
    assert "rises by 20 per row" in demos.metadata["note_time"]


def test_gaps_and_rows_out_of_order_are_found(tmp_path: Path) -> None:
    gap = [0.1 * i for i in range(20)] + [5 + 0.1 * i for i in range(20)]
    findings = look_at_episodes(timed(tmp_path / "d.csv", "time", gap))
    assert any(level == "warning" and "rows are missing or uneven" in told for level, told in findings)
    demos = read(tmp_path / "d.csv", "episode,time,x\n0,3,1\n0,2,2\n0,1,3\n")
    assert "does not rise" in demos.metadata["warning_time"]


@pytest.mark.parametrize(
    ("row", "step", "stride"),
    [(1 / 60, 0.05, "1/3"), (0.01667, 0.05, "1/3"), (1 / 30, 0.05, "2/3"), (0.1, 0.05, "2"), (0.02, 0.015, "4/3")],
)
def test_the_proposed_stride_is_a_row_in_steps(row: float, step: float, stride: str) -> None:
    assert propose_stride(row, step) == Fraction(stride)


def test_a_stride_that_fits_the_times_is_not_questioned_and_another_is() -> None:
    demos = Demos((np.zeros((3, 1)),), metadata={"row_seconds": 1 / 60})
    env = EnvSizes("E-v0", 1, step_seconds=0.05)
    assert look_at_rate(demos, env, Fraction(1, 3)) == ([], Fraction(1, 3))
    ((level, told),), fitting = look_at_rate(demos, env, Fraction(2))
    assert (level, fitting) == ("warning", Fraction(1, 3))
    assert told.endswith("a step of E-v0 is 0.05 s (20 Hz): use --stride 1/3, not 2.")
    ((level, told),), _ = look_at_rate(demos, EnvSizes("E-v0", 1), Fraction(1))
    assert level == "note"
    assert "does not say how long its step is" in told


def test_a_step_is_as_long_as_the_environment_says_not_as_its_film() -> None:
    seconds = {name: shape_of(resolve(name)).step_seconds for name in ("HalfCheetah-v5", "CartPole-v1", "MountainCar-v0")}
    assert seconds == {"HalfCheetah-v5": pytest.approx(0.05), "CartPole-v1": 0.02, "MountainCar-v0": None}


@pytest.mark.parametrize(
    ("rows", "stride", "ended"), [(101, 1, False), (80, 1, True), (34, 3, False), (30, 3, True), (301, 1 / 3, False)]
)
def test_an_episode_ended_by_itself_if_its_rows_times_the_stride_stay_below_the_limit(rows, stride, ended) -> None:
    demos = Demos((np.zeros((rows, 1)),))
    assert ended_by_themselves(demos, 100, Fraction(stride).limit_denominator(8)).tolist() == [ended]


def test_bco_takes_demonstrations_of_twice_the_rate_as_every_second_row() -> None:
    shape = shape_of(resolve("MountainCar-v0"))
    rows = np.random.default_rng(0).normal(size=(9, 2)).astype(np.float32)
    config = replace(default_config("MountainCar-v0", "bco"), stride="1/2")
    _, demos, view = align_demos(Demos((rows,)), shape, config)
    np.testing.assert_array_equal(demos.observations[0], rows[::2])
    assert view.plain
    _, halved, _ = align_demos(Demos((rows,)), shape, replace(config, stride="2"))
    np.testing.assert_allclose(halved.observations[0][1], (rows[0] + rows[1]) / 2, rtol=1e-5)


# Units and names


def test_a_unit_counts_for_the_columns_before_it() -> None:
    degree = np.pi / 180
    names = ("rootz", "rooty", "bthigh", "speed")
    np.testing.assert_allclose(parse_scale("rootz=mm,rooty,bthigh=deg", 4, names, "d.csv"), [0.001, degree, degree, 1])
    np.testing.assert_allclose(parse_scale("1:3=deg/s,3=2.5", 4, names, "d.csv"), [1, degree, degree, 2.5])
    for wrong, words in [("rootz", "say the unit"), ("rootz=deggs", "neither a unit"), ("hip=deg", "'hip' is not a column")]:
        with pytest.raises(UserError, match=words):
            parse_scale(wrong, 4, names, "d.csv")


def test_columns_whose_names_say_degrees_are_warned_of_until_they_are_scaled() -> None:
    demos = Demos((np.full((3, 3), 90.0),), metadata={"columns": ["hip_deg", "knee (deg/s)", "degree_of_fun"]})
    warned = scale_columns(demos, None, "d.csv")
    assert "--scale 'hip_deg,knee (deg/s)=deg'" in warned.metadata["warning_units"]
    scaled = scale_columns(warned, "0:2=deg", "d.csv")
    assert "warning_units" not in scaled.metadata
    np.testing.assert_allclose(scaled.observations[0][0], [np.pi / 2, np.pi / 2, 90])


@pytest.mark.parametrize(
    ("env", "some"),
    [
        ("HalfCheetah-v5", {0: "rootz", 1: "rooty", 2: "bthigh", 8: "rootx_vel", 16: "ffoot_vel"}),
        (
            "Ant-v5",
            {0: "root_z", 1: "root_qw", 5: "hip_1", 13: "root_x_vel", 18: "root_wz", 26: "ankle_4_vel", 27: "cfrc_ext[0]"},
        ),
        ("InvertedPendulum-v5", {0: "slider", 1: "hinge", 2: "slider_vel", 3: "hinge_vel"}),
        ("InvertedDoublePendulum-v5", {0: "slider", 8: "constraint_force"}),
        ("Reacher-v5", {0: "joint0_cos", 9: "to_target_y"}),
        ("CartPole-v1", {2: "pole_angle"}),
        ("Pendulum-v1", {0: "theta_cos", 2: "theta_vel"}),
        ("Acrobot-v1", {5: "theta2_vel"}),
        ("MountainCar-v0", {0: "position", 1: "velocity"}),
    ],
)
def test_the_columns_of_gymnasiums_tasks_have_names(env: str, some: dict[int, str]) -> None:
    names = shape_of(resolve(env)).columns
    assert {i: names[i] for i in some} == some


def test_the_names_of_a_model_are_at_its_positions_and_velocities() -> None:
    import gymnasium as gym

    env = gym.make("Walker2d-v5")
    obs, _ = env.reset(seed=3)
    names, data = shape_of(resolve("Walker2d-v5")).columns, env.unwrapped.data
    for i, name in enumerate(names):
        joint = data.joint(name.removesuffix("_vel"))
        assert obs[i] == pytest.approx((joint.qvel if name.endswith("_vel") else joint.qpos)[0])


def test_columns_are_matched_by_name_where_both_sides_have_names() -> None:
    env = EnvSizes("E-v0", 3, columns=("z", "hip", "knee"))
    demos = Demos((np.array([[3.0, 1.0], [30.0, 10.0]]),), metadata={"columns": ["knee", "z"]})
    some, chosen = choose_columns(demos, env, "z,knee", None, "d.csv")
    assert chosen == (0, 2)
    assert some.observations[0].tolist() == [[1, 3], [10, 30]]
    shuffled = Demos((np.array([[2.0, 3.0, 1.0]] * 2),), metadata={"columns": ["hip", "knee", "z"]})
    ordered, chosen = choose_columns(shuffled, env, None, None, "d.csv")
    assert (chosen, ordered.observations[0][0].tolist()) == (None, [1, 2, 3])
    (finding,) = [told for level, told in inspect_demos(demos, env).findings if level == "error"]
    assert finding.endswith("use --columns knee,z.")
    for wrong in (["knee", "q"], ["q", "z"]):
        with pytest.raises(UserError, match="would be compared with"):
            choose_columns(replace(demos, metadata={"columns": wrong}), env, "z,hip", None, "d.csv")
    own = Demos((np.array([[1.0, 2.0, 3.0]] * 2),), metadata={"columns": ["a", "b", "c"]})
    cut, chosen = choose_columns(own, env, "b", None, "d.csv")
    assert (chosen, cut.observations[0][0].tolist()) == ((1,), [2])


# Boundaries


def test_a_leg_that_touches_the_ground_is_no_lost_boundary() -> None:
    lander = load_demos(Path(__file__).parent / "lunar_lander.npz")
    rows = np.concatenate(lander.observations)
    assert any(len(jumps(episode, rows.std(axis=0))) for episode in lander.observations)  # with the legs' flags
    assert not [told for level, told in look_at_episodes(lander) if "jumps" in told]


# From a table to a policy


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    runpy.run_path(str(EXAMPLE))["record"](tmp_path / "capture.csv", trials=2)
    return tmp_path / "capture.csv"


def test_inspect_says_of_a_capture_what_to_type_and_train_learns_from_it(capture: Path, capsys) -> None:
    def told(*args: str, code: int = 0) -> str:
        assert main([args[0], *map(str, args[1:])]) == code
        out, err = capsys.readouterr()
        return " ".join((out + err).split())

    names = "rootz,rooty,bthigh,bshin,bfoot,fthigh,fshin,ffoot"
    first = told("inspect", capture, "--env", "HalfCheetah-v5", code=2)
    assert f"use --columns {names}." in first
    assert "rows apart 0.0167 s (60 Hz)" in first
    second = told("inspect", capture, "--env", "HalfCheetah-v5", "--columns", names)
    assert "use --stride 1/3." in second
    assert "--scale bthigh,bshin,bfoot,fthigh,fshin,ffoot=deg" in second
    flags = ["--columns", names, "--scale", "1:8=deg", "--stride", "1/3"]
    assert "warning" not in told("inspect", capture, "--env", "HalfCheetah-v5", *flags)
    tiny = ["--steps", "512", "--num-envs", "4", "--rollout-length", "64", "--hidden", "8", "--adversarial.hidden", "8"]
    learned = told(
        "train", "HalfCheetah-v5", "--method", "gaifo", "--demos", capture, *flags[:4], *tiny, "--out", capture.parent / "run"
    )
    assert "iddm: The rows are 0.0167 s (60 Hz) apart, " in learned  # what inspect would warn of
    assert "end by themselves" not in learned
    assert (capture.parent / "run" / "policy.safetensors").is_file()


@pytest.mark.slow
def test_the_example_with_a_goal_reaches_it_from_its_files_own_directory_with_the_commands_as_written(tmp_path: Path) -> None:
    example = Path(__file__).parents[1] / "examples" / "reach.py"
    shutil.copy(example, tmp_path)
    told = []
    for line in (example.read_text().partition('"""\n\n')[0]).splitlines()[2:]:
        program, *args = shlex.split(line, comments=True)
        here = ["-P", "-c", "import sys; from iddm.cli import main; sys.exit(main())"] if program == "iddm" else []
        done = subprocess.run([sys.executable, *here, *args], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout)
    assert "Evaluate it with: iddm eval runs/reach --env reach:make\n" in told[2]
    mean = float(told[3].split()[1])
    assert mean > -30  # who never arrives has -100, the demonstrations -13
