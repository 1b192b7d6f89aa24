"""Which files of the tree a command names, and which of them it starts."""

from dataclasses import replace

from grading_fixtures import TASK as ANY_TASK

from coding_gym.grading.runners import get_runner
from coding_gym.grading.runners.patterns import named_patterns, started_patterns
from coding_gym.grading.selection import path_matcher

TASK = replace(
    ANY_TASK, runner="command", test_command="", fail_to_pass=(), pass_to_pass=(), gold_patch=""
)


def test_a_file_that_a_command_names() -> None:
    cases = [
        ("./run all", "run"),
        ("python -m pytest -q lib/test_x.py::test_a", "lib/test_x.py"),
        ("python -m checks.all --fast", "checks/all.py"),
        ("python -m checks", "checks/__main__.py"),
        ("cd sub && ./check.sh", "sub/check.sh"),
        ("make -C sub -f rules.txt", "sub/rules.txt"),
        ("./prog < in.txt | diff - wanted.txt", "wanted.txt"),
        ("bash -c './check.sh all'", "check.sh"),
        ("'my checks/run all.sh'", "my checks/run all.sh"),
        ("$PWD/check.sh", "check.sh"),
        ('"${ROOT}/checks/one.sh"', "checks/one.sh"),
        ("/testbed/checks/one.sh", "checks/one.sh"),
        ("X=checks/one.sh; sh $X", "checks/one.sh"),
        ("pytest --config=conf/x.cfg", "conf/x.cfg"),
        ("cat <<'END'\nit's checks/one.sh\nEND", "checks/one.sh"),
        ("./a/../check.sh", "check.sh"),
        ("./prüfen.sh", "prüfen.sh"),
    ]
    for command, path in cases:
        for task in (replace(TASK, fail_to_pass=(command,)), replace(TASK, test_command=command)):
            assert path_matcher(named_patterns(task))(path), command
            assert set(named_patterns(task)) <= set(get_runner("command").patterns(task))
    others = named_patterns(replace(TASK, test_command="cc -o prog prog.c\n./prog -q ."))
    assert others == ("/cc", "/prog", "/prog.c")


def test_a_program_that_a_command_starts() -> None:
    cases = [
        "./run.sh",
        "./run.sh {file}",
        "bash run.sh",
        "A=1 B='x' env -i timeout -s KILL 60s sh ./run.sh",
        "make && ./run.sh",
        "(./run.sh)",
        "bash -c './run.sh && true'",
        "set -e\ncd .\nrun.sh",
        "if true; then ./run.sh; fi",
        "sh /testbed/run.sh",
        "if ! ./run.sh; then exit 1; fi",
        "/usr/bin/python3.11 -u run.sh",
    ]
    for command in cases:
        assert "/run.sh" in started_patterns(command), command
    assert started_patterns("cc src/clamp.c -o clamp && ./clamp") == ("/cc", "/clamp")
