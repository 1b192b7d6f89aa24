"""Rates of success with honest intervals, and the comparison of two runs on the same tasks.

Attempts at one task are alike, so the task is the unit of sampling: every rate is a mean over
tasks of one value per task, and its standard error is clustered by task. The same values serve for
every size of k, and tasks with fewer attempts than others weigh the same.

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
"""Scores of the attempts at each task, by task id: 1 where resolved, else 0. Tasks may have
different numbers of attempts."""

CONFIDENCE = 0.95
"""How often an interval should contain the true value."""

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(JsonRecord):
    """A mean over tasks.

    Attributes:
        value: The mean.
        std_error: Its standard error, clustered by task; None with fewer than two tasks.
        low: Lower end of the confidence interval; None with fewer than two tasks.
        high: Its upper end; None with fewer than two tasks.
        num_tasks: Number of tasks.
    """

    value: float
    std_error: float | None
    low: float | None
    high: float | None
    num_tasks: int


def wilson_interval(
    num_successes: float,
    num_trials: float,
    *,
    quantile: float | None = None,
    confidence: float = CONFIDENCE,
) -> tuple[float, float]:
    """Returns Wilson's score interval of a rate, as its lower and upper end.

    Args:
        num_successes: Trials that succeeded.
        num_trials: Independent trials, or their effective number; with none the rate may be any.
        quantile: Standard errors on either side; by default the normal distribution's.
        confidence: Confidence level.

    >>> [round(end, 4) for end in wilson_interval(3, 10)]
    [0.1078, 0.6032]
    """
    from scipy.special import ndtri

    if not num_trials:
        return 0.0, 1.0
    z = float(ndtri((1 + confidence) / 2)) if quantile is None else quantile
    rate = num_successes / num_trials
    centre = rate + z * z / (2 * num_trials)
    half = z * math.sqrt(rate * (1 - rate) / num_trials + (z / (2 * num_trials)) ** 2)
    scale = 1 + z * z / num_trials
    # Rounding may put an end a little beyond a rate of 0 or 1.
    return min(rate, (centre - half) / scale), max(rate, (centre + half) / scale)


def rate_estimate(
    values: Sequence[float] | NDArray[np.float64],
    num_attempts: int,
    *,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Returns the mean of one value from 0 to 1 per task, with Wilson's interval for clusters.

    The interval is Wilson's for an effective number of trials, rate * (1 - rate) / std_error², at
    most ``num_attempts``, with the quantile of Student's t for as many degrees of freedom as tasks
    less one. Where no task or every task succeeds, the effective number is that of tasks, as if
    all attempts at a task went alike.

    Simulated coverage of the 95 % interval is 93 to 97 % where successes and failures each amount
    to ten tasks or more, 93 to 98 % from five on, and can be as low as 88 % for a rate, or 83 % for
    pass@4, below that (``benchmarks/bench_coverage.py``: 30 to 500 tasks, 1 to 8 attempts).

    Args:
        values: One value per task, shape (num_tasks,).
        num_attempts: Attempts at all tasks together.
        confidence: Confidence level.

    Raises:
        InvalidArgumentError: There is no value, or one is not between 0 and 1.
    """
    mean = mean_estimate(values, confidence=confidence)
    if min(values) < 0 or max(values) > 1:
        raise InvalidArgumentError(
            f"values must be between 0 and 1, got {min(values):g} to {max(values):g}"
        )
    if mean.std_error is None:
        return mean
    spread = mean.value * (1 - mean.value)
    if spread < _ROUNDING:
        num_trials = float(mean.num_tasks)
    else:
        num_trials = spread / max(mean.std_error**2, spread / num_attempts)
    quantile = _t_quantile(mean.num_tasks, confidence)
    low, high = wilson_interval(mean.value * num_trials, num_trials, quantile=quantile)
    return replace(mean, low=low, high=high)


def mean_estimate(
    values: Sequence[float] | NDArray[np.float64], *, confidence: float = CONFIDENCE
) -> Estimate:
    """Returns the mean of one value of any size per task, with Student's t interval.

    Args:
        values: One value per task, shape (num_tasks,).
        confidence: Confidence level.

    Raises:
        InvalidArgumentError: There is no value.
    """
    array = _values(values)
    mean, num_tasks = float(array.mean()), len(array)
    if num_tasks < 2:
        return Estimate(value=mean, std_error=None, low=None, high=None, num_tasks=num_tasks)
    error = float(array.std(ddof=1)) / math.sqrt(num_tasks)
    half = _t_quantile(num_tasks, confidence) * error
    return Estimate(
        value=mean, std_error=error, low=mean - half, high=mean + half, num_tasks=num_tasks
    )


