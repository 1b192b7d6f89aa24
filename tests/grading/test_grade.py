import os
import sys
from dataclasses import replace

import pytest
from grading_fixtures import BASE, FIXED, HIDDEN, TASK, GradeTree, with_hidden
from sandbox_fixtures import tree

from coding_gym.errors import GradingError
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.sandbox.landlock import LandlockBackend
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import TemplateStore


def grade_patch(store: TemplateStore, patch: Patch, task: Task = TASK) -> Grade:
    return grade(task, store.get(task), patch)


def test_the_detail_names_files_that_are_not_graded(grade_tree: GradeTree) -> None:
    verdict = grade_tree({"cart.py": FIXED, "tests/test_cart.py": "def test_count():\n    pass\n"})
    assert (verdict.resolved, "tests/test_cart.py" in verdict.detail) == (True, True)


_TESTS_OF_COUNT = (
    "tests/test_discounts.py::DiscountTest::test_count_is_not_discounted",
    "tests/test_cart.py::test_count",
)


@pytest.mark.parametrize(
    ("source", "failed_tests"),
    [
        (f"{BASE['cart.py']}\n", TASK.fail_to_pass),
        (FIXED.replace("- discount", "- min(discount, 3)"), TASK.fail_to_pass[-1:]),
        (FIXED.replace("len(prices)", "len(prices) + 1"), _TESTS_OF_COUNT),
    ],
    ids=["no repair", "partial repair", "another bug"],
)
def test_tests_that_a_wrong_repair_fails_are_named(
    grade_tree: GradeTree, source: str, failed_tests: tuple[str, ...]
) -> None:
    verdict = grade_tree({"cart.py": source})
    assert verdict.reason is GradeReason.TESTS_FAILED
    statuses = {**verdict.fail_to_pass, **verdict.pass_to_pass}
    failed = {test for test, status in statuses.items() if status is TestStatus.FAILED}
    assert failed == set(failed_tests)
    assert failed_tests[0] in verdict.detail
    assert "\n" not in verdict.detail


# Honest changes in addition to the repair, and whether they are graded.
OTHER_CHANGES = {
    "build/rates.py": ("RATE = 1\n", True),  # the base's .gitignore names it
    "lib/conftest.py": ("x = 1\n", True),
    "test_tools.py": ("x = 1\n", True),
    "pyproject.toml": ("[project]\nname = 'carts'\n\n[tool.pytest.ini_options]\n", False),
    "setup.cfg": ("[metadata]\nname = cart\n", False),
    "tox.ini": ("[pytest]\naddopts = -x\n", False),
    "tests/conftest.py": ("x = 1\n", False),
    "tests/pyproject.toml": ("x = 1\n", False),
}


@pytest.mark.slow
def test_changes_outside_of_tests_and_configuration_are_graded(store: TemplateStore) -> None:
    config = "[project]\nname = 'cart'\n\n[tool.pytest.ini_options]\n"
    base = BASE | {".gitignore": "build/\n", "pyproject.toml": config}
    task = replace(TASK, task_id="cart-with-files", tree=FilesTree(base))
    fixed = f"from build.rates import RATE\n\n\n{FIXED}".replace("- discount", "- discount * RATE")
    after = base | {"cart.py": fixed} | {path: text for path, (text, _) in OTHER_CHANGES.items()}
    verdict = grade_patch(store, Patch.between(base, after), task)
    dropped = {path for path, (_, is_graded) in OTHER_CHANGES.items() if not is_graded}
    assert set(verdict.dropped_paths) == dropped
    assert verdict.resolved, verdict


def test_detail_names_the_test_whose_data_is_not_graded(store: TemplateStore) -> None:
    hidden = 'def test_a():\n    assert open("cases/a.json").read() == "1"\n'
    task = with_hidden(hidden, "test_a")
    verdict = grade_patch(store, Patch.between({}, {"cases/a.json": "1\n"}), task)
    assert (verdict.reason, verdict.dropped_paths) == (GradeReason.EMPTY_PATCH, ("cases/a.json",))
    assert "cases/a.json (data of tests/test_hidden.py)" in verdict.detail


