"""Statistics over seeds: identities, closed forms and independent computations."""

from itertools import product
from math import isnan

import numpy as np
import pytest
from scipy import stats

from iddm.studies.catalogue import STUDIES
from iddm.studies.catalogue.table2 import TABLE_2, aggregate, paired, where_it_counts
from iddm.studies.catalogue.weights import LAMBDAS_P, LAMBDAS_S
from iddm.studies.paper import TABLE_2 as PUBLISHED
from iddm.studies.paper import WEIGHTS
from iddm.studies.spec import SIX
from iddm.studies.statistics import (
    mean_interval,
    mean_over_tasks,
    normalised,
    paired_differences,
    probability_of_improvement,
    spread,
)

from . import made_up

X = {"a": [1.0, 4.0, 2.0, 8.0, 5.0], "b": [0.5, 0.1, 0.9]}
Y = {"a": [3.0, 4.0, 0.0], "b": [0.2, 0.3, 0.4, 0.8]}


def test_one_seed_has_no_deviation_and_no_interval() -> None:
    assert isnan(spread([3.0]).std)
    assert not mean_interval([3.0]).has_interval
    assert not mean_over_tasks({"a": [1.0, 2.0], "b": [1.0]}).has_interval


def test_deviation_over_two_seeds_is_their_distance_over_root_two() -> None:
    assert spread([1.0, 5.0]).std == pytest.approx(4 / np.sqrt(2))


def test_interval_of_a_constant_has_no_width() -> None:
    estimate = mean_interval([7.0] * 6)
    assert (estimate.value, estimate.low, estimate.high) == (7.0, 7.0, 7.0)


def test_interval_of_a_mean_is_that_of_the_t_test() -> None:
    theirs = stats.ttest_1samp(X["a"], 0).confidence_interval()
    ours = mean_interval(X["a"])
    assert (ours.value, ours.low, ours.high) == pytest.approx((np.mean(X["a"]), theirs.low, theirs.high))


def test_interval_over_two_tasks_is_half_of_welchs_for_their_sum() -> None:
    theirs = stats.ttest_ind(X["a"], [-value for value in X["b"]], equal_var=False).confidence_interval()
    ours = mean_over_tasks(X)
    assert (ours.low, ours.high) == pytest.approx((theirs.low / 2, theirs.high / 2))


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("deviations", [(1.0,), (0.01, 0.5, 1.0)])
def test_intervals_cover_the_truth_as_often_as_they_say(seeds: int, deviations: tuple[float, ...]) -> None:
    rng = np.random.default_rng(0)
    runs = [{str(std): 2 + std * rng.standard_normal(seeds) for std in deviations} for _ in range(4_000)]
    covered = [estimate.low <= 2 <= estimate.high for estimate in map(mean_over_tasks, runs)]
    assert 0.93 <= np.mean(covered) <= 0.98


def test_a_task_has_the_same_weight_however_many_its_seeds() -> None:
    assert mean_over_tasks({"a": [0.0] * 8, "b": [1.0]}).value == pytest.approx(0.5)


def test_paired_differences_are_of_shared_seeds() -> None:
    x = {"a": {0: 1.0, 1: 5.0, 2: 9.0}, "b": {0: 1.0}, "c": {0: 0.0}}
    y = {"a": {2: 8.0, 1: 4.5, 7: 0.0}, "b": {1: 1.0}}
    assert paired_differences(x, y) == {"a": [0.5, 1.0]}


def test_same_scores_give_the_same_interval_each_time() -> None:
    assert probability_of_improvement(X, Y) == probability_of_improvement(X, Y)


def test_random_is_zero_and_the_expert_is_one() -> None:
    scores = normalised(
        {"a": [10.0, 30.0, 20.0], "unknown": [1.0], "flat": [2.0]}, {"a": 10.0, "flat": 2.0}, {"a": 30.0, "flat": 2.0}
    )
    assert scores == {"a": [0.0, 1.0, 0.5]}


def test_no_method_improves_on_itself() -> None:
    estimate = probability_of_improvement(X, X)
    assert estimate is not None
    assert estimate.value == 0.5
    assert estimate.low <= 0.5 <= estimate.high