def task_rates(outcomes: Outcomes) -> NDArray[np.float64]:
    """Returns each task's mean over its attempts, shape (num_tasks,).

    Raises:
        InvalidArgumentError: A task has no attempts.
    """
    if empty := [task for task, scores in outcomes.items() if not scores]:
        raise InvalidArgumentError(f"task {empty[0]!r} has no attempts; leave it out")
    return np.array([math.fsum(scores) / len(scores) for scores in outcomes.values()])


def resolved_rate(outcomes: Outcomes, *, confidence: float = CONFIDENCE) -> Estimate:
    """Returns the mean over tasks of the share of attempts that resolve the task; pass@1.

    Raises:
        InvalidArgumentError: There is no task, or one without attempts.
    """
    num_attempts = sum(map(len, outcomes.values()))
    return rate_estimate(task_rates(outcomes), num_attempts, confidence=confidence)


def pass_at_k(outcomes: Outcomes, k: int, *, confidence: float = CONFIDENCE) -> Estimate:
    """Returns the probability that at least one of k attempts resolves a task.

    With c of n attempts resolved it is 1 - C(n - c, k) / C(n, k), without bias. Tasks with fewer
    than k attempts are left out.

    Source: Chen et al. 2021, equation 1.

    Raises:
        InvalidArgumentError: No task has k attempts, or k is less than 1.

    >>> pass_at_k({"a": [1, 0, 0, 0], "b": [0, 0, 0, 0]}, 2).value
    0.25
    """
    return _of_draws(
        outcomes, k, lambda n, c: 1 - math.comb(n - c, k) / math.comb(n, k), confidence
    )


def pass_hat_k(outcomes: Outcomes, k: int, *, confidence: float = CONFIDENCE) -> Estimate:
    """Returns pass^k, the probability that each of k attempts resolves a task.

    With c of n attempts resolved it is C(c, k) / C(n, k), without bias. Tasks with fewer than k
    attempts are left out.

    Source: Yao et al. 2024, section 4.

    Raises:
        InvalidArgumentError: No task has k attempts, or k is less than 1.

    >>> pass_hat_k({"a": [1, 1, 1, 0], "b": [1, 1, 1, 1]}, 2).value
    0.75
    """
    return _of_draws(outcomes, k, lambda n, c: math.comb(c, k) / math.comb(n, k), confidence)


def _of_draws(
    outcomes: Outcomes, k: int, value: Callable[[int, int], float], confidence: float
) -> Estimate:
    if k < 1:
        raise InvalidArgumentError(f"k must be at least 1, got {k}")
    counts = [(len(s), sum(score >= 1 for score in s)) for s in outcomes.values() if len(s) >= k]
    if not counts:
        raise InvalidArgumentError(f"no task has {k} attempts")
    values = [value(n, c) for n, c in counts]
    return rate_estimate(values, sum(n for n, _ in counts), confidence=confidence)