def test_patch_that_does_not_apply_has_a_reason(store: TemplateStore) -> None:
    verdict = grade_patch(store, Patch("no patch at all"))
    assert verdict.reason is GradeReason.PATCH_NOT_APPLIED
    assert verdict.detail
    assert "\n" not in verdict.detail


@pytest.mark.slow
def test_gold_duration_raises_the_time_limit(store: TemplateStore) -> None:
    task = replace(TASK, grading_timeout_s=0.001, gold_duration_s=6.0)
    assert grade(task, store.get(task), Patch(task.gold_patch)).resolved


@pytest.mark.slow
def test_broken_or_missing_test_file_keeps_other_results(store: TemplateStore) -> None:
    broken = HIDDEN | {"tests/test_broken.py": "import nowhere\n\n\ndef test_x():\n    pass\n"}
    task = replace(
        TASK,
        test_patch=Patch.between({}, broken).text,
        pass_to_pass=(*TASK.pass_to_pass, "tests/test_broken.py::test_x", "tests/gone.py::test"),
    )
    verdict = grade_patch(store, Patch(task.gold_patch), task)
    missing = [t for t, s in verdict.pass_to_pass.items() if s is TestStatus.MISSING]
    assert missing == ["tests/test_broken.py::test_x", "tests/gone.py::test"]
    assert "nowhere" in verdict.detail


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fail_to_pass": (), "pass_to_pass": ()}, "cart-discount"),
        ({"pass_to_pass": ("tests/test_cart.py::test_a[\ud800]",)}, "Unicode"),
        (
            {"test_patch": Patch.between({"gone.py": "x\n"}, {"gone.py": "y\n"}).text},
            "test_patch",
        ),
    ],
)
def test_a_task_that_cannot_be_graded_is_a_grading_error(
    store: TemplateStore, changes: dict[str, object], message: str
) -> None:
    task = replace(TASK, **changes)  # type: ignore[arg-type]
    with pytest.raises(GradingError, match=message):
        grade(task, store.get(TASK), Patch(TASK.gold_patch))


@pytest.mark.slow
def test_files_with_a_mark_and_any_line_ends_are_negated(store: TemplateStore) -> None:
    hidden = "\ufefffrom cart import total\r\n\ndef test_cr():\r    assert total([1], 1) == 0\r\n"
    task = with_hidden(hidden, "test_cr")
    verdict = grade_patch(store, Patch(task.gold_patch), task)
    assert (verdict.resolved, verdict.levels) == (True, {"value": 1}), verdict.detail


def test_patch_that_blocks_hidden_tests_does_not_apply(store: TemplateStore) -> None:
    task = with_hidden("def test_a():\n    assert 1\n", "test_a")
    task = replace(task, task_id="cart-untested", tree=FilesTree({"cart.py": FIXED}))
    verdict = grade_patch(store, Patch.between({}, {"tests": "x\n"}), task)
    assert verdict.reason is GradeReason.PATCH_NOT_APPLIED


@pytest.mark.slow
def test_configuration_below_the_root_does_not_change_the_run(store: TemplateStore) -> None:
    tree = FilesTree(BASE | {"tests/pytest.ini": "[pytest]\n"})
    verdict = grade_patch(store, Patch(TASK.gold_patch), replace(TASK, tree=tree))
    assert verdict.resolved, verdict.detail


@pytest.mark.skipif(os.geteuid() != 0, reason="landlock gives each sandbox a separate user")
@pytest.mark.parametrize("mode", [0o700, 0o755], ids=["private", "open to all"])
def test_landlock_grades_with_compiled_pytest(mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with tree(LandlockBackend(), {}) as folder:
        folder.chmod(mode)
        monkeypatch.setattr(sys, "pycache_prefix", str(folder / "elsewhere"))
        template = TemplateStore("landlock", folder).get(TASK)
        assert list((folder / "pytest").rglob("site/pytest/__pycache__/*.pyc"))
        assert grade(TASK, template, Patch(TASK.gold_patch), backend="landlock").resolved
