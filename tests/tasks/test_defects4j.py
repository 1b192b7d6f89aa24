"""examples/defects4j.py converts a checkout of Defects4J to rows that load and validate."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from grading_fixtures import needs_junit
from sandbox_fixtures import commit, write_files

from coding_gym.patch import Patch
from coding_gym.task import FilesTree
from coding_gym.tasks import load_tasks
from coding_gym.tasks.validation import Checks, validate_task
from coding_gym.workspace import TemplateStore

SCRIPT = Path(__file__).parents[2] / "examples" / "defects4j.py"
# A miniature of a checkout: one project with one bug, and a clone.
SOURCE = "src/main/java/com/shop/Till.java"
_TESTS = "src/test/java/com/shop"
_TILL = """\
package com.shop;

/** A till. */
public class Till {{
    public static int total(int first, int second) {{
        return first {operator} second;
    }}
}}
"""
_FIXED, _BROKEN = _TILL.format(operator="+"), _TILL.format(operator="-")
_TILL_TESTS = """\
package com.shop;

public class TillTest extends junit.framework.TestCase {{
    public void testNothing() {{
        assertEquals(0, Till.total(0, 0));
    }}
{more}
    public void testClock() {{
        fail("broken by itself");
    }}
}}
"""
_SUM_TEST = """
    public void testSum() throws Exception {
        assertEquals("sum }", 7, Till.total(3, 4));
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
    patch = Patch.between({SOURCE: _FIXED}, {SOURCE: _BROKEN})
    header = "bug.id,revision.id.buggy,revision.id.fixed,report.id,report.url\n"
    files = {
        "framework/core/Project/Shop.pm": 'my $name = "shop";\n',
        f"{project}/active-bugs.csv": (
            f"{header}3,{buggy},{fixed},SHOP-12,https://example.org/SHOP-12\n"
        ),
        f"{project}/dir-layout.csv": f"{fixed},src/main/java,src/test/java\n",
        f"{project}/patches/3.src.patch": patch.text,
        f"{project}/trigger_tests/3": _TRACE,
        f"{project}/relevant_tests/3": "com.shop.TillTest\n",
        f"{project}/failing_tests/{fixed}": "--- com.shop.TillTest::testClock\nError\n",
    }
    return write_files(folder, files)


def _history(clone: Path) -> tuple[str, str]:
    """Makes the project's repository; returns the commits before and with the fix."""
    old = {SOURCE: _BROKEN, "logo.png": "\0"}
    old[f"{_TESTS}/TillTest.java"] = _TILL_TESTS.format(more="")
    new = {SOURCE: _FIXED}
    new[f"{_TESTS}/TillTest.java"] = _TILL_TESTS.format(more=_SUM_TEST)
    return commit(clone, old, "work"), commit(clone, new, "work")


@pytest.mark.slow
@needs_junit
def test_a_checkout_becomes_a_row_that_validates(tmp_path: Path, store: TemplateStore) -> None:
    out = tmp_path / "rows.jsonl"
    checkout = write_checkout(tmp_path / "defects4j")
    subprocess.run([sys.executable, SCRIPT, checkout, "--out", out], check=True)
    (task,) = load_tasks(out)
    assert (task.task_id, task.repo, task.runner) == ("Shop-3", "shop", "tap")
    assert isinstance(task.tree, FilesTree)
    files = dict(task.tree.files)
    assert "logo.png" not in files
    assert files[SOURCE] == _BROKEN
    (change,) = Patch(task.gold_patch).files
    assert "first + second" in change.apply(files[SOURCE])
    assert "testSum" not in json.dumps(files)
    assert Patch(task.test_patch).paths == {f"{_TESTS}/TillTest.java"}
    assert task.fail_to_pass == ("com.shop.TillTest::testSum",)
    assert task.pass_to_pass == ("com.shop.TillTest::testNothing",)
    report = validate_task(task, store, Checks(repeats=1, looks_for_leaks=False))
    assert report.ok, report
