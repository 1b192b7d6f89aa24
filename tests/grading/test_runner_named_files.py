"""Which files of the tree a command names, and which of them it starts."""

from dataclasses import replace

from language_tasks import C_TASK

from coding_gym.grading.runners import get_runner
from coding_gym.grading.runners.named_files import named_files, started_files

TASK = replace(
    C_TASK, runner="command", test_command="", fail_to_pass=(), pass_to_pass=(), gold_patch=""
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
        ("./prog < in.txt | diff - wanted.txt", "in.txt"),
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
        assert path in named_files(replace(TASK, fail_to_pass=(command,))), command
        assert path in named_files(replace(TASK, test_command=command)), command
        assert path in get_runner("command").files(replace(TASK, fail_to_pass=("true", command))), (
            command
        )


def test_no_file_of_the_graders() -> None:
    cases = [
        ("./prog >out.txt && cmp out.txt wanted.txt", "out.txt"),
        ("./prog 2>> logs/out.txt", "logs/out.txt"),
        ("cat ../outside.txt", "../outside.txt"),
        ("python -m pytest -q", "-q"),
        ("./prog", "."),
    ]
    for command, path in cases:
        assert path not in named_files(replace(TASK, fail_to_pass=(command,))), command


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
        assert "run.sh" in started_files(TASK, command), command


def test_what_a_program_is_given_is_not_started() -> None:
    assert "src/clamp.c" not in started_files(TASK, "cc src/clamp.c -o clamp && ./clamp")
    assert get_runner("tap").files(replace(TASK, test_command="cc src/clamp.c")) == ("cc",)


def test_what_the_gold_patch_touches_is_the_policys() -> None:
    task = replace(TASK, gold_patch=C_TASK.gold_patch, fail_to_pass=("cc src/clamp.c",))
    assert named_files(task) == ("cc",)
    assert started_files(task, "src/clamp.c") == ()
