"""Success rates with confidence intervals, and the comparison of two runs on the same tasks.

Attempts at one task are correlated, so the task is the unit of sampling: every rate is a mean over
tasks of one value per task, and its standard error is clustered by task. All tasks have the same
weight; the number of attempts does not change it.

Sources: Chen et al., "Evaluating Large Language Models Trained on Code" (arXiv 2107.03374) for
pass@k; Yao et al., "tau-bench" (arXiv 2406.12045) for pass^k; Miller, "Adding Error Bars to Evals"
(arXiv 2411.00640) for clustering and pairing; Wilson, JASA 22 (1927), and Korn and Graubard, Survey
Methodology 24 (1998), for intervals; McNemar, Psychometrika 12 (1947); Cohen, "Statistical Power
Analysis for the Behavioral Sciences" (1988).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coding_gym.errors import InvalidArgumentError
from coding_gym.json_record import JsonRecord

Outcomes = Mapping[str, Sequence[float]]
"""Scores of the attempts at each task, by task id: 1 if resolved, else 0. Tasks can have different
numbers of attempts."""

CONFIDENCE = 0.95
"""The confidence level of all intervals."""

Values = Sequence[float] | NDArray[np.float64]

_ROUNDING = 1e-12
_NUM_RESAMPLES, _BATCH = 10_000, 1000  # batches bound memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(JsonRecord):
    """A mean over tasks.

    Attributes:
        value: The mean.
        std_error: Standard error of the mean, clustered by task; None with fewer than two tasks.
        low: Lower end of the confidence interval; None with fewer than two tasks.
        high: Upper end of the confidence interval; None with fewer than two tasks.
        num_tasks: Number of tasks.
    """

    value: float
    std_error: float | None
    low: float | None
    high: float | None
    num_tasks: int


def wilson_interval(rate: float, num_trials: float, z: float) -> tuple[float, float]:
    """Returns the lower and the upper end of Wilson's score interval of a rate.

    Args:
        rate: The share of trials that succeeded.
        num_trials: Number of independent trials, or the effective number of clustered trials.
        z: The critical value, in standard errors.

    >>> [round(end, 4) for end in wilson_interval(0.3, 10, 1.96)]
    [0.1078, 0.6032]
    """
    centre = rate + z * z / (2 * num_trials)
    half_width = z * math.sqrt(rate * (1 - rate) / num_trials + (z / (2 * num_trials)) ** 2)
    scale = 1 + z * z / num_trials
    # Rounding errors can put an end beyond the rate if the rate is 0 or 1.
    return min(rate, (centre - half_width) / scale), max(rate, (centre + half_width) / scale)


def rate_estimate(values: Values, num_attempts: int) -> Estimate:
    """Returns the mean of one rate per task, with Wilson's interval for clustered trials.

    The effective number of trials is rate * (1 - rate) / std_error², at most ``num_attempts``. If
    the rate is 0 or 1, the effective number is the number of tasks, n. The critical value is the
    quantile of Student's t distribution with n - 1 degrees of freedom.

    Simulated coverage of the 95 % interval (30 to 500 tasks, 1 to 8 attempts) is 93 to 97 % if at
    least ten tasks succeed and ten fail, and 93 to 98 % if at least five succeed and five fail.
    Otherwise coverage can be as low as 88 % for pass@1, and 83 % for pass@4.

    Args:
        values: One value from 0 to 1 per task, shape (num_tasks,).
        num_attempts: Total number of attempts at all tasks.

    Raises:
        InvalidArgumentError: ``values`` is empty.
    """
    mean = mean_estimate(values)
    if mean.std_error is None:
        return mean
    variance = mean.value * (1 - mean.value)
    if variance < _ROUNDING:
        num_trials = float(mean.num_tasks)
    else:
        num_trials = variance / max(mean.std_error**2, variance / num_attempts)
    low, high = wilson_interval(mean.value, num_trials, _t_quantile(mean.num_tasks))
    return replace(mean, low=low, high=high)


def mean_estimate(values: Values, least: float = -math.inf, most: float = math.inf) -> Estimate:
    """Returns the mean of one value per task, with Student's t interval.

    Args:
        values: One value per task, shape (num_tasks,).
        least: The smallest possible value; bounds the interval.
        most: The largest possible value; bounds the interval.

    Raises:
        InvalidArgumentError: ``values`` is empty.
    """
    if not len(values):
        raise InvalidArgumentError("values must have at least one task, got none")
    mean, num_tasks = float(np.mean(values)), len(values)
    if num_tasks < 2:
        return Estimate(value=mean, std_error=None, low=None, high=None, num_tasks=num_tasks)
    error = float(np.std(values, ddof=1)) / math.sqrt(num_tasks)
    half_width = _t_quantile(num_tasks) * error
    low, high = max(mean - half_width, least), min(mean + half_width, most)
    return Estimate(value=mean, std_error=error, low=low, high=high, num_tasks=num_tasks)


def task_rates(outcomes: Outcomes) -> NDArray[np.float64]:
    """Returns the mean score of each task's attempts, shape (num_tasks,)."""
    return np.array([math.fsum(scores) / len(scores) for scores in outcomes.values()])


