"""Figures over seeds: identities, closed forms and computations by another way."""

from itertools import product
from math import isnan

import numpy as np
import pytest
from scipy import stats

from iddm.studies.paper import TABLE_2, WEIGHTS
from iddm.studies.spec import LAMBDA_P, LAMBDA_S, SIX, STUDIES
from iddm.studies.statistics import aggregate_iqm, iqm, normalised, probability_of_improvement, spread
from iddm.studies.study_results import answer

from . import made_up

X = {"a": [1.0, 4.0, 2.0, 8.0, 5.0], "b": [0.5, 0.1, 0.9]}
Y = {"a": [3.0, 4.0, 0.0], "b": [0.2, 0.3, 0.4, 0.8]}


def test_one_seed_has_no_deviation_and_no_interval() -> None:
    assert isnan(spread([3.0]).std)
    assert isnan(iqm([3.0]).low)
    assert isnan(aggregate_iqm({"a": [1.0, 2.0], "b": [1.0]}).high)


def test_deviation_over_two_seeds_is_their_distance_over_root_two() -> None:
    assert spread([1.0, 5.0]).std == pytest.approx(4 / np.sqrt(2))


def test_iqm_of_a_constant_is_the_constant_with_an_interval_of_no_width() -> None:
    estimate = iqm([7.0] * 6)
    assert (estimate.value, estimate.low, estimate.high) == (7.0, 7.0, 7.0)


def test_iqm_ignores_the_lowest_and_the_highest_quarter() -> None:
    assert iqm([-1e9, 1.0, 3.0, 1e9]).value == 2.0


def test_a_quartile_may_cut_through_a_value() -> None:
    assert iqm([0.0, 1.0, 5.0]).value == pytest.approx((0 * 1 + 1 * 4 + 5 * 1) / 6)


def test_a_task_has_the_same_weight_however_many_its_seeds() -> None:
    assert aggregate_iqm({"a": [0.0] * 8, "b": [1.0]}).value == pytest.approx(0.5)
    repeated = {"a": X["a"] * 7, "b": X["b"]}
    assert aggregate_iqm(repeated).value == pytest.approx(aggregate_iqm(X).value)


def test_interval_contains_the_figure_and_grows_with_the_deviation() -> None:
    narrow, wide = iqm([9.0, 10.0, 10.0, 11.0, 10.0]), iqm([0.0, 10.0, 10.0, 20.0, 10.0])
    assert narrow.low <= narrow.value <= narrow.high
    assert wide.high - wide.low > narrow.high - narrow.low


def test_interval_agrees_with_scipys_bootstrap() -> None:
    values = np.random.default_rng(1).normal(size=20)
    theirs = stats.bootstrap(
        (values,), lambda x, axis: stats.trim_mean(x, 0.25, axis=axis), method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    ours = iqm(list(values))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.06)


def test_same_scores_give_the_same_interval_each_time() -> None:
    assert aggregate_iqm(X) == aggregate_iqm(X)
    assert probability_of_improvement(X, Y) == probability_of_improvement(X, Y)


def test_random_is_zero_and_the_expert_is_one() -> None:
    scores = normalised(
        {"a": [10.0, 30.0, 20.0], "unknown": [1.0], "flat": [2.0]}, {"a": 10.0, "flat": 2.0}, {"a": 30.0, "flat": 2.0}
    )
    assert scores == {"a": [0.0, 1.0, 0.5]}


def test_nobody_improves_on_himself() -> None:
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


def test_papers_figures_are_on_the_studies_tasks_and_weights() -> None:
    assert set(TABLE_2["iddm"]) == set(SIX)
    assert "CartPole" not in TABLE_2["deepmimic"]
    assert set(WEIGHTS) <= set(product(LAMBDA_P, LAMBDA_S))


def test_cells_gather_the_seeds_that_are_there() -> None:
    some = made_up.results(["table2"], seeds=3).with_outcomes([])
    less = type(some)({name: o for name, o in some.outcomes.items() if (o.result.method, o.result.seed) != ("iddm", 2)})
    known = answer(less, STUDIES["table2"])
    assert {len(c.results) for c in known.cells if c.spec.method == "iddm"} == {2}
    assert {len(c.results) for c in known.cells if c.spec.method == "gaifo"} == {3}
    assert {len(c.results) for c in known.cells if c.spec.method == "expert"} == {1}
    assert known.find("CartPole", "deepmimic") is None
    assert known.methods[-1] == "expert"


def test_quick_runs_count_only_where_there_are_no_others() -> None:
    quick = made_up.results(["table2"], seeds=1, quick=True, only=["Hopper"])
    assert answer(quick, STUDIES["table2"]).quick
    both = quick.with_outcomes(made_up.results(["table2"], seeds=1).outcomes.values())
    known = answer(both, STUDIES["table2"])
    assert not known.quick
    assert all(cell.spec.settings == () for cell in known.cells)


def test_scores_of_expert_and_random_are_one_and_zero() -> None:
    scores = answer(made_up.results(["table2"]), STUDIES["table2"]).scores
    assert all(values == [1.0] for values in scores["expert"].values())
    assert all(np.mean(values) == pytest.approx(0) for values in scores["random"].values())