def bootstrap_interval(
    values: Sequence[float] | NDArray[np.float64],
    *,
    seed: int = 0,
    num_resamples: int = 10_000,
    confidence: float = CONFIDENCE,
) -> tuple[float, float]:
    """Returns the percentile bootstrap interval of a mean, resampling whole tasks.

    Equal to ``scipy.stats.bootstrap(method="percentile")`` with the same generator.

    Args:
        values: One value per task, shape (num_tasks,).
        seed: Seed of the resamples.
        num_resamples: How many sets of tasks are drawn.
        confidence: Confidence level.

    Raises:
        InvalidArgumentError: There is no value.
    """
    array = _values(values)
    generator = np.random.default_rng(seed)
    batch = max(1, 1_000_000 // len(array))  # bounds memory
    sizes = [min(batch, num_resamples - start) for start in range(0, num_resamples, batch)]
    means = [
        array[generator.integers(0, len(array), (size, len(array)))].mean(axis=1) for size in sizes
    ]
    tail = 50 * (1 - confidence)
    low, high = np.percentile(np.concatenate(means), [tail, 100 - tail])
    return float(low), float(high)


def mcnemar_exact(num_better: int, num_worse: int) -> float:
    """Returns the two-sided p-value of McNemar's exact test.

    Under the null hypothesis each pair that differs does so either way with probability 1/2.

    >>> round(mcnemar_exact(1, 5), 5)
    0.21875
    """
    from scipy.special import bdtr

    total = num_better + num_worse
    return min(1.0, 2 * float(bdtr(min(num_better, num_worse), total, 0.5))) if total else 1.0


def cohens_d(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Returns Cohen's d of two equally long samples: mean of b less that of a, standardised.

    The unit is the pooled standard deviation, sqrt((var(a) + var(b)) / 2), so the size of the
    effect does not depend on how the pairs correlate. None where neither sample varies, or with
    fewer than two values.
    """
    first, second = _values(a), _values(b)
    if len(first) < 2:
        return None
    pooled = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    return float(second.mean() - first.mean()) / pooled if pooled else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip(JsonRecord):
    """A task on which two runs differ.

    Attributes:
        task_id: The task.
        rate_a: Share of run a's attempts that resolve it.
        rate_b: Share of run b's attempts that resolve it.
    """

    task_id: str
    rate_a: float
    rate_b: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference(JsonRecord):
    """How run b differs from run a on the tasks that both have attempted.

    Attributes:
        rate_a: Resolved rate of a on these tasks.
        rate_b: Resolved rate of b on these tasks.
        difference: Mean over tasks of b's rate less a's, with an interval of the pairs.
        num_better: Tasks that b resolves more often.
        num_worse: Tasks that b resolves less often.
        p_value: Of McNemar's exact test over these two numbers. With several attempts it is the
            exact sign test over tasks, of which McNemar's is the case of one attempt.
        cohens_d: Standardised difference of the tasks' rates; None where neither varies.
        flips: The tasks that differ, largest loss first.
    """

    rate_a: Estimate
    rate_b: Estimate
    difference: Estimate
    num_better: int
    num_worse: int
    p_value: float
    cohens_d: float | None
    flips: tuple[Flip, ...]


def paired_difference(
    a: Outcomes, b: Outcomes, *, confidence: float = CONFIDENCE
) -> PairedDifference:
    """Compares two runs by the tasks that both have; attempts need not be equal in number.

    The interval is Student's t over one difference per task. Where all differences are equal, as
    zero often is, it allows for Wilson's upper limit of the share of tasks at which they are not.
    Simulated coverage is 93 to 97 % where ten tasks or more differ and less where few do; the
    p-value is exact for any number.

    Source: Miller 2024, section 4 (paired differences, clustered by task).

    Raises:
        InvalidArgumentError: The runs have no task in common, or one has no attempts.
    """
    common = sorted(a.keys() & b.keys())
    if not common:
        raise InvalidArgumentError("the two runs have no task in common")
    first, second = ({task: run[task] for task in common} for run in (a, b))
    estimates = [resolved_rate(run, confidence=confidence) for run in (first, second)]
    rates_a, rates_b = task_rates(first), task_rates(second)
    differences = rates_b - rates_a
    better, worse = (int((sign * differences > _ROUNDING).sum()) for sign in (1, -1))
    difference = mean_estimate(differences, confidence=confidence)
    if difference.std_error is not None and difference.std_error < _ROUNDING:
        share, value = wilson_interval(0, len(common), confidence=confidence)[1], difference.value
        low, high = value - share * (1 + value), value + share * (1 - value)
        difference = replace(difference, low=low, high=high)
    flips = [
        Flip(task_id=task, rate_a=float(rate_a), rate_b=float(rate_b))
        for task, rate_a, rate_b in zip(common, rates_a, rates_b, strict=True)
        if abs(rate_b - rate_a) > _ROUNDING
    ]
    return PairedDifference(
        rate_a=estimates[0],
        rate_b=estimates[1],
        difference=difference,
        num_better=better,
        num_worse=worse,
        p_value=mcnemar_exact(better, worse),
        cohens_d=cohens_d(rates_a.tolist(), rates_b.tolist()),
        flips=tuple(sorted(flips, key=lambda flip: flip.rate_b - flip.rate_a)),
    )


def _values(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    if not len(values):
        raise InvalidArgumentError("there is no task")
    return np.asarray(values, dtype=np.float64)


def _t_quantile(num_values: int, confidence: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(num_values - 1, (1 + confidence) / 2))
