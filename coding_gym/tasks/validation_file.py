"""Validates tasks and appends the reports to a file, from which a later call continues."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from coding_gym.errors import InvalidArgumentError
from coding_gym.task import Task
from coding_gym.tasks.validation import Checks, ValidationReport, validate

_START = b'{"task_id": '  # of every report


def validate_into(
    file: Path | None, tasks: Sequence[Task], *, checks: Checks, num_workers: int
) -> Iterator[ValidationReport]:
    """Validates tasks; appends each report to a JSONL file, and yields the report.

    Verdicts that the file already has for the same checks come first, and their tasks are not
    validated again. Reports with an ``error`` or ``skipped`` have no verdict.

    Args:
        file: The file; it is created if missing. If None, reports are only yielded.
        tasks: The tasks.
        checks: The checks to run.
        num_workers: Number of tasks that are validated at the same time.

    Raises:
        InvalidArgumentError: A line of the file is not a report; see also `validate`.
    """
    earlier_reports = _read_reports(file, checks) if file else {}
    yield from (earlier_reports[task.task_id] for task in tasks if task.task_id in earlier_reports)
    pending_tasks = [task for task in tasks if task.task_id not in earlier_reports]
    for report in validate(pending_tasks, checks=checks, num_workers=num_workers):
        if file:
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(report.to_json()) + "\n")
        yield report


def write_exclusions(
    file: Path, tasks: Iterable[Task], reports: Iterable[ValidationReport]
) -> None:
    """Writes the unfit tests of each task to a JSONL file, for `load_tasks(environments=...)`."""
    unfit_tests = {report.task_id: set(report.unfit_tests) for report in reports}
    entries = [
        {"instance_id": task.task_id, "excluded_tests": sorted(unfit_tests[task.task_id])}
        for task in tasks
        if set(task.fail_to_pass) - unfit_tests[task.task_id]  # else the task could not be loaded
    ]
    file.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")


def _read_reports(path: Path, checks: Checks) -> dict[str, ValidationReport]:
    """Returns the reports of earlier calls with the same checks, by task id.

    Creates a missing file. An incomplete last line, which a killed process wrote, is removed if all
    other lines are reports. Raises InvalidArgumentError if a line is not a report.
    """
    reports: list[ValidationReport] = []
    with path.open("a+b") as file:
        file.seek(0)
        lines = file.readlines()
        last = lines[-1] if lines else b"\n"
        is_truncated = not last.endswith(b"\n") and _START.startswith(last[: len(_START)])
        for number, line in enumerate(lines[:-1] if is_truncated else lines, 1):
            try:
                reports += [ValidationReport.from_json(json.loads(line))] if line.strip() else []
            except (ValueError, RecursionError) as problem:
                raise InvalidArgumentError(
                    f"{path} line {number} must be a report of this command ({problem}); fix or "
                    "remove the line, or name a new file (--out)"
                ) from None
        if is_truncated:
            file.truncate(file.tell() - len(last))
    return {
        report.task_id: report
        for report in reports
        if report.checks == checks.to_json() and not (report.error or report.skipped)
    }
