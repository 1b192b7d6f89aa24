"""Defects4J checkouts: what becomes of a bug, and whether the task holds."""

import shutil
from pathlib import Path

import pytest
from grading_fixtures import needs_junit
from rows import refusal
from sandbox_fixtures import commit, write_files

from coding_gym.patch import Patch
from coding_gym.task import FilesTree, Task
from coding_gym.tasks import load_tasks
from coding_gym.tasks.validation import validate_task
from coding_gym.tasks.validation_report import Checks
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

# A miniature of a checkout: one project with one bug, and a clone.
SOURCE = "src/main/java/com/shop/Till.java"
_TESTS = "src/test/java/com/shop"
_TILL = """\
package com.shop;

/** A till, written in M\N{LATIN SMALL LETTER U WITH DIAERESIS}nchen. */
public class Till {{
    static final String[] NOTES = {{{notes}}};

    public static int total(int first, int second) {{
        return first {operator} second;
    }}
}}
"""
_FIXED = _TILL.format(notes='"new"', operator="+")
_MINIMISED = _TILL.format(notes='"new"', operator="-")
_OLD = _TILL.format(notes="", operator="-")
_BASE_TESTS = """\
package com.shop;

import junit.framework.TestCase;

abstract class TillTestCase extends TestCase {
    public void testInherited() {
        assertEquals(5, Till.total(5, 0));
    }
}
"""
_TILL_TESTS = """\
package com.shop;

public class TillTest extends TillTestCase {{
    public void testNothing() {{
        assertEquals(0, Till.total(0, 0));
    }}
{more}
    public void testClock() {{
        fail("broken by itself");
    }}

    private void testHelper() {{
    }}
}}
"""
_SUM_TEST = """
    public void testSum() throws Exception {
        // { a brace that counts for nothing
        assertEquals("sum }", 7, Till.total(3, 4));
    }
"""
_MOCKED = """\
package com.shop;

import org.easymock.EasyMock;

public class MockedTest extends TillTestCase {
}
"""
_TRACE = """\
--- com.shop.TillTest::testSum
junit.framework.AssertionFailedError: sum } expected:<7> but was:<-1>
\tat junit.framework.Assert.fail(Assert.java:47)
\tat com.shop.TillTest.testSum(TillTest.java:11)
\tat java.lang.reflect.Method.invoke(Method.java:606)
"""


def write_checkout(folder: Path) -> Path:
    """Writes the checkout; returns its folder."""
    clone = folder / "project_repos" / "shop.git"
    buggy, fixed = _history(clone)
    project = "framework/projects/Shop"
    patch = Patch.between({SOURCE: _FIXED}, {SOURCE: _MINIMISED})
    header = "bug.id,revision.id.buggy,revision.id.fixed,report.id,report.url\n"
    files = {
        "framework/core/Project/Shop.pm": 'my $name = "shop";\n',
        f"{project}/active-bugs.csv": (
            f"{header}3,{buggy},{fixed},SHOP-12,https://example.org/SHOP-12\n"
        ),
        f"{project}/dir-layout.csv": f"{fixed},src/main/java,src/test/java\n",
        f"{project}/patches/3.src.patch": patch.text,
        f"{project}/trigger_tests/3": _TRACE,
        f"{project}/relevant_tests/3": "com.shop.TillTest\ncom.shop.MockedTest\n",
        f"{project}/failing_tests/{fixed}": "--- com.shop.TillTest::testClock\nError\n",
    }
    return write_files(folder, files)


def _history(clone: Path) -> tuple[str, str]:
    """Makes the project's repository; returns the commits before and with the fix."""
    tests = {
        f"{_TESTS}/TillTestCase.java": _BASE_TESTS,
        f"{_TESTS}/TillTest.java": _TILL_TESTS.format(more=""),
        f"{_TESTS}/MockedTest.java": _MOCKED,
    }
    old = {SOURCE: _OLD, "CHANGES": "Nothing\n", "logo.png": "\0", "big.csv": "1,2\n" * 60_000}
    new = {
        SOURCE: _FIXED,
        "CHANGES": "SHOP-12: add, do not subtract\n",
        f"{_TESTS}/TillTest.java": _TILL_TESTS.format(more=_SUM_TEST),
        "src/test/resources/sums.txt": "3 4 7\n",
    }
    latin = [
        {name: text.encode("latin-1") for name, text in state.items()}
        for state in (old | tests, new, {"FUTURE": "told\n"})
    ]
    before, after, _ = (commit(clone, files, "work") for files in latin)
    return before, after


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkout(tmp_path_factory.mktemp("defects4j"))


@pytest.fixture
def checkout(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "defects4j"))


@pytest.fixture(scope="module")
def task(original: Path) -> Task:
    (task,) = load_tasks(original)
    return task


