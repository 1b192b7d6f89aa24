"""A ranking of runs, with the columns of nano-agent's leaderboard."""

from collections.abc import Iterable
from pathlib import Path

from coding_gym.agents.predictions import GoldenAgent
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation.report import Report, cells, markdown_table, number, percent, report

COLUMNS = (
    *("rank", "run", "version", "model", "agent", "resolved", "95 % interval"),
    *("code similarity", "test similarity", "tokens used / limit", "tool calls / limit"),
    *("tasks", "attempts", "errors"),
)


def leaderboard(runs: str | Path | Iterable[Report]) -> str:
    """Ranks runs by their resolved rate, then by code similarity, as a Markdown table.

    Similarities are means and standard deviations over tasks of nano-agent's score
    (`patch_similarity`); tokens and tool calls are means over tasks. Runs that only check tasks are
    left out.

    Args:
        runs: A folder that holds the folders of runs, or reports.

    Raises:
        InvalidArgumentError: There is no run.
    """
    if isinstance(runs, str | Path):
        folders = [config.parent for config in Path(runs).glob("*/config.json")]
        if not folders:
            raise InvalidArgumentError(f"no folder in {runs} holds a run")
        runs = map(report, folders)
    played = (one for one in runs if one.config["agent"]["name"] != GoldenAgent.name)
    reports = sorted(played, key=_rank)
    table = markdown_table(COLUMNS, [(n, *_row(one)) for n, one in enumerate(reports, start=1)])
    notes = [f"- {one.name}: {caveat}" for one in reports for caveat in one.caveats]
    return "\n".join([table, *([""] if notes else []), *notes, ""])


def _mean(one: Report, *names: str) -> float | None:
    """Returns the sum of the means of some measures; None where the run has none of them."""
    means = [one.metrics[name].value for name in names if name in one.metrics]
    return sum(means) if means else None


def _rank(one: Report) -> tuple[float, float, str]:
    similarity, resolved = _mean(one, "code_similarity"), _mean(one, "resolved")
    return 1.0 if resolved is None else -resolved, -(similarity or 0.0), one.name


def _row(one: Report) -> tuple[object, ...]:
    limits = one.config["episode"].get("limits") or {}
    tokens = _mean(one, "prompt_tokens", "completion_tokens")
    return (
        one.name,
        one.config["versions"].get("coding-gym", "-"),
        one.model,
        one.config["agent"]["name"],
        *cells(one.overall.resolved, percent),
        _with_deviation(one, "code_similarity"),
        _with_deviation(one, "test_similarity"),
        f"{number(tokens)} / {number(limits.get('max_tokens'))}",
        f"{number(_mean(one, 'tool_calls'))} / {number(limits.get('max_tool_calls'))}",
        one.overall.num_tasks,
        one.overall.num_attempts,
        one.overall.num_errors,
    )


def _with_deviation(one: Report, name: str) -> str:
    estimate = one.metrics.get(name)
    if estimate is None or estimate.std_error is None:
        return "-" if estimate is None else f"{estimate.value:.3f}"
    deviation = estimate.std_error * estimate.num_tasks**0.5
    return f"{estimate.value:.3f} ± {deviation:.3f}"
