"""Tests and libraries are read out of Java source."""

from coding_gym.tasks.sources.java_tests import JavaTree

JUNIT_4 = """\
package com.shop;

import org.junit.*;

/** class Wrong extends Comment { */
public class TillTest extends Base {
    private static final String TEXT = "@Test public void testInText() {";

    @Test(expected = IllegalStateException.class, timeout = 100)
    public void refuses() throws Exception {
        new Object() { public void testNested() { } };
    }

    @Ignore("later") @Test
    public void ignored() { }

    @org.junit.Test
    public void qualified() { }

    public void overridden() { }

    static class Inner { @Test public void inner() { } }
}
"""
BASE = """\
package com.shop;

public abstract class Base {
    @Test public void overridden() { }
    @Test public void inherited() { }
    @Before public void setUp() { }
}
"""


def junit_tests(name: str, **sources: str) -> tuple[str, ...]:
    tree = JavaTree({f"test/{one}.java": text for one, text in sources.items()}, ("test",))
    return tree.tests(f"test/{name}.java")


def test_junit_4_runs_what_is_annotated_and_what_is_inherited() -> None:
    found = junit_tests("TillTest", TillTest=JUNIT_4, Base=BASE)
    assert found == ("inherited", "qualified", "refuses")


def test_junit_3_runs_public_methods_by_their_names() -> None:
    source = (
        "public final class OldTest extends junit.framework.TestCase {\n"
        "    public void testOne() {}\n    void testHidden() {}\n    public void check() {}\n"
        "    public static void testStatic() {}\n    public void testWith(int number) {}\n}\n"
    )
    assert junit_tests("OldTest", OldTest=source) == ("testOne",)


def test_classes_that_nothing_can_be_said_of_have_no_tests() -> None:
    for source in (
        "public abstract class T extends TestCase { public void testOne() {} }",
        "@Ignore public class T { @Test public void one() {} }",
        "@RunWith(Parameterized.class)\npublic class T { @Test public void one() {} }",
        "public class T extends Unknown { @Test public void one() {} }",
        "public class T extends T { @Test public void one() {} }",
        "public interface T { void one(); }",
    ):
        assert junit_tests("T", T=source) == (), source
