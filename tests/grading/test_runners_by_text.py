"""Runners that read what a command printed or left: C by TAP, cargo, commands, JUnit, SWE-bench."""

from dataclasses import replace

import pytest
from grading_fixtures import graded, graded_gold
from text_tasks import C_BASE, C_FIXED, C_TASK, RUST_BASE, RUST_TASK

from coding_gym.errors import GradingError
from coding_gym.grade import GradeReason
from coding_gym.grading.runners import get_runner
from coding_gym.sandbox.toolchains import find_toolchain
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import TemplateStore

runs_c = pytest.mark.skipif(bool(find_toolchain("c").missing), reason=find_toolchain("c").missing)
runs_rust = pytest.mark.skipif(
    bool(find_toolchain("rust").missing), reason=find_toolchain("rust").missing
)
C_SOURCE = "src/clamp.c"


@runs_c
def test_c_gold_resolves_and_the_base_does_not(store: TemplateStore) -> None:
    gold = graded_gold(C_TASK, store)
    assert (gold.reason, gold.num_canaries) == (GradeReason.RESOLVED, 2), gold.detail
    base = graded(C_TASK, store, {"README.md": "Nothing.\n"})
    assert base.reason is GradeReason.TESTS_FAILED
    assert dict(base.fail_to_pass) == {"tests/test_clamp.c::too_high": "failed"}


@runs_c
@pytest.mark.parametrize(
    "code",
    [
        "#include <stdlib.h>\n__attribute__((constructor)) static void leave(void) { exit(0); }\n",
        "#include <stdio.h>\n#include <stdlib.h>\n"
        "__attribute__((constructor)) static void leave(void) {\n"
        '    puts("ok 1 - too_high\\nok 2 - too_low\\n1..2");\n    exit(0);\n}\n',
        "#include <stdio.h>\n"
        "__attribute__((constructor)) static void lie(void) {\n"
        '    puts("ok 1 - too_high");\n}\n',
    ],
    ids=["exit", "print", "twice"],
)
def test_c_cheats_do_not_resolve(store: TemplateStore, code: str) -> None:
    assert not graded(C_TASK, store, {C_SOURCE: code + C_BASE[C_SOURCE]}).resolved


@runs_c
def test_checks_that_a_header_silences_are_found_out(store: TemplateStore) -> None:
    header = C_BASE["src/clamp.h"] + "#undef CHECK\n#define CHECK(what) (void)(what)\n"
    grade = graded(C_TASK, store, {"src/clamp.h": header})
    assert grade.reason is GradeReason.TAMPERED, grade.detail


@runs_c
def test_a_makefile_is_the_graders(store: TemplateStore) -> None:
    grade = graded(C_TASK, store, {"Makefile": "run:\n\t@echo 1..0\n", C_SOURCE: C_FIXED})
    assert grade.resolved, grade.detail
    assert grade.dropped_paths == ("Makefile",)


@runs_rust
def test_rust_gold_resolves_and_cheats_do_not(store: TemplateStore) -> None:
    gold = graded_gold(RUST_TASK, store)
    assert (gold.reason, gold.num_canaries) == (GradeReason.RESOLVED, 2), gold.detail
    source = RUST_BASE["src/lib.rs"].replace("let _ = high;", "std::process::exit(0);")
    assert graded(RUST_TASK, store, {"src/lib.rs": source}).reason is GradeReason.TESTS_FAILED


@runs_rust
@pytest.mark.parametrize("path", [".cargo/config.toml", ".cargo/config"])
def test_a_program_in_the_place_of_rusts_tests_is_left_out(store: TemplateStore, path: str) -> None:
    passed = "test too_high ... ok\ntest too_low ... ok\ntest in_between ... ok\n"
    totals = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out;"
    script = f"printf 'running 3 tests\n{passed}\n{totals} finished in 0.00s\n'\n"
    runner = "[target.'cfg(all())']\nrunner = ['sh', 'forged.sh']\n"
    grade = graded(RUST_TASK, store, {path: runner, "forged.sh": script})
    assert grade.reason is GradeReason.TESTS_FAILED, grade.detail
    assert dict(grade.fail_to_pass) == {"tests/bounds.rs::too_high": "failed"}
    assert grade.dropped_paths == (path,)


