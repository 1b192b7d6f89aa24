"""Each sign of tampering counts by itself, also where another one would be seen as well."""

from dataclasses import replace

from cart_task import BASE, TASK

from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading import grade
from coding_gym.grading.report import RunReport
from coding_gym.grading.suite_file import Canary
from coding_gym.grading.verdict import Run, judge
from coding_gym.patch import Patch
from coding_gym.workspace import TemplateStore

# A record like the reporter's own, without the secret of the run.
_UNSIGNED = """
import os
from contextlib import suppress

for number in range(3, 1000):
    with suppress(OSError):
        os.write(number, b'0' * 32 + b' ["ready", "8.0"]\\n')
"""
_EDITS_TESTS = """
with open("tests/test_discounts.py", "a") as file:
    file.write("# edited\\n")
"""


def _graded(store: TemplateStore, code: str) -> Grade:
    after = BASE | {"cart.py": f"{BASE['cart.py']}\n{code}"}
    return grade(TASK, store.get(TASK), Patch.between(BASE, after))


def test_a_record_without_the_secret_is_tampering(store: TemplateStore) -> None:
    verdict = _graded(store, _UNSIGNED)
    assert (verdict.reason, "than the reporter" in verdict.detail) == (GradeReason.TAMPERED, True)


def test_test_files_edited_during_the_run_are_tampering(store: TemplateStore) -> None:
    verdict = _graded(store, _EDITS_TESTS)
    assert (verdict.reason, "were changed" in verdict.detail) == (GradeReason.TAMPERED, True)


def test_a_canary_that_passes_is_tampering() -> None:
    task = replace(TASK, fail_to_pass=("test_a.py::test_it",), pass_to_pass=())
    canary = Canary("test_a.py", "test_it", "test_other")
    for status, reason in (
        (TestStatus.FAILED, GradeReason.RESOLVED),
        (TestStatus.PASSED, GradeReason.TAMPERED),
    ):
        statuses = {canary.original_id: TestStatus.PASSED, canary.node_id: status}
        report = RunReport(statuses=statuses, ready=True, ended=True)
        run = Run.of(report, [canary], is_edited=False, files={})
        assert judge(task, run).reason is reason
        assert run.is_final
