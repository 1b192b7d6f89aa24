from typing import Any

from shell_workspace import BAG, played

from coding_gym.mutation.source import Edit, Source
from coding_gym.repair import driver
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.probe import wire

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


def survey(shell: Any, *, test_s: float = 2) -> dict[str, Any]:
    assert shell(driver.install_command()) == "ready"
    request = {"arguments": "-q", "seconds": 30, "test_s": test_s}
    reply: dict[str, Any] = played(driver.ask("survey", request), shell)
    return reply


def candidate(text: str, *changes: tuple[str, str], path: str = "queues.py") -> Candidate:
    """Changes of a file, each from an old text to a new one."""
    starts = [text.index(old) for old, _ in changes]
    edits = [
        Edit(path, start, start + len(old), new)
        for start, (old, new) in zip(starts, changes, strict=True)
    ]
    return Candidate(path, 1, "compare", 1.0, tuple(edits))


def tried(
    shell: Any, *candidates: Candidate, text: str = QUEUE, full: bool = False
) -> tuple[str, dict[str, list[int]]]:
    """Tries candidates that change one file; returns their codes, and what each repairs."""
    path = candidates[0].path
    sources = {path: Source(path, text)}
    request = driver.trial_request(list(candidates), sources, seconds=60, extra=99, full=full)
    reply = played(driver.ask("try", request), shell)
    return reply["codes"], reply["fixed"]


RIGHT = candidate(QUEUE, ("> LIMIT", ">= LIMIT"))


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
    changes = (
        ("LIMIT = 2", "LIMIT = 1"),  # right, needs a fresh import
        ("> LIMIT", "> -1"),  # another assertion fails
        ("items[0]", "items[1]"),  # the failing test does not see it
        ("(item)", "(9)"),  # as above
        ("self.items.append(item)", "while True: pass"),  # never ends
    )
    codes, _ = tried(place, RIGHT, *(candidate(QUEUE, change) for change in changes))
    assert codes == "!!~==t"


def test_an_edit_that_breaks_another_test_is_not_plausible(shell: Any) -> None:
    place = shell(FILES)
    survey(place)
    breaks = ("self.items.append(item)", "self.items.append(None)")
    pair = candidate(QUEUE, breaks, ("> LIMIT", ">= LIMIT"))
    for full in (False, True):
        assert tried(place, pair, full=full) == ("*", {"0": [0]})


def test_tests_that_wait_for_ever_leave_time_for_those_that_fail(shell: Any) -> None:
    waits = "import threading\n\n\ndef test_{0}():\n    threading.Event().wait()\n"
    place = shell(FILES | {f"test_{n}.py": waits.format(n) for n in "ab"})
    assert survey(place, test_s=0.5)["failing"] == ["test_queues.py::test_full"]


def test_a_test_that_sleeps_is_repaired_like_others(shell: Any) -> None:
    slow = TESTS.replace("    queue = Queue()\n", "    time.sleep(1.2)\n    queue = Queue()\n")
    place = shell({"queues.py": QUEUE, "test_queues.py": f"import time\n{slow}"})
    survey(place)
    assert tried(place, RIGHT)[0] == "!"


def test_the_workspace_is_left_as_it_was(shell: Any) -> None:
    place = shell(FILES)
    survey(place)
    tried(place, RIGHT, full=True)
    assert place.files() == FILES


def test_a_test_that_fails_only_after_others_is_tried_in_its_order(shell: Any) -> None:
    place = shell(BAG)
    assert survey(place)["failing"] == ["test_bag.py::test_two"]
    text = BAG["bag.py"]
    candidates = [
        candidate(text, ("    bag.append(x)", new), path="bag.py")
        for new in ("    bag = [*bag, x]", "    bag.extend([x])")
    ]
    assert tried(place, *candidates, text=text)[0] == "!="


def test_apply_edits_the_workspace_itself(shell: Any) -> None:
    files = FILES | {"queues.py": QUEUE.replace("\n", "\r\n")}
    place = shell(files)
    survey(place)
    start = files["queues.py"].index("> LIMIT")
    edits = [["queues.py", start, start + 1, ">="]]
    assert played(driver.ask("apply", {"edits": edits}), place) is not None
    assert place.files()["queues.py"] == files["queues.py"].replace("> LIMIT", ">= LIMIT")