@runs_rust
def test_crates_of_a_workspace_may_have_tests_of_one_name(store: TemplateStore) -> None:
    manifest = RUST_BASE["Cargo.toml"]
    files = {"Cargo.toml": "[workspace]\nmembers = ['crates/*']\n", ".gitignore": "/target\n"}
    for crate, value in (("first_one", 1), ("second-one", 3)):
        files |= {
            f"crates/{crate}/Cargo.toml": manifest.replace('"clamp"', f'"{crate}"'),
            f"crates/{crate}/src/lib.rs": f"pub fn value() -> i32 {{ {value} }}\nmod tests;\n",
            f"crates/{crate}/src/tests.rs": (
                "#[test]\nfn is_two() {\n    assert_eq!(crate::value(), 2);\n}\n"
                f"#[test]\nfn is_{value}() {{\n    assert_eq!(crate::value(), {value});\n}}\n"
            ),
        }
    task = replace(
        RUST_TASK,
        tree=FilesTree(files),
        test_patch="",
        gold_patch="",
        fail_to_pass=("first_one/src/lib.rs::tests::is_two",),
        pass_to_pass=("second_one/src/lib.rs::tests::is_two", "src/lib.rs::tests::is_3"),
    )
    source = "crates/first_one/src/lib.rs"
    grade = graded(task, store, {source: files[source].replace(" 1 }", " 2 }")})
    assert dict(grade.fail_to_pass) == {task.fail_to_pass[0]: "passed"}
    assert list(grade.pass_to_pass.values()) == ["failed", "passed"], grade.detail


NOTHING = {"README.md": "Nothing.\n"}


def commands(*tests: str, runner: str = "command", **fields: str) -> Task:
    """The task in C with expected tests of another runner."""
    bare = replace(C_TASK, language="python", test_patch="", test_command="", gold_patch="")
    return replace(bare, runner=runner, fail_to_pass=tests, pass_to_pass=(), **fields)


def test_commands_pass_by_their_exit_code(store: TemplateStore) -> None:
    grade = graded(commands("grep -q high: src/clamp.c", "test -f Makefile"), store, NOTHING)
    assert list(grade.fail_to_pass.values()) == ["failed", "passed"]


def test_commands_are_not_run_where_what_they_need_cannot_be_built(store: TemplateStore) -> None:
    grade = graded(commands("true", test_command="echo no room; false"), store, NOTHING)
    assert set(grade.fail_to_pass.values()) == {"missing"}
    assert "exit code 1: no room" in grade.detail


def test_reports_that_were_there_before_do_not_count(store: TemplateStore) -> None:
    case = '<testsuite><testcase classname="a.B" name="{}"/></testsuite>'
    command = f"mkdir -p out; echo '{case.format('real')}' >out/real.xml"
    fields = {"test_report": "out/*.xml", "test_command": command}
    task = commands("a.B::real", "a.B::forged", runner="junit", **fields)
    grade = graded(task, store, {"out/forged.xml": case.format("forged")})
    assert dict(grade.fail_to_pass) == {"a.B::real": "passed", "a.B::forged": "missing"}


def test_a_log_is_read_in_its_format(store: TemplateStore) -> None:
    command = "printf 'test_a (x.Y) ... ok\\ntest_b (x.Y) ... FAIL\\n'"
    fields = {"test_report": "django", "test_command": command}
    task = commands("test_a (x.Y)", "test_b (x.Y)", runner="swebench", **fields)
    assert list(graded(task, store, NOTHING).fail_to_pass.values()) == ["passed", "failed"]


def test_a_program_that_is_missing_is_our_fault(store: TemplateStore) -> None:
    task = commands("a", runner="tap", test_command="no-such-program --tap")
    with pytest.raises(GradingError, match="there is no 'no-such-program' where its tests run"):
        graded(task, store, NOTHING)


def test_what_a_task_lacks_is_said() -> None:
    cases = [
        ("tap", {}, "field 'test_command' is missing"),
        ("junit", {"test_command": "true"}, "field 'test_report' is missing"),
        ("junit", {"test_command": "true", "test_report": "../x"}, "must stay in the tree"),
        ("swebench", {"test_command": "true", "test_report": "djanga"}, "did you mean 'django'"),
        ("cargo", {}, "is not FILE::NAME"),
        ("command", {"fail_to_pass": (" ",)}, "is no shell command"),
    ]
    for runner, fields, said in cases:
        task = replace(commands("a"), **fields)  # type: ignore[arg-type]
        assert said in get_runner(runner).problem(task), runner
