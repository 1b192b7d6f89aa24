from typing import Any

import pytest

from coding_gym.repair import driver
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.probe import wire
from coding_gym.repair.source import Edit, Source

QUEUE = """\
LIMIT = 2


class Queue:
    def __init__(self):
        self.items = []

    def push(self, item):
        if len(self.items) > LIMIT:
            return False
        self.items.append(item)
        return True


def first(queue):
    return queue.items[0]
"""
TESTS = """\
from queues import Queue, first


def test_full():
    queue = Queue()
    assert queue.push(1) and queue.push(2)
    assert not queue.push(3)


def test_first():
    queue = Queue()
    queue.push(1)
    assert first(queue) == 1
"""
FILES = {"queues.py": QUEUE, "test_queues.py": TESTS}


def ask(shell: Any, command: str, **request: Any) -> dict[str, Any] | None:
    talk = driver.ask(command, request)
    output = next(talk)
    while True:
        try:
            output = talk.send(shell(output))
        except StopIteration as end:
            reply: dict[str, Any] | None = end.value
            return reply


def survey(shell: Any, *, test_s: float = 2) -> dict[str, Any]:
    assert shell(driver.install_command()) == "ready"
    reply = ask(shell, "survey", arguments="-q", seconds=30, test_s=test_s)
    assert reply is not None
    return reply


def try_edits(
    shell: Any, files: dict[str, str], *edits: tuple[str, str, str], full: bool = False
) -> str:
    """Tries each edit (path, old text, new text) and returns the codes."""
    candidates = []
    for path, old, new in edits:
        start = files[path].index(old)
        edit = Edit(path, start, start + len(old), new)
        candidates.append(Candidate(path, 1, "compare", 1.0, (edit,), ""))
    sources = {p: Source(p, text) for p, text in files.items() if not p.startswith("test")}
    request = driver.trial_request(candidates, sources, seconds=60, extra=99, full=full)
    reply = ask(shell, "try", **request)
    assert reply is not None
    codes: str = reply["codes"]
    return codes


def test_packed_values_survive_being_cut_into_slices() -> None:
    value = {"text": "ä\n'\"$`\\", "numbers": list(range(2000))}
    packed = wire.pack(value)
    text = ""
    while len(text) < len(packed):
        reply = (
            f"a line for people\n{wire.format_slice(packed, len(text), 999)}... output truncated"
        )
        found = wire.parse_slice(reply)
        assert found is not None
        assert found[:2] == (len(text), len(packed))
        text += found[2]
    assert wire.unpack(text) == value


def test_a_reply_that_is_none_ends_the_talk() -> None:
    talk = driver.ask("survey", {})
    next(talk)
    with pytest.raises(StopIteration) as end:
        talk.send("command failed with exit code 1")
    assert end.value.value is None


def test_the_install_command_is_the_same_every_time() -> None:
    assert driver.install_command() == driver.install_command()


def test_the_survey_says_what_failed_and_which_lines_ran(shell: Any) -> None:
    found = survey(shell(FILES))
    assert found["failing"] == ["test_queues.py::test_full"]
    assert (found["num_failed"], found["num_passed"]) == (1, 1)
    groups = found["files"]["queues.py"]["groups"]
    assert groups == {"1,1": [6, 9, 11, 12]}  # of push, all but the line that no test reaches


def test_lines_of_the_programs_own_processes_are_seen(shell: Any) -> None:
    files = {
        "tool.py": "import sys\n\n\ndef total(xs):\n    return len(xs)\n\n\n"
        "if __name__ == '__main__':\n    print(total(sys.argv[1:]))\n",
        "test_tool.py": "import subprocess, sys\n\n\ndef test_total():\n"
        "    done = subprocess.run([sys.executable, 'tool.py', '3'], capture_output=True)\n"
        "    assert done.stdout == b'3\\n'\n",
    }
    found = survey(shell(files))
    lines = [line for group in found["files"]["tool.py"]["groups"].values() for line in group]
    assert 5 in lines


