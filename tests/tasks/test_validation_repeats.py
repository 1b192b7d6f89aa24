"""What validation says where one patch is not graded alike every time."""

import pytest
from cart_task import TASK

from coding_gym.grade import Grade, GradeReason
from coding_gym.tasks import validation
from coding_gym.tasks.validation import validate_task
from coding_gym.tasks.validation_report import Checks
from coding_gym.workspace import TemplateStore

RESOLVED = Grade(resolved=True, reason=GradeReason.RESOLVED)
FAILED = Grade(resolved=False, reason=GradeReason.TESTS_FAILED)


@pytest.mark.parametrize(
    ("grades", "is_ok"),
    [
        ([RESOLVED, RESOLVED, FAILED, FAILED], True),
        ([RESOLVED, FAILED, FAILED, FAILED], False),
        ([RESOLVED, RESOLVED, FAILED, RESOLVED], False),
    ],
)
def test_a_task_is_valid_only_if_every_grade_is_as_it_should_be(
    monkeypatch: pytest.MonkeyPatch, grades: list[Grade], is_ok: bool
) -> None:
    given = iter(grades)
    monkeypatch.setattr(validation, "grade", lambda *_, **__: next(given))
    checks = Checks(repeats=2, looks_for_leaks=False)
    assert validate_task(TASK, TemplateStore(), checks).ok is is_ok
