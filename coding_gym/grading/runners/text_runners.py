"""The runners that read what a command of the task printed or left: their formats and files."""

import shlex

from coding_gym.grading.formats.cargo import read_cargo
from coding_gym.grading.formats.go_json import read_go
from coding_gym.grading.formats.junit_xml import read_junit
from coding_gym.grading.formats.outcomes import Outcomes
from coding_gym.grading.formats.tap import read_tap
from coding_gym.grading.runners.commands import CommandRun
from coding_gym.grading.runners.known_tests import ANY, CARGO, GO, TEST_FOLDERS
from coding_gym.grading.runners.output_runner import OutputRunner, read_output
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task

_MAX_REPORTS = 1000


def _report_problem(task: Task) -> str:
    """That there is no pattern of JUnit XML files, or one that leaves the workspace; or ""."""
    if not task.test_report.split():
        return "is missing; it must say where the reports lie, such as 'build/*.xml'"
    odd = [p for p in task.test_report.split() if p.startswith("/") or ".." in p.split("/")]
    return f"must stay in the tree, got {odd[0]!r}" if odd else ""


def _clear_reports(sandbox: Sandbox, task: Task) -> None:
    """Removes reports that are there before the tests ran."""
    sandbox.run(f"{_listing(task)} | xargs -0 -r rm -rf --")


def _read_reports(sandbox: Sandbox, task: Task, _: CommandRun) -> Outcomes:
    """The outcomes in JUnit XML files by the glob patterns in ``test_report``."""
    listed = sandbox.run(_listing(task)).output.split("\0")
    paths = sorted(path for path in listed if path)
    if len(paths) > _MAX_REPORTS:
        return Outcomes(ended=False)
    found = []
    for path in paths:
        try:
            found.append(sandbox.read_file(path))
        except OSError:  # a folder, a pipe, or too large: no report that we asked for
            return Outcomes(ended=False)
    return read_junit(found)


TEXT_RUNNERS = (
    OutputRunner(
        name="cargo",
        read=read_output(read_cargo),
        default_command="cargo test --offline --no-fail-fast",
        names=(*CARGO, *TEST_FOLDERS),
        is_by_file=True,
    ),
    OutputRunner(
        name="go",
        read=read_output(read_go),
        default_command="go test -json -count=1 ./...",
        names=GO,
    ),
    OutputRunner(
        name="junit",
        read=_read_reports,
        clear=_clear_reports,
        report_problem=_report_problem,
        names=(*ANY, *TEST_FOLDERS),
    ),
    OutputRunner(name="tap", read=read_output(read_tap), names=(*ANY, *TEST_FOLDERS)),
)


def _listing(task: Task) -> str:
    patterns = " ".join(_glob(pattern) for pattern in task.test_report.split())
    return f"shopt -s globstar nullglob; printf '%s\\0' {patterns}"


def _glob(pattern: str) -> str:
    """Quotes all of a pattern but what makes it one."""
    return "".join(char if char in "*?[]-" else shlex.quote(char) for char in pattern)