def resolved_rate(outcomes: Outcomes) -> Estimate:
    """Returns pass@1, the mean over tasks of the share of attempts that resolve the task."""
    return rate_estimate(task_rates(outcomes), sum(map(len, outcomes.values())))


def pass_at_k(outcomes: Outcomes, k: int) -> Estimate:
    """Returns pass@k, the estimated probability that at least one of k attempts resolves a task.

    The unbiased estimate is the mean of 1 - C(n - c, k) / C(n, k), for c of n attempts resolved,
    over tasks with k or more attempts (Chen et al. 2021, equation 1).

    Raises:
        InvalidArgumentError: No task has k or more attempts.

    >>> pass_at_k({"a": [1, 0, 0, 0], "b": [0, 0, 0, 0]}, 2).value
    0.25
    """
    return _draw_estimate(outcomes, k, lambda n, c: 1 - math.comb(n - c, k) / math.comb(n, k))


def pass_hat_k(outcomes: Outcomes, k: int) -> Estimate:
    """Returns pass^k, the estimated probability that all of k attempts resolve a task.

    The unbiased estimate is the mean of C(c, k) / C(n, k), for c of n attempts resolved, over tasks
    with k or more attempts (Yao et al. 2024, section 4).

    Raises:
        InvalidArgumentError: No task has k or more attempts.

    >>> pass_hat_k({"a": [1, 1, 1, 0], "b": [1, 1, 1, 1]}, 2).value
    0.75
    """
    return _draw_estimate(outcomes, k, lambda n, c: math.comb(c, k) / math.comb(n, k))


def _draw_estimate(outcomes: Outcomes, k: int, value: Callable[[int, int], float]) -> Estimate:
    """Returns the mean of ``value(n, c)`` over tasks with k or more attempts."""
    counts = [(len(s), sum(score >= 1 for score in s)) for s in outcomes.values() if len(s) >= k]
    if not counts:
        raise InvalidArgumentError(f"no task has {k} or more attempts; use a smaller k")
    return rate_estimate([value(n, c) for n, c in counts], sum(n for n, _ in counts))


def bootstrap_interval(values: Values) -> tuple[float, float] | None:
    """Returns the percentile bootstrap interval of a mean, from 10,000 samples of tasks.

    Unlike Student's interval, this interval assumes no distribution, and it is too narrow for few
    tasks. CodeRepairRL's evaluation reports this interval. Returns None for fewer than two tasks.

    Args:
        values: One value per task, shape (num_tasks,).
    """
    from scipy.stats import bootstrap

    if len(values) < 2:
        return None
    result = bootstrap(
        (values,),
        np.mean,
        n_resamples=_NUM_RESAMPLES,
        batch=_BATCH,
        confidence_level=CONFIDENCE,
        method="percentile",
        random_state=np.random.default_rng(0),
    )
    interval = result.confidence_interval
    return float(interval.low), float(interval.high)


