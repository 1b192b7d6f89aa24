"""A miniature of a Defects4J checkout: one project with one bug, and a clone."""

from pathlib import Path

from repositories import commit, write_files

from coding_gym.patch import Patch

_SOURCE = "src/main/java/com/shop/Till.java"
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
    patch = Patch.between({_SOURCE: _FIXED}, {_SOURCE: _MINIMISED})
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
    old = {_SOURCE: _OLD, "CHANGES": "Nothing\n", "logo.png": "\0", "big.csv": "1,2\n" * 60_000}
    new = {
        _SOURCE: _FIXED,
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
