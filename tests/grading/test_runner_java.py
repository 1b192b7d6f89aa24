"""Java with JUnit 4: what is graded, and what cheats come to."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from grading_fixtures import graded, graded_gold
from java_task import BASE, FIXED, HIDDEN, TASK

from coding_gym.errors import GradingError
from coding_gym.grade import GradeReason
from coding_gym.grading.runners import get_runner
from coding_gym.grading.runners.java_options import JavaOptions
from coding_gym.grading.runners.java_runner import SYSTEM_JARS
from coding_gym.sandbox.toolchains import find_toolchain
from coding_gym.workspace import TemplateStore

MISSING = find_toolchain("java").missing or (
    "" if any(Path(jar).exists() for jar in SYSTEM_JARS) else "this machine has no JUnit 4"
)
runs_java = pytest.mark.skipif(bool(MISSING), reason=MISSING)
SOURCE = "src/ring/Ring.java"


def cheat(code: str) -> str:
    return BASE[SOURCE].replace(
        "private int count;\n", f"private int count;\n    static {{\n        {code}\n    }}\n"
    )


@runs_java
def test_the_gold_patch_resolves_and_the_base_does_not(store: TemplateStore) -> None:
    gold = graded_gold(TASK, store)
    assert (gold.reason, gold.num_canaries) == (GradeReason.RESOLVED, 2), gold.detail
    base = graded(TASK, store, {"README.md": "Nothing.\n"})
    assert base.reason is GradeReason.TESTS_FAILED
    assert "expected:<3> but was:<1>" in base.detail
    assert set(base.pass_to_pass.values()) == {"passed"}


@runs_java
@pytest.mark.parametrize(
    "code",
    [
        "System.exit(0);",
        "Runtime.getRuntime().halt(0);",
        'System.out.println("OK (3 tests)"); System.exit(0);',
        "new Thread(() -> { while (true) { Thread.yield(); System.exit(0); } }).start();",
    ],
    ids=["exit", "halt", "print", "thread"],
)
def test_leaving_early_does_not_resolve(store: TemplateStore, code: str) -> None:
    grade = graded(TASK, store, {SOURCE: cheat(code)})
    assert grade.reason is GradeReason.TESTS_FAILED, grade.detail


@runs_java
def test_classes_in_the_place_of_a_test_or_of_junit_are_left_out(store: TemplateStore) -> None:
    files = {}
    for name in ("org/junit/Assert", "ring/RingTest"):
        package, _, own = name.rpartition("/")
        text = f"package {package.replace('/', '.')};\npublic class {own} {{}}\n"
        files |= {f"{folder}{name}.java": text for folder in ("", "src/", "tests/")}
    del files["ring/RingTest.java"], files["tests/org/junit/Assert.java"]
    grade = graded(TASK, store, {SOURCE: FIXED, **files})
    assert grade.resolved, grade.detail
    assert grade.dropped_paths == tuple(sorted(files))


@runs_java
@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("-J-Xmx1k", "Too small maximum heap"),
        ("-J-XX:NoSuchOption", "(Unrecognized|Missing).*NoSuchOption"),
        ("-J-javaagent:none.jar", "Error opening zip file or JAR manifest missing"),
    ],
)
def test_a_virtual_machine_that_does_not_start_is_our_fault(
    store: TemplateStore, option: str, said: str
) -> None:
    with pytest.raises(GradingError, match=f"ring-newest: java could not be started: .*{said}"):
        graded(replace(TASK, test_command=option), store, {SOURCE: FIXED})


@runs_java
def test_a_processor_of_annotations_is_not_run(store: TemplateStore) -> None:
    services = "src/META-INF/services/javax.annotation.processing.Processor"
    grade = graded(TASK, store, {services: "ring.Ring\n", SOURCE: FIXED})
    assert grade.resolved, grade.detail


@runs_java
def test_what_does_not_compile_says_where(store: TemplateStore) -> None:
    grade = graded(TASK, store, {SOURCE: BASE[SOURCE].replace("int newest", "String newest")})
    assert grade.reason is GradeReason.TESTS_FAILED
    assert "error: incompatible types" in grade.detail


def test_canaries_fail_behind_an_expected_exception_too() -> None:
    files = {path: text.encode() for path, text in HIDDEN.items()}
    task = replace(TASK, fail_to_pass=("ring.RingTest::refusesNoSize",), pass_to_pass=())
    canaries, changed = get_runner("java").plant(files, task, random.Random(1), avoid=frozenset())
    assert {canary.original for canary in canaries} == {"refusesNoSize"}
    assert changed["tests/ring/RingTest.java"].decode().count("} finally {") == len(canaries)


def test_options_are_read() -> None:
    options = JavaOptions.parse(
        "src/main src/test Extra.java -cp 'lib/*:a.jar' -encoding latin1 -Xlint -J-Xmx9m"
    )
    assert options.roots == ("src/main", "src/test")
    assert options.sources == ("Extra.java",)
    assert options.class_path == ("lib/*", "a.jar")
    assert options.javac == ("-encoding", "latin1", "-Xlint")
    assert options.java == ("-Xmx9m",)


def test_options_that_cannot_be_are_refused() -> None:
    cases = ["-cp", "-processor x", "@arguments", "-d /tmp", "'"]
    for text in cases:
        said = get_runner("java").problem(replace(TASK, test_command=text))
        assert said.startswith("field 'test_command' is not options of the java runner: "), text


def test_an_id_that_is_no_method_is_refused() -> None:
    wrong = replace(TASK, fail_to_pass=("tests/ring/RingTest.java::keepsOne",))
    assert get_runner("java").problem(wrong).endswith("is not package.Class::method")
