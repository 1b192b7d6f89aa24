"""``coding-gym show``: episodes in a terminal."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from browsing import COMMAND
from checks.synthetic_runs import make_hostile_run, make_run
from command_line import run

from coding_gym.viewer.terminal import coloured


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "first", num_tasks=8, attempts=2)
    make_run(folder / "second", num_tasks=8, attempts=2, seed=1)
    make_hostile_run(folder / "hostile", output_chars=1_000_000, num_lines=100_000)
    return folder


TASK = "birch__ledger-000001"


def test_an_episode_is_printed_with_its_turns_patch_and_grade(runs: Path) -> None:
    said = run("show", runs / "first", TASK, "1")
    heading, *_ = said.splitlines()
    assert TASK in heading
    assert "attempt 1" in heading
    for part in ("── user", "I expected 15.", "── turn 0", "▸ shell", "── patch", "── grade"):
        assert part in said
    assert "test_area.py::test_wide  fail_to_pass" in said
    assert "tests of the bug: " in said
    assert "\x1b" not in said  # no terminal


def test_two_episodes_are_aligned_at_the_first_difference(runs: Path) -> None:
    said = run("show", runs / "first", TASK, "--diff", f"{runs / 'second'}:1")
    assert re.search(r"── \d+ equal turns, then the first difference", said)
    assert re.search(r"── patch +── patch", said)
    same = run("show", runs / "first", TASK, "--diff", runs / "first")
    assert "── turn" not in same
    assert "equal turns" in same


def test_only_colours_of_the_content_reach_a_terminal(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    said = run("show", runs / "hostile", "task<script>alert(1)</script>")
    colours = r"\x1b\[[0-9;]*m"
    assert re.search(r"\x1b\[[0-9;]*31[0-9;]*m", said)
    left = re.sub(colours, "", said)
    assert [c for c in set(left) if not (c.isprintable() or c == "\n")] == []
    assert "\u2039U+202E\u203a" in left
    assert "\u2039U+009B\u203a31m" in left
    for sequence in ("\u2039U+001B\u203a]52;c;YXR0YWNr\u2039U+0007\u203a", "\u2039U+001B\u203a[2J"):
        assert sequence in left  # strings could hide text, and arguments are no output
    hiding = "\x1b[2Ja\x1b[30;40mb\x1b[38;2;0;0;0;48;2;0;0;0mc\x1b[8md\x1b[" + "9" * 5000 + "me"
    assert (coloured(hiding).plain, coloured(hiding).spans) == ("abcde", [])
    assert coloured("\x1b[01;31mred\x1b[39;49;00m").spans


def test_long_texts_are_cut_and_say_so(runs: Path) -> None:
    said = run("show", runs / "hostile", "task<script>alert(1)</script>", "1")
    assert "… 980,000 more characters" in said
    assert len(said) < 100_000


def test_a_terminal_gets_colours_and_a_pager(runs: Path) -> None:
    main, terminal = pty.openpty()
    environment = {**os.environ, "PAGER": "sed s/^/paged:/", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    command = [*COMMAND, "show", str(runs / "first"), TASK]
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    ) as process:
        os.close(terminal)
        said = b""
        try:
            while chunk := os.read(main, 65536):
                said += chunk
        except OSError:  # the other end is closed
            pass
        assert process.wait() == 0, said
    os.close(main)
    assert said.startswith(b"paged:\x1b[1;3")


@pytest.mark.parametrize(
    ("arguments", "reply"),
    [
        (["first", "birch__ledger-00001"], TASK),
        (["first", "nosuch"], "has no task 'nosuch'; it has alder__parser-000000"),
        (["first", TASK, "7"], "no attempt 7"),
        (["first"], "tasks; name one; it has alder__parser-000000, "),
        (["nowhere", TASK], "nowhere"),
        (["first", TASK, "--diff", "nowhere:1"], "nowhere"),
    ],
)
def test_what_is_not_there_is_named(runs: Path, arguments: list[str], reply: str) -> None:
    folder, *others = arguments
    assert reply in run("show", runs / folder, *others, code=2)
