"""A ranking of runs."""

from collections.abc import Iterable

from coding_gym.evaluation.report import Report, cells, markdown_table, number, percent

COLUMNS = (
    *("rank", "run", "version", "model", "resolved", "95 % interval", "code similarity"),
    *("test similarity", "tokens used / limit", "tool calls / limit", "shell commands"),
)


def leaderboard(reports: Iterable[Report]) -> str:
    """Ranks runs by their resolved rate, then by code similarity, as a Markdown table.

    Similarities are means and standard deviations over tasks of nano-agent's score
    (`patch_similarity`); tokens and tool calls are means over tasks. The last column names the
    shell commands that nano-agent counts, with their mean number.

    Args:
        reports: Reports of runs.
    """
    reports = sorted(reports, key=_rank)
    table = markdown_table(COLUMNS, [(n, *_row(one)) for n, one in enumerate(reports, start=1)])
    notes = [f"- {one.name}: {caveat}" for one in reports for caveat in one.caveats]
    return "\n".join([table, *([""] if notes else []), *notes, ""])


def _mean(one: Report, *names: str) -> float | None:
    """Returns the sum of the means of some measures; None for a run without them."""
    means = [one.metrics[name].value for name in names if name in one.metrics]
    return sum(means) if means else None


def _rank(one: Report) -> tuple[float, float, str]:
    rate = -one.resolved.value if one.resolved else 1.0
    return rate, -(_mean(one, "code_similarity") or 0.0), one.name


def _row(one: Report) -> tuple[object, ...]:
    limits = one.config["episode"].get("limits") or {}
    tokens = _mean(one, "prompt_tokens", "completion_tokens")
    return (
        one.name,
        one.config["versions"].get("coding-gym", "-"),
        one.model,
        *cells(one.resolved, percent),
        _with_deviation(one, "code_similarity"),
        _with_deviation(one, "test_similarity"),
        f"{number(tokens)} / {number(limits.get('max_tokens'))}",
        f"{number(_mean(one, 'tool_calls'))} / {number(limits.get('max_tool_calls'))}",
        _shell_commands(one),
    )


def _shell_commands(one: Report) -> str:
    prefix = "shell_cmd_"
    means = {name: e.value for name, e in one.metrics.items() if name.startswith(prefix)}
    counted = sorted(means.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{n.removeprefix(prefix)} {number(v)}" for n, v in counted if v) or "-"


def _with_deviation(one: Report, name: str) -> str:
    estimate = one.metrics.get(name)
    if estimate is None or estimate.std_error is None:
        return "-" if estimate is None else f"{estimate.value:.3f}"
    deviation = estimate.std_error * estimate.num_tasks**0.5
    return f"{estimate.value:.3f} ± {deviation:.3f}"
