"""What a table says of a whole set of tasks."""

from dataclasses import replace

from rows import loaded, row

from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.tasks.quality import Measure, badge, measure
from coding_gym.tasks.validation_report import ValidationReport

BUGGY = "def area(width, height):\n    return width + height\n"
FIXED = BUGGY.replace("width + height", "width * height if width else 0")
TASK = replace(loaded(row()), gold_patch=Patch.between({"a.py": BUGGY}, {"a.py": FIXED}).text)
GOOD = ValidationReport(
    task_id="x", ok=True, gold_reasons=("resolved",) * 2, noop_reasons=("tests_failed",) * 2
)


def named(task_id: str, **changes: object) -> Task:
    more = {"problem_statement": f"Issue {task_id}", "repo": task_id} | changes
    return replace(TASK, task_id=task_id, **more)  # type: ignore[arg-type]


def table(*pairs: tuple[Task, ValidationReport]) -> dict[str, Measure]:
    tasks = [task for task, _ in pairs]
    reports = [replace(report, task_id=task.task_id) for task, report in pairs]
    return {one.name: one for one in measure(tasks, reports)}


def test_each_fault_is_counted_where_it_belongs() -> None:
    found = table(
        (named("good"), replace(GOOD, levels={"value": 3, "polarity": 1})),
        (named("gold"), replace(GOOD, gold_reasons=("resolved", "tests_failed"))),
        (named("base"), replace(GOOD, noop_reasons=("resolved",))),
        (named("flaky"), replace(GOOD, flaky_tests=("t",))),
        (named("leak"), replace(GOOD, leaks=("b.py",))),
        (named("unbuilt"), ValidationReport(task_id="", ok=False, error="no disk")),
        (named("skipped"), ValidationReport(task_id="", ok=False, skipped="no cargo")),
    )
    for name, exceptions, num_all in [
        ("was built and graded", ("unbuilt",), 6),
        ("gold patch resolves", ("gold",), 5),
        ("unrepaired tree does not", ("base",), 5),
        ("no flaky test", ("flaky",), 5),
        ("repair is not readable in the sandbox", ("leak",), 5),
        ("repair is not in the issue", (), 7),
    ]:
        assert (found[name].exceptions, found[name].num_all) == (exceptions, num_all), name
    challenged = found["tests of bugs challenged by value or error"]
    assert (challenged.num_good, challenged.num_all) == (3, 4)


def test_an_issue_that_shows_the_repair_is_named() -> None:
    told = named("told", problem_statement="Write\n\n    return width * height if width else 0\n")
    half = named("half", problem_statement="It is width * height")
    found = table((told, GOOD), (half, GOOD))["repair is not in the issue"]
    assert found.exceptions == ("told",)


def test_the_same_issue_or_repair_in_one_repository_counts_once() -> None:
    tasks = [
        named("first", repo="o/n", problem_statement="Area is wrong!"),
        named("issue", repo="o/n", problem_statement="area is  wrong", gold_patch=""),
        named("repair", repo="o/n", problem_statement="Something else"),
        named("elsewhere", repo="o/m", problem_statement="Area is wrong!"),
    ]
    found = table(*((task, GOOD) for task in tasks))["no duplicate"]
    assert found.exceptions == ("issue", "repair")


def test_a_badge_says_how_many_are_valid_and_how_strong_tests_are() -> None:
    measures = measure([TASK], [replace(GOOD, num_mutants=8, num_caught_mutants=7)])
    assert "1%20of%201%20tasks%20valid" in badge(measures, 1, 1)
    assert "88%25" in badge(measures, 1, 1)
    assert badge(measures, 1, 1).endswith("brightgreen)")
    assert "yellow" in badge(measure([TASK], [GOOD]), 0, 1)
