"""What ``coding-gym validate`` says of each task, and of all of them at the end."""

from collections import Counter
from collections.abc import Collection, Sequence

from rich.console import Console
from rich.table import Table

from coding_gym.grade import GradeReason
from coding_gym.tasks.validation_report import ValidationReport

_MAX_SAID = 200
_NO_GOLD, _ONLY_BASE = "no gold patch", "only the base was checked"
# What is said of a base that does not just fail its tests.
_ODD_BASES: dict[str, str] = {
    GradeReason.RESOLVED: "base passes",
    GradeReason.TIMEOUT: "base timed out",
    GradeReason.TAMPERED: "base tampered",
}


def summarise(
    console: Console, reports: Sequence[ValidationReport], without_gold: Collection[str]
) -> None:
    """Says why each task that cannot be trusted cannot, most frequent kinds of reasons first."""
    skipped = sum(bool(r.skipped) for r in reports)
    bad = [r for r in reports if not (r.ok or r.skipped)]
    if bad:
        kinds_by_key = {r.key: kind_of(r, lacks_gold=r.task_id in without_gold) for r in bad}
        kinds = Counter(kinds_by_key.values())
        table = Table("why", "task", "what was found", box=None, padding=(0, 2, 0, 0))
        for one in sorted(
            bad, key=lambda r: (-kinds[kinds_by_key[r.key]], kinds_by_key[r.key], r.task_id)
        ):
            kind = kinds_by_key[one.key]
            found = _ONLY_BASE if kind == _NO_GOLD else one.error or one.detail
            table.add_row(kind, one.task_id, found[:_MAX_SAID])
        console.print()
        console.print(table)
        console.print("; ".join(f"{kind}: {count}" for kind, count in kinds.most_common()))
        if _NO_GOLD in kinds:
            console.print(f"{_NO_GOLD}: {_ONLY_BASE}")
    left_out = sum(len(r.excluded_tests) for r in reports)
    if left_out:
        console.print(f"{left_out} expected tests left out")
    num_valid, num_looked_at = sum(r.ok for r in reports), len(reports) - skipped
    console.print(
        f"valid {num_valid}/{num_looked_at}" + (f", {skipped} skipped" if skipped else "")
    )


def kind_of(report: ValidationReport, *, lacks_gold: bool = False) -> str:
    """Returns in a word or two why a task cannot be trusted."""
    if report.error:
        return "not built"
    if lacks_gold:
        return _base_kind(report) or _NO_GOLD
    if report.flaky_tests:
        return "flaky tests"
    if any(reason != GradeReason.RESOLVED for reason in report.gold_reasons):
        return "gold fails"
    return _base_kind(report) or ("leak" if report.leaks else "leaks unknown")


def _base_kind(report: ValidationReport) -> str:
    """Returns what is wrong with how the base was graded; "" where nothing is."""
    odd = [reason for reason in report.noop_reasons if reason != GradeReason.TESTS_FAILED]
    if odd:
        return _ODD_BASES.get(odd[0], f"base: {odd[0]}")
    return "base passes" if report.passing_tests else ""


def line_of(report: ValidationReport) -> str:
    """Returns what is said of a task as soon as it was looked at."""
    if report.skipped:
        return f"- {report.task_id:<36} skipped: {report.skipped}"
    mark = "✔" if report.ok else "✘"
    gold, noop = (
        f"{sum(times) / len(times):.2f} s" if times else "-"
        for times in (report.gold_durations_s, report.noop_durations_s)
    )
    told = report.error or report.detail
    line = (
        f"{mark} {report.task_id:<36} template {report.template_s:5.2f} s  gold {gold}  base {noop}"
    )
    return f"{line}  {told}" if told else line
