"""A ranking of runs."""

from collections.abc import Iterable

from coding_gym.evaluation.report import Report, cells, markdown_table, number, percent

COLUMNS = (
    *("rank", "run", "version", "model", "resolved", "95 % interval"),
    *("code similarity", "test similarity", "tokens used / limit", "tool calls / limit"),
)


def leaderboard(reports: Iterable[Report]) -> str:
    """Ranks runs by their resolved rate, then by code similarity, as a Markdown table.

    Similarities (`patch_similarity`), tokens and tool calls are means over tasks.

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
        *(number(_mean(one, name)) for name in ("code_similarity", "test_similarity")),
        f"{number(tokens)} / {number(limits.get('max_tokens'))}",
        f"{number(_mean(one, 'tool_calls'))} / {number(limits.get('max_tool_calls'))}",
    )
