"""The command ``coding-gym`` as users run it: output, errors and exit codes."""

import json
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from episodes import run_command
from sandbox_fixtures import NO_LANDLOCK, NO_UNSHARE, run_on
from typer.main import get_command

from coding_gym import load_tasks
from coding_gym.agents.built_in import get_player
from coding_gym.cli import demo
from coding_gym.cli.app import app
from coding_gym.run_folder import RunFolder


def test_tasks_are_listed_and_shown() -> None:
    listing = run_command("tasks", "list")
    assert listing.splitlines()[0].split() == ["task", "repo", "split", "difficulty", "F2P", "P2P"]
    assert listing.splitlines()[-1] == f"{len(load_tasks('bundled'))} tasks"
    task_id = listing.splitlines()[1].split()[0]
    text = run_command("tasks", "show", task_id)
    assert task_id in text
    assert "diff --git" not in text
    assert "diff --git" in run_command("tasks", "show", task_id, "--gold")


def test_show_writes_the_base_tree_without_hidden_tests(rows: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    assert str(tree) in run_command("tasks", "show", "shapes-area", "--tasks", rows, "--tree", tree)
    assert "width + height" in (tree / "shapes.py").read_text()
    assert {path.name for path in tree.iterdir()} == {".git", "shapes.py", "test_shapes.py"}
    (tree / "shapes.py").write_text("")
    changed = subprocess.run(["git", "-C", tree, "diff", "--stat"], capture_output=True, check=True)  # noqa: S607
    assert b"shapes.py" in changed.stdout
    run_command("tasks", "show", "shapes-area", "--tasks", rows, "--tree", tree, code=2)


def test_control_characters_of_tasks_are_removed(tiny_row: dict[str, Any], tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b1m\u202e\r\x08"
    path = tmp_path / "rows.jsonl"
    gold = f"{tiny_row['patch'].rstrip()}\n-- {evil}\n"
    changed = {
        "problem_statement": f"one{evil}\n\ttwo",
        "repo": f"o/{evil}n",
        "difficulty": evil,
        "patch": gold,
        "FAIL_TO_PASS": [f"test_hidden.py::test_{evil}"],
    }
    path.write_text(json.dumps(tiny_row | changed) + "\n")
    commands = {
        ("tasks", "list", "--tasks", str(path)): 0,
        ("tasks", "show", tiny_row["instance_id"], "--tasks", str(path), "--gold"): 0,
        ("tasks", "show", evil, "--tasks", str(path)): 2,
        ("validate", str(path), "--repeats", "1"): 1,
    }
    for command, code in commands.items():
        text = run_command(*command, code=code)
        assert "]0;owned" in text
        assert [c for c in text if not (c.isprintable() or c in "\n\t")] == []


def test_a_file_gets_lines_of_progress_between_results(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coding_gym.cli.console.INTERVAL_S", 0.0)
    run = tmp_path / "run"
    lines = run_command("eval", "--tasks", rows, "--agent", "gold", "--out", run).splitlines()
    assert any(line.startswith("0/1 ") and "1 turns" in line for line in lines)
    assert len([line for line in lines if line.startswith("1/1 ")]) == 1
    assert "1/1 " in run_command("regrade", run)


def test_doctor_exits_with_1_without_an_isolating_sandbox() -> None:
    script = "import sys\nsys.argv[1:] = ['doctor']\nfrom coding_gym.cli.app import main\nmain()"
    process = run_on(NO_UNSHARE + NO_LANDLOCK, script)
    assert process.returncode == 1, process.stdout + process.stderr
    assert "namespace" in process.stdout


EVAL = ["eval", "--out", "/proc/nowhere/run"]
SYNTHESIZE = ["tasks", "synthesize", "--repo", "."]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*EVAL, "--agent", "noop", "--task", "ledgerlime"], "ledgerlime"),
        ([*EVAL, "--agent", "noop", "--tasks", "nowhere.jsonl"], "nowhere.jsonl"),
        ([*EVAL, "--agent", "smart"], "'smart'"),
        ([*EVAL, "--agent", "noop", "--sandbox", "lxc"], "'lxc'"),
        (["validate", "bundled", "--task", "nope"], "nope"),
        (["eval", "--agent", "noop", "--out", "/proc/nowhere/run"], "/proc/nowhere"),
        (["validate", "bundled", "--out", "/proc/x.jsonl"], "/proc/x.jsonl"),
        ([*EVAL, "--max-turns", "0"], "'0'"),
        (["tasks", "export"], "tasks export --help"),
        ([*SYNTHESIZE, "--from-history", "--show-failing"], "--show-failing"),
        (["serv"], "--help"),
        (["report", "nowhere"], "nowhere"),
    ],
)
def test_mistake_is_one_line_and_exit_code_2(arguments: list[str], message: str) -> None:
    text = run_command(*arguments, code=2)
    assert message in text
    assert text.startswith("error: ")
    assert len(text.splitlines()) == 1


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupt(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("coding_gym.cli.validate.validate_into", interrupt)
    out = tmp_path / "reports.jsonl"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as for "command &" in a shell script
    try:
        assert str(out) in run_command("validate", "--out", out, code=130)
    finally:
        signal.signal(signal.SIGINT, before)


def test_every_option_is_explained_and_spelt_one_way() -> None:
    spellings = defaultdict[str, set[tuple[str, ...]]](set)
    for command in commands(get_command(app)):
        for option in command.params:
            assert option.help, (command.name, option.name)
            for name in option.opts if option.param_type_name == "option" else ():
                spellings[name].add((*option.opts, *option.secondary_opts))
    assert {name: forms for name, forms in spellings.items() if len(forms) > 1} == {}


def commands(command: Any) -> Iterator[Any]:
    yield command
    for child in getattr(command, "commands", {}).values():
        yield from commands(child)


def test_the_demo_displays_no_encoded_patch_and_ends_with_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(demo, "NUM_TASKS", 2)
    monkeypatch.setattr(demo, "get_player", lambda _: get_player("gold"))
    text = run_command("demo")
    assert "base64" not in text
    assert "characters]" not in text
    assert "\nresolved 2 of 2\n" in text


def test_the_sandbox_is_a_name_or_options_as_json(rows: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text('{"name": "shell", "arguments": {"cmd": "ulimit -n"}}\n')
    common = ["eval", "--tasks", rows, "--agent", str(script)]
    limits = '{"limits": {"num_open_files": 99}}'
    run_command(*common, "--out", tmp_path / "run", "--sandbox", limits)
    (record,) = RunFolder.open(tmp_path / "run").trajectories()
    assert "99" in record.turns[0].observation
    wrong = ["--out", tmp_path / "none", "--sandbox", '{"limits": {"num_files": 99}}']
    assert "num_files" in run_command(*common, *wrong, code=2)