def test_probabilities_of_both_directions_sum_to_one() -> None:
    there, back = probability_of_improvement(X, Y), probability_of_improvement(Y, X)
    assert there is not None
    assert back is not None
    assert there.value + back.value == pytest.approx(1.0)


def test_probability_counts_pairs_with_ties_half_and_weighs_tasks_equally() -> None:
    by_hand = [np.mean([(x > y) + 0.5 * (x == y) for x, y in product(X[task], Y[task])]) for task in X]
    by_scipy = [stats.mannwhitneyu(X[task], Y[task]).statistic / (len(X[task]) * len(Y[task])) for task in X]
    estimate = probability_of_improvement(X, Y)
    assert estimate is not None
    assert estimate.value == pytest.approx(np.mean(by_hand)) == pytest.approx(np.mean(by_scipy))


def test_only_tasks_that_both_ran_on_count() -> None:
    assert probability_of_improvement({**X, "c": [0.0]}, {**Y, "d": [9.0]}) == probability_of_improvement(X, Y)
    assert probability_of_improvement({"a": [1.0]}, {"b": [1.0]}) is None
    assert probability_of_improvement({}, Y) is None


def test_a_method_that_always_wins_does_so_surely() -> None:
    estimate = probability_of_improvement({"a": [5.0, 6.0]}, {"a": [1.0, 2.0, 3.0]})
    assert estimate is not None
    assert (estimate.value, estimate.low, estimate.high) == (1.0, 1.0, 1.0)


def test_papers_numbers_are_on_the_studies_tasks_and_weights() -> None:
    assert set(PUBLISHED["iddm"]) == set(SIX)
    assert "CartPole" not in PUBLISHED["deepmimic"]
    assert set(WEIGHTS) <= set(product(LAMBDAS_P, LAMBDAS_S))


def test_cells_gather_the_seeds_that_are_there() -> None:
    some = made_up.results(["table2"], seeds=3).with_outcomes([])
    less = type(some)({name: o for name, o in some.outcomes.items() if (o.result.method, o.result.seed) != ("iddm", 2)})
    known = TABLE_2.results(less)
    assert {len(c.results) for c in known.cells if c.spec.method == "iddm"} == {2}
    assert {len(c.results) for c in known.cells if c.spec.method == "gaifo"} == {3}
    assert {len(c.results) for c in known.cells if c.spec.method == "expert"} == {1}
    assert known.find("CartPole", "deepmimic") is None
    assert known.methods[-1] == "expert"


def test_quick_runs_count_only_where_there_are_no_others() -> None:
    quick = made_up.results(["table2"], seeds=1, quick=True, only=["Hopper"])
    assert STUDIES["table2"].results(quick).quick
    both = quick.with_outcomes(made_up.results(["table2"], seeds=1).outcomes.values())
    known = STUDIES["table2"].results(both)
    assert not known.quick
    assert all(cell.spec.settings == () for cell in known.cells)


def test_scores_of_expert_and_random_are_one_and_zero() -> None:
    scores = TABLE_2.results(made_up.results(["table2"])).scores
    assert all(values == [1.0] for values in scores["expert"].values())
    assert all(np.mean(values) == pytest.approx(0) for values in scores["random"].values())


def test_a_task_that_a_constant_reward_solves_is_at_its_ceiling_and_counts_apart(monkeypatch) -> None:
    below = TABLE_2.results(made_up.results(["table2"], only=["CartPole", "Hopper"]))
    assert below.tasks_at_ceiling == []
    monkeypatch.setitem(made_up.SOLVED, "CartPole", "none")
    known = TABLE_2.results(made_up.results(["table2"], only=["CartPole", "Hopper"]))
    assert known.tasks_at_ceiling == ["CartPole"]
    scores = known.scores["gaifo"]
    assert where_it_counts(known, scores) == mean_interval(scores["Hopper"])
    assert "CartPole is at its ceiling" in aggregate(known).caption
    assert [row[0] for row in paired(known).rows] == ["CartPole (at its ceiling)", "Hopper"]
