"""Nothing of an evaluation script is lost without a word: not a line, nor half of one."""

import logging

import pytest
from rows import loaded, refusal, row

from coding_gym.errors import InvalidTaskError
from coding_gym.tasks.sources.shell_script import read_commands

SCRIPT = """\
#!/bin/bash
set -uxo pipefail
source /opt/miniconda3/bin/activate
conda activate testbed
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff 1111
{before}
git checkout 1111111 tests/test_core.py
git apply -v - <<'EOF_114'
diff --git a/x b/x
+: '>>>>> Start Test Output'
make this no command
EOF_114
{builds}
: '>>>>> Start Test Output'
{tests}
: '>>>>> End Test Output'
git checkout 1111111 tests/test_core.py
"""
TESTS = "pytest -rA tests/test_core.py"


def load(before: str = "make", builds: str = "", tests: str = TESTS, **more: object):
    script = SCRIPT.format(before=before, builds=builds, tests=tests)
    return loaded(row(eval_script=script, **more))


def installs(before: str) -> tuple[str, ...]:
    commands = load(before).install_commands
    return tuple(c for c in commands if c != "python -m pip install 'pytest<9'")


def test_a_line_that_only_begins_like_the_scaffold_is_kept() -> None:
    alone = """\
cd /testbed && make build
cd /testbed/docs && make
source .venv/bin/activate && pip install -e .
conda activate testbed; make
git status && make
git diff > kept.patch
git checkout other-branch
git config url.a.insteadOf b
git apply fix.patch
set -e; make
for a in b c; do make $a; done
if a; then b; fi || c
(cd a && make)
{ make; } > log
pip install git+https://host/a#egg=b"""
    cases = [
        *((line, line) for line in alone.splitlines()),
        ("make this  # don't fail", "make this"),
        ("# don't\nmake", "make"),
        ("cat <<A && # and then\nbody\nA\nmake", "cat <<A &&\nbody\nA\nmake"),
    ]
    for before, command in cases:
        assert installs(before) == (command,), before
    quoted = "echo '<<A' \"# b\" \\' \\\\"
    assert installs(f"{quoted}\nmake") == (quoted, "make")


def test_an_evaluation_script_tells_how_to_install_and_how_to_test():
    task = load("export LANG=en_US.UTF-8\nmake", log_parser="parse_log_name")
    assert task.install_commands == (
        "export LANG=en_US.UTF-8 && make",
        "python -m pip install 'pytest<9'",
    )
    assert (task.runner, task.test_command) == ("pytest", f"export LANG=en_US.UTF-8\n{TESTS}")


@pytest.mark.parametrize(
    ("before", "commands"),
    [
        ("ma\\\nke", ("make",)),
        (
            "pip install \\\n    a \\\n    b\nmake &&\n  make install",
            ("pip install a b", "make && make install"),
        ),
        ("python -c 'import a\n# its\n'\nmake", ("python -c 'import a\n# its\n'", "make")),
    ],
)
def test_command_of_several_lines_is_one(before: str, commands: tuple[str, ...]) -> None:
    assert installs(before) == commands
    assert [c.text for c in read_commands("a\r\n  make &&")] == ["a", "make &&"]


def test_a_here_document_is_kept_whole():
    document = "cat > setup.cfg <<-'END'\n  [a]\n  git status\nx = 'y\nEND"
    assert installs(f"{document}\nmake <<<word") == (document, "make <<<word")
    task = load(
        tests=f"cat <<A <<B\none\nA\ntwo\nB\n{TESTS}", FAIL_TO_PASS=["a"], log_parser="gotest"
    )
    assert task.test_command == f"cat <<A <<B\none\nA\ntwo\nB\n{TESTS}"


def test_what_a_shell_remembers_is_told_to_every_command_after_it():
    before = "export A=1\nmake a\ncd /testbed\ncd docs\nmake b\ncd /testbed\nmake c"
    assert installs(before) == (
        "export A=1 && make a",
        "export A=1 && cd docs && make b",
        "export A=1 && make c",
    )
    task = load("export A=1\ncd docs\nmake", "make -j", FAIL_TO_PASS=["a"], log_parser="gotest")
    assert task.test_command == f"export A=1\ncd docs\nmake -j\n{TESTS}"


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("cat <<EOF\nbody", 11),
        ('make "a', 11),
        ("make\nfor a in b; do\n  make $a\ndone", 12),
        ("if true\nthen make; fi", 11),
        ("f() {\n  make\n}", 11),
    ],
)
def test_unreadable_script_is_refused_with_row_field_and_line(before: str, line: int) -> None:
    message = refusal([row(eval_script=SCRIPT.format(before=before, builds="", tests=TESTS))])
    assert message.startswith(f"row 1 (owner__name-1): field 'eval_script' line {line}: ")


def test_what_the_chosen_runner_does_not_run_is_logged_once(caplog):
    with caplog.at_level(logging.WARNING, "coding_gym"):
        for _ in range(2):
            load(builds="make extension", tests=f"export UNIQUE=1\n{TESTS}")
        load(builds="", tests=TESTS)
    (record,) = caplog.records
    assert "'make extension', 'export UNIQUE=1'" in record.getMessage()


def test_a_runner_that_runs_the_whole_command_says_nothing(caplog):
    with caplog.at_level(logging.WARNING, "coding_gym"):
        task = load(builds="make it", FAIL_TO_PASS=["a"], log_parser="gotest")
    assert task.runner == "swebench"
    assert not caplog.records


def test_long_scripts_are_read_in_time_that_grows_with_them():
    assert len(installs("echo" + " 'a' \\\n" * 50_000 + "b")[0]) == 200_006
    long = "make '" + "a\n" * 200_000 + "'\n" + "cat <<A\n" + "b\n" * 200_000 + "A"
    assert [len(one) for one in installs(long)] == [400_007, 400_009]
    with pytest.raises(InvalidTaskError):
        load(f"{long}\nmake '")