def cohens_d(a: Values, b: Values) -> float | None:
    """Returns Cohen's d of two equally long samples: mean of b minus mean of a, standardised.

    The unit is the pooled standard deviation, sqrt((var(a) + var(b)) / 2), so the effect size does
    not depend on the correlation of the pairs. Returns None if both samples are constant or have
    fewer than two values.
    """
    if len(a) < 2:
        return None
    pooled = math.sqrt((np.var(a, ddof=1) + np.var(b, ddof=1)) / 2)
    return float(np.mean(b) - np.mean(a)) / pooled if pooled else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference(JsonRecord):
    """The difference between runs a and b on their common tasks.

    Attributes:
        rate_a: Rate of a on the common tasks.
        rate_b: Rate of b on the common tasks.
        difference: Mean over tasks of b's rate minus a's, with a paired interval.
        bootstrap: Percentile bootstrap interval of the same mean; None for fewer than two tasks.
        num_better: Number of tasks at which b has the higher rate.
        num_worse: Number of tasks at which b has the lower rate.
        p_value: The p-value of the exact sign test of ``num_better`` against ``num_worse``; with
            one attempt per task this is McNemar's exact test.
        cohens_d: Cohen's d of the tasks' rates; None for one task, or if the rates are constant.
        flips: The rates (a, b) of each task at which a and b differ, by task id, the largest
            decrease first.
    """

    rate_a: Estimate
    rate_b: Estimate
    difference: Estimate
    bootstrap: tuple[float, float] | None
    num_better: int
    num_worse: int
    p_value: float
    cohens_d: float | None
    flips: Mapping[str, tuple[float, float]]


def paired_difference(a: Outcomes, b: Outcomes) -> PairedDifference:
    """Returns the comparison of two runs on their common tasks; numbers of attempts may differ.

    The interval is Student's t over one difference per task. If all differences are equal, the
    interval allows for differences of -1 or 1 at a share of the tasks: Wilson's upper limit for 0
    of n tasks. Simulated coverage is 93 to 97 % if at least ten tasks differ, and less otherwise;
    the p-value is always exact.

    Source: Miller 2024, section 4 (paired differences, clustered by task).

    Raises:
        InvalidArgumentError: The runs have no task in common.
    """
    from scipy.stats import binomtest

    common_tasks = sorted(a.keys() & b.keys())
    if not common_tasks:
        raise InvalidArgumentError("the two runs have no task in common")
    first, second = ({task: run[task] for task in common_tasks} for run in (a, b))
    rates_a, rates_b = task_rates(first), task_rates(second)
    differences = rates_b - rates_a
    num_better, num_worse = (int((sign * differences > _ROUNDING).sum()) for sign in (1, -1))
    flips = {
        common_tasks[i]: (float(rates_a[i]), float(rates_b[i]))
        for i in np.argsort(differences, kind="stable")
        if abs(differences[i]) > _ROUNDING
    }
    return PairedDifference(
        rate_a=resolved_rate(first),
        rate_b=resolved_rate(second),
        difference=_mean_difference(differences),
        bootstrap=bootstrap_interval(differences),
        num_better=num_better,
        num_worse=num_worse,
        p_value=float(binomtest(num_better, num_better + num_worse).pvalue) if flips else 1.0,
        cohens_d=cohens_d(rates_a, rates_b),
        flips=flips,
    )


def _mean_difference(differences: Values) -> Estimate:
    """Returns the mean of one difference per task, with the interval of `paired_difference`."""
    from scipy.stats import binomtest

    mean = mean_estimate(differences, least=-1.0, most=1.0)
    if mean.std_error is None or mean.std_error >= _ROUNDING:
        return mean
    share, value = binomtest(0, mean.num_tasks).proportion_ci(method="wilson").high, mean.value
    return replace(mean, low=value - share * (1 + value), high=value + share * (1 - value))


def _t_quantile(num_values: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(num_values - 1, (1 + CONFIDENCE) / 2))