def test_every_kind_of_verdict(shell: Any) -> None:
    place = shell(FILES)
    survey(place)
    codes = try_edits(
        place,
        FILES,
        ("queues.py", "> LIMIT", ">= LIMIT"),  # right, inside a function
        ("queues.py", "LIMIT = 2", "LIMIT = 1"),  # right, needs a fresh import
        ("queues.py", "> LIMIT", "> -1"),  # another assertion fails
        ("queues.py", "items[0]", "items[1]"),  # the failing test does not see it
        ("queues.py", "(item)", "(9)"),  # as above
    )
    assert codes == "!!~=="


def test_an_edit_that_breaks_another_test_is_not_plausible(shell: Any) -> None:
    place = shell(FILES)
    survey(place)
    edit = ("queues.py", "self.items.append(item)", "self.items.append(None)")
    both = QUEUE.replace("> LIMIT", ">= LIMIT")
    start = QUEUE.index(edit[1])
    edits = (
        Edit("queues.py", start, start + len(edit[1]), edit[2]),
        Edit("queues.py", both.index(">= LIMIT"), both.index(">= LIMIT") + 1, ">="),
    )
    pair = Candidate("queues.py", 1, "compare+variable", 1.0, edits, "")
    sources = {"queues.py": Source("queues.py", QUEUE)}
    for full in (False, True):
        request = driver.trial_request([pair], sources, seconds=60, extra=0, full=full)
        reply = ask(place, "try", **request)
        assert reply is not None
        assert (reply["codes"], reply["fixed"]) == ("*", {"0": [0]})


def test_an_endless_loop_is_ended(shell: Any) -> None:
    place = shell(FILES)
    survey(place)
    edit = ("queues.py", "self.items.append(item)", "while True: pass")
    assert try_edits(place, FILES, edit) == "t"


def test_tests_that_wait_for_ever_leave_time_for_those_that_fail(shell: Any) -> None:
    waits = "import threading\n\n\ndef test_{0}():\n    threading.Event().wait()\n"
    place = shell(FILES | {f"test_{n}.py": waits.format(n) for n in "ab"})
    assert survey(place, test_s=0.5)["failing"] == ["test_queues.py::test_full"]


def test_a_test_that_sleeps_is_repaired_like_others(shell: Any) -> None:
    slow = TESTS.replace("    queue = Queue()\n", "    time.sleep(1.2)\n    queue = Queue()\n")
    place = shell({"queues.py": QUEUE, "test_queues.py": f"import time\n{slow}"})
    survey(place)
    assert try_edits(place, FILES, ("queues.py", "> LIMIT", ">= LIMIT")) == "!"


def test_the_workspace_is_left_as_it_was(shell: Any) -> None:
    place = shell(FILES)
    survey(place)
    try_edits(place, FILES, ("queues.py", "> LIMIT", ">= LIMIT"), full=True)
    assert place.files() == FILES


def test_a_test_that_fails_only_after_others_is_tried_in_its_order(shell: Any) -> None:
    files = {
        "bag.py": "def add(x, bag=[]):\n    bag.append(x)\n    return bag\n",
        "test_bag.py": "from bag import add\n\n\ndef test_one():\n    assert add(1) == [1]\n\n\n"
        "def test_two():\n    assert add(2) == [2]\n",
    }
    place = shell(files)
    assert survey(place)["failing"] == ["test_bag.py::test_two"]
    codes = try_edits(
        place,
        files,
        ("bag.py", "    bag.append(x)", "    bag = [*bag, x]"),
        ("bag.py", "    bag.append(x)", "    bag.extend([x])"),
    )
    assert codes == "!="


def test_apply_edits_the_workspace_itself(shell: Any) -> None:
    files = FILES | {"queues.py": QUEUE.replace("\n", "\r\n")}
    place = shell(files)
    survey(place)
    start = files["queues.py"].index("> LIMIT")
    assert ask(place, "apply", edits=[["queues.py", start, start + 1, ">="]]) is not None
    assert place.files()["queues.py"] == files["queues.py"].replace("> LIMIT", ">= LIMIT")
