"""Runners for other languages, and runners that read output, report files or exit codes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from grading_fixtures import TASK, graded

from coding_gym.errors import GradingError
from coding_gym.grade import Grade, GradeReason
from coding_gym.grading import grade
from coding_gym.grading.runners import get_runner, missing_runtime
from coding_gym.patch import Patch
from coding_gym.sandbox import Sandbox, open_sandbox
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.task import FilesTree, FolderTree, Task
from coding_gym.tasks import load_tasks
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

IDS = ["signpost-plus-signs", "typeset-umlauts", "sieve-below-zero"]
TASKS = {task.language: task for task in load_tasks("polyglot", task_ids=IDS)}
# Source files that no gold patch changes.
NODE_SOURCE, C_SOURCE, RUST_SOURCE = "src/router.js", "src/buffer.c", "src/parser.rs"
HARMLESS = {"NOTES": "Nothing.\n"}


def source(name: str, path: str) -> str:
    """Returns a file of the base of a task."""
    tree = TASKS[name].tree
    assert isinstance(tree, FolderTree)
    return Path(tree.folder, path).read_text(encoding="utf-8")


def grade_changes(name: str, store: TemplateStore, after: Mapping[str, str]) -> Grade:
    """Grades the base with changed files; skips the test if the language is not installed."""
    if reason := missing_runtime(TASKS[name]):
        pytest.skip(reason)
    paths = {C_SOURCE, NODE_SOURCE, RUST_SOURCE} & after.keys()
    patch = Patch.between({path: source(name, path) for path in paths}, after)
    return grade(TASKS[name], store.get(TASKS[name]), patch)


_NODE_CHEATS = (
    "process.exit(0);\n",
    'process.on("exit", () => process.exit(0));\nprocess.kill(process.pid, "SIGKILL");\n',
    'process.kill(process.ppid, "SIGKILL");\n',
    'console.log("ok 1 - a form writes blanks as pluses\\n1..1");\nprocess.exit(0);\n',
)
_C_CHEATS = (
    "#include <stdlib.h>\n__attribute__((constructor)) static void leave(void) { exit(0); }\n",
    "#include <stdio.h>\n"
    "__attribute__((constructor)) static void lie(void) {\n"
    '    puts("ok 1 - words_are_cut_between_characters");\n}\n',
)
_RUST_HEAD = "pub(crate) fn parse(tokens: Vec<Token>) -> Result<Condition, ParseError> {\n"


@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        *(
            pytest.param("javascript", NODE_SOURCE, cheat + source("javascript", NODE_SOURCE))
            for cheat in _NODE_CHEATS
        ),
        *(pytest.param("c", C_SOURCE, code + source("c", C_SOURCE)) for code in _C_CHEATS),
        pytest.param(
            "rust",
            RUST_SOURCE,
            source("rust", RUST_SOURCE).replace(
                _RUST_HEAD, f"{_RUST_HEAD}    std::process::exit(0);\n"
            ),
        ),
    ],
)
def test_cheats_do_not_resolve(store: TemplateStore, name: str, path: str, text: str) -> None:
    grade = grade_changes(name, store, {path: text})
    assert not grade.resolved
    assert grade.reason in {GradeReason.TESTS_FAILED, GradeReason.TAMPERED}, grade.detail


@pytest.mark.parametrize("path", [".cargo/config.toml", ".cargo/config"])
def test_cargo_config_that_replaces_tests_is_dropped(store: TemplateStore, path: str) -> None:
    names = [test.rpartition("::")[2] for test in TASKS["rust"].expected_tests]
    script = "".join(f"echo 'test {name} ... ok'\n" for name in names)
    runner = "[target.'cfg(all())']\nrunner = ['sh', 'forged.sh']\n"
    grade = grade_changes("rust", store, {path: runner, "forged.sh": script})
    assert grade.reason is GradeReason.TESTS_FAILED, grade.detail
    assert "passed" not in grade.fail_to_pass.values()
    assert grade.dropped_paths == (path,)


TREE = FilesTree({"Makefile": "run:\n", "src/clamp.c": "int clamp(int low, int high);\n"})


def task_of(*tests: str, runner: str = "command", **fields: str) -> Task:
    """Returns a task whose expected tests are those of a runner."""
    task = replace(TASK, tree=TREE, test_patch="", gold_patch="", pass_to_pass=())
    return replace(task, runner=runner, fail_to_pass=tests, **fields)


def test_commands_pass_by_their_exit_code(store: TemplateStore) -> None:
    grade = graded(task_of("grep -q clamped src/clamp.c", "test -f Makefile"), store, HARMLESS)
    assert list(grade.fail_to_pass.values()) == ["failed", "passed"]


def test_passes_count_only_if_the_program_exits_with_0(store: TemplateStore) -> None:
    outputs = {
        "tap": ("a", "echo 1..1; echo ok 1 - a"),
        "cargo": ("t.rs::a", "echo 'Running t.rs (t-1)'; echo 'test a ... ok'"),
        "go": ("x::a", """echo '{"Action":"pass","Package":"x","Test":"a"}'"""),
        "junit": ("a", """echo '<testsuite><testcase name="a"/></testsuite>' >1.xml"""),
    }
    for runner, (test, output) in outputs.items():
        for exit_code, reason in ((0, "resolved"), (139, "tests_failed")):
            end = """; echo '{"Action":"pass","Package":"x"}'""" if runner == "go" else ""
            command = f"{output}{end}; exit {exit_code}"
            report = "1.xml" if runner == "junit" else ""
            task = task_of(test, runner=runner, test_command=command, test_report=report)
            assert graded(task, store, HARMLESS).reason == reason, command


def test_reports_from_before_the_run_are_ignored(store: TemplateStore) -> None:
    case = '<testsuite><testcase classname="a.B" name="{}"/></testsuite>'
    command = f"mkdir -p out; echo '{case.format('real')}' >out/real.xml"
    fields = {"test_report": "out/*.xml", "test_command": command}
    task = task_of("a.B::real", "a.B::forged", runner="junit", **fields)
    grade = graded(task, store, {"out/forged.xml": case.format("forged")})
    assert dict(grade.fail_to_pass) == {"a.B::real": "passed", "a.B::forged": "missing"}


def test_reports_that_are_too_large_together_are_not_read(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coding_gym.grading.runners.output_runner._MAX_OUTPUT_BYTES", 4000)
    sizes: list[int] = []
    read = Sandbox.read_file

    def read_file(sandbox: Sandbox, path: str, **options: int) -> bytes:
        data = read(sandbox, path, **options)
        sizes.append(len(data) if path.endswith(".xml") else 0)
        return data

    monkeypatch.setattr(Sandbox, "read_file", read_file)
    case = '<testsuite><testcase name="a"/></testsuite>'
    command = f"echo '{case}' >1.xml; for n in 2 3 4 5; do truncate -s 1900 $n.xml; done"
    task = task_of("a", runner="junit", test_report="*.xml", test_command=command)
    assert graded(task, store, HARMLESS).reason == "tests_failed"
    assert 1900 < sum(sizes) <= 4000


def test_tests_of_harbor_that_cannot_be_copied_are_a_grading_error() -> None:
    task = task_of("reward", runner="harbor")
    with open_sandbox(SandboxSpec()) as sandbox, pytest.raises(GradingError, match="copied"):
        get_runner("harbor").run(sandbox, task, (), timeout_s=60)


@pytest.mark.parametrize("exit_code", [0, 1, 137])
@pytest.mark.parametrize(("reward", "status"), [(1.0, "passed"), (0.5, "failed"), (None, "")])
def test_reward_of_harbor_counts_with_any_exit_code(
    monkeypatch: pytest.MonkeyPatch, exit_code: int, reward: float | None, status: str
) -> None:
    monkeypatch.setattr("coding_gym.grading.runners.harbor_runner._reward", lambda _: reward)
    monkeypatch.setattr("coding_gym.grading.runners.harbor_runner._COPY_TESTS", "true")
    task = task_of("reward", runner="harbor", test_command=f"exit {exit_code}")
    with open_sandbox(SandboxSpec()) as sandbox:
        run = get_runner("harbor").run(sandbox, task, (), timeout_s=60)
    is_killed = exit_code == 137 and not status
    assert run.is_lost == is_killed
    assert run.status("reward") == (status or "missing")


def test_options_in_a_variable_are_no_program(store: TemplateStore) -> None:
    command = "FLAGS='-O2 -g -Wall' echo '1..1'; echo 'ok 1 - a'"
    task = task_of("a", runner="tap", test_command=command)
    assert graded(task, store, HARMLESS).resolved


def test_missing_test_program_is_a_grading_error(store: TemplateStore) -> None:
    task = task_of("a", runner="tap", test_command="no-such-program --tap")
    with pytest.raises(GradingError, match="no-such-program"):
        graded(task, store, HARMLESS)


@pytest.mark.parametrize(
    ("runner", "fields", "message"),
    [
        ("tap", {}, "test_command"),
        ("junit", {"test_command": "true"}, "test_report"),
        ("junit", {"test_command": "true", "test_report": "../x"}, "test_report"),
        ("swebench", {"test_command": "true", "test_report": "djanga"}, "djanga"),
        ("cargo", {}, "'a'"),
        ("command", {"fail_to_pass": (" ",)}, "' '"),
        ("command", {"test_command": "make"}, "'make'"),
        ("pytest", {"fail_to_pass": ("test_x (tests.TestX)",)}, "test_x"),
        ("pytest", {"fail_to_pass": ("prices.py::prices.half",)}, "doctest"),
        ("pytest", {"fail_to_pass": ("pkg[1]/test_x.py::test_a",)}, "'pkg[1]/test_x.py'"),
    ],
)
def test_field_that_a_runner_cannot_use_is_named(
    runner: str, fields: dict[str, object], message: str
) -> None:
    task = replace(task_of("a"), runner=runner, **fields)  # type: ignore[arg-type]
    assert message in get_runner(runner).problem(task)