def files(task: Task) -> dict[str, str]:
    assert isinstance(task.tree, FilesTree)
    return dict(task.tree.files)


def test_a_bug_is_a_task_of_its_usual_name(task: Task) -> None:
    assert task.task_id == "Shop-3"
    assert (task.repo, task.language, task.runner) == ("shop", "java", "java")
    assert task.created_at == "2020-02-02T02:02:02+00:00"
    assert task.difficulty == "easy"


def test_sources_are_the_fixed_ones_with_the_minimised_bug(task: Task) -> None:
    fixed = Patch(task.gold_patch).apply(files(task))
    assert [line for line in task.gold_patch.splitlines() if line[:2] in {"+ ", "- "}] == [
        "-        return first - second;",
        "+        return first + second;",
    ]
    assert '{"new"}' in files(task)[SOURCE]
    assert "first + second" in fixed[SOURCE]


def test_the_rest_of_the_tree_knows_nothing_of_the_fix(task: Task) -> None:
    assert files(task)["CHANGES"] == "Nothing\n"
    assert "testSum" not in "".join(files(task).values())
    assert not {"FUTURE", "logo.png", "big.csv"} & files(task).keys()


def test_hidden_tests_are_the_changes_that_the_fix_makes_to_the_tests(task: Task) -> None:
    assert Patch(task.test_patch).paths == {
        "src/test/java/com/shop/TillTest.java",
        "src/test/resources/sums.txt",
    }
    assert "+    public void testSum()" in task.test_patch


def test_expected_tests_are_junits_less_the_broken_and_unbuildable(task: Task) -> None:
    assert task.fail_to_pass == ("com.shop.TillTest::testSum",)
    assert task.pass_to_pass == (
        "com.shop.TillTest::testInherited",
        "com.shop.TillTest::testNothing",
    )
    assert task.excluded_tests == ("com.shop.TillTest::testClock",)


def test_old_encodings_are_told_to_the_compiler_and_survive(task: Task) -> None:
    assert (
        task.test_command
        == "src/main/java src/test/java src/test/resources --release 8 -encoding ISO-8859-1"
    )
    assert b"M\xfcnchen" in files(task)[SOURCE].encode("utf-8", "surrogateescape")


def test_the_issue_shows_the_failing_code_and_what_it_throws(task: Task) -> None:
    title, *_ = task.problem_statement.splitlines()
    assert title == (
        "shop: junit.framework.AssertionFailedError: sum } expected:<7> but was:<-1> (SHOP-12)"
    )
    assert '        assertEquals("sum }", 7, Till.total(3, 4));\n    }' in task.problem_statement
    assert "at com.shop.TillTest.testSum(TillTest.java:11)" in task.problem_statement
    assert "reflect" not in task.problem_statement


@needs_junit
def test_the_task_validates(task: Task, store: TemplateStore) -> None:
    report = validate_task(task, store, Checks(repeats=1, looks_for_leaks=False))
    assert report.ok, report


def test_without_clones_the_error_says_how_to_get_them(checkout: Path) -> None:
    shutil.rmtree(checkout / "project_repos")
    found = refusal(f"defects4j:{checkout}")
    assert "git clone --bare " in found
    assert found.endswith("/shop.git")


def test_a_clone_without_the_commit_is_named(checkout: Path) -> None:
    bugs = checkout / "framework/projects/Shop/active-bugs.csv"
    row = bugs.read_text().splitlines()[1].split(",")
    bugs.write_text(bugs.read_text().replace(row[1], "0" * 40))
    assert f"shop.git does not have commit {'0' * 40}" in refusal(checkout)


@pytest.mark.parametrize(
    ("name", "old", "new", "field"),
    [
        ("active-bugs.csv", ",SHOP-12,", ",,", "report.id"),
        ("active-bugs.csv", "revision.id.fixed", "fixed", "revision.id.fixed"),
        ("active-bugs.csv", "\n3,", "\n../3,", "bug.id"),
        ("dir-layout.csv", ",src/main/java", "", ""),
        ("patches/3.src.patch", "first + second", "second", ""),
        ("trigger_tests/3", "--- com", "com", ""),
    ],
)
def test_wrong_metadata_is_refused_with_file_and_field(
    checkout: Path, name: str, old: str, new: str, field: str
) -> None:
    path = checkout / "framework/projects/Shop" / name
    path.write_text(path.read_text().replace(old, new, 1))
    message = refusal(checkout)
    assert name in message
    assert field in message


def test_a_test_that_needs_an_unknown_library_is_left_out(checkout: Path) -> None:
    path = checkout / "framework/projects/Shop/trigger_tests/3"
    path.write_text(path.read_text().replace("shop.TillTest", "shop.MockedTest", 1))
    assert "no tasks" in refusal(checkout)
