import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation import statistics

RUNS = range(5)


def generated(seed: int, *, is_equal: bool = True) -> dict[str, list[float]]:
    """Returns the outcomes of 8 to 60 tasks of random difficulty."""
    rng = np.random.default_rng(seed)
    num_attempts = int(rng.integers(1, 9))
    outcomes = {}
    for task in range(int(rng.integers(8, 61))):
        size = num_attempts if is_equal else int(rng.integers(1, num_attempts + 1))
        outcomes[f"task-{task}"] = list(map(float, rng.random(size) < rng.beta(1, 1)))
    return outcomes


def close_to(value: object) -> object:
    return pytest.approx(value, rel=0, abs=1e-9)


@pytest.mark.parametrize("seed", RUNS)
def test_intervals_and_tests_agree_with_scipy(seed: int) -> None:
    outcomes, other = generated(seed, is_equal=seed % 2 == 0), generated(seed + 100)
    rates = statistics.task_rates(outcomes)
    t_test = stats.ttest_1samp(rates, 0.0)
    interval = t_test.confidence_interval()
    mean = statistics.mean_estimate(rates)
    assert (mean.low, mean.high) == close_to((interval.low, interval.high))
    assert statistics.resolved_rate(outcomes).std_error == close_to(stats.sem(rates))

    first = [scores[0] for scores in outcomes.values()]
    wilson = stats.binomtest(int(sum(first)), len(first)).proportion_ci(method="wilson")
    ends = statistics.wilson_interval(sum(first) / len(first), len(first), stats.norm.ppf(0.975))
    assert ends == close_to((wilson.low, wilson.high))

    paired = statistics.paired_difference(outcomes, other)
    common = sorted(task for task in outcomes if task in other)
    a, b = (statistics.task_rates({t: run[t] for t in common}) for run in (outcomes, other))
    interval = stats.ttest_rel(b, a).confidence_interval()
    assert (paired.difference.low, paired.difference.high) == close_to(
        (interval.low, interval.high)
    )
    drawn = np.random.default_rng(0).choice(b - a, (10_000, len(common))).mean(axis=1)
    assert paired.bootstrap == close_to(tuple(np.percentile(drawn, [2.5, 97.5])))
    sign = stats.binomtest(paired.num_better, paired.num_better + paired.num_worse)
    assert paired.p_value == close_to(sign.pvalue)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_pass_at_k_is_the_mean_over_all_draws(k: int) -> None:
    outcomes = {task: s for task, s in generated(3, is_equal=False).items() if len(s) >= k}
    draws = [list(combinations(scores, k)) for scores in outcomes.values()]
    at, hat = (np.mean([np.mean([f(d) for d in of]) for of in draws]) for f in (any, all))
    assert statistics.pass_at_k(outcomes, k).value == close_to(at)
    assert statistics.pass_hat_k(outcomes, k).value == close_to(hat)


def test_pass_at_k_excludes_tasks_with_fewer_attempts() -> None:
    outcomes: statistics.Outcomes = {"a": [1.0, 0.0], "b": [1.0]}
    assert statistics.pass_at_k(outcomes, 2).num_tasks == 1
    with pytest.raises(InvalidArgumentError):
        statistics.pass_at_k(outcomes, 3)


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_interval_has_width_where_all_attempts_agree(score: float) -> None:
    run = {str(task): [score] * 8 for task in range(20)}
    rate = statistics.resolved_rate(run)
    assert rate.low is not None
    assert rate.high is not None
    assert (rate.std_error, rate.low <= score <= rate.high) == (0.0, True)
    assert 0.15 < rate.high - rate.low < 0.25  # the width for 20 trials, not for 160
    same = statistics.paired_difference(run, run)
    assert (same.p_value, same.flips, same.cohens_d) == (1.0, {}, None)
    assert same.difference.low == pytest.approx(-0.1611, abs=1e-4)
    opposite = statistics.paired_difference(run, {task: [1 - score] for task in run})
    assert opposite.difference.value == 1 - 2 * score
    assert opposite.difference.high - opposite.difference.low == pytest.approx(0.3223, abs=1e-4)


def test_one_task_has_no_interval() -> None:
    assert statistics.resolved_rate({"a": [1.0, 0.0]}).to_json() == {
        "value": 0.5, "std_error": None, "low": None, "high": None, "num_tasks": 1
    }  # fmt: skip


def test_comparison_reads_common_tasks_and_lists_flips() -> None:
    a = {"lost": [1.0], "same": [1.0], "won": [0.0, 0.0], "only-a": [1.0]}
    b = {"won": [1.0], "same": [1.0], "lost": [0.0, 1.0], "only-b": [0.0]}
    paired = statistics.paired_difference(a, b)
    assert [*paired.flips.items()] == [("lost", (1.0, 0.5)), ("won", (0.0, 1.0))]
    assert (paired.num_better, paired.num_worse, paired.p_value) == (1, 1, 1.0)
    sd_a, sd_b = math.sqrt(1 / 3), math.sqrt(1 / 12)
    pooled = math.sqrt((sd_a**2 + sd_b**2) / 2)
    assert paired.cohens_d == close_to((5 / 6 - 2 / 3) / pooled)
    with pytest.raises(InvalidArgumentError):
        statistics.paired_difference(a, {})


def test_interval_of_a_difference_stays_between_minus_one_and_one() -> None:
    a, b = {"x": [0.0], "y": [0.0], "z": [1.0]}, {"x": [1.0], "y": [0.0], "z": [1.0]}
    difference = statistics.paired_difference(a, b).difference
    assert (difference.low, difference.high) == (-1, 1)


@pytest.mark.parametrize("num_attempts", [1, 4])
def test_the_clustered_interval_covers_the_true_rate(num_attempts: int) -> None:
    rng = np.random.default_rng(num_attempts)
    num_covered = 0
    for _ in range(1000):
        rates = rng.beta(0.8, 1.2, size=100)  # the mean is 0.4
        table = rng.random((num_attempts, 100)) < rates
        estimate = statistics.rate_estimate(table.mean(axis=0), 100 * num_attempts)
        num_covered += (estimate.low or 0.0) <= 0.4 <= (estimate.high or 1.0)
    assert 930 <= num_covered <= 970
