"""What a grade costs, against a cold ``python -m pytest`` of the same tests by hand.

    python benchmarks/bench_grading.py --rounds 50

*By hand* is one run, in an open sandbox that holds the patch, of the files that the grade runs. Of
each bundled task that is measured, one wrong patch and the right one are graded, by turns with runs
by hand. CPU time is that of the whole machine (``/proc/stat``), as work is done in processes that
nobody waits for, so nothing else should run meanwhile. The tasks have six functions or more that
test their bug, so that a grade needs no short rounds.
"""

import os
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from figures import Figure, median, parser, progress, ratio, report, timed_ms

from coding_gym import load_tasks
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.sandbox import Sandbox, get_backend, open_sandbox
from coding_gym.task import Task
from coding_gym.workspace import Template, TemplateStore, apply_patch

_TASKS = (
    *("bourse-lost-places", "braid-torn-chapter", "crate-second-journey"),
    *("inkwell-crossing-notes", "postbox-late-ack", "slate-guest-book"),
)
_WRONG = Patch.between({}, {"notes.txt": "nothing is repaired\n"})
_CHALLENGE = "resolved"
_TICK_MS = 1e3 / os.sysconf("SC_CLK_TCK")


def _busy_ms() -> float:
    """Returns the CPU time of all processes and the kernel since the machine's start."""
    text = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    user, nice, system, _, _, irq, softirq = (int(word) for word in text.split()[1:8])
    return (user + nice + system + irq + softirq) * _TICK_MS


class _Meter:
    """Wall and CPU milliseconds of a piece of work that is measured again and again."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self.wall_ms: list[float] = []
        self.cpu_ms: list[float] = []

    def measure(self) -> None:
        before = _busy_ms()
        self.wall_ms.append(timed_ms(self._work))
        self.cpu_ms.append(_busy_ms() - before)


def _measured(task: Task, template: Template, rounds: int) -> dict[str, _Meter]:
    gold = Patch(task.gold_patch)

    def by_hand(sandbox: Sandbox) -> Callable[[], object]:
        paths = " ".join(sorted({test.partition("::")[0] for test in task.expected_tests}))
        return lambda: sandbox.run(f"python -m pytest -q {paths}")

    with ExitStack() as stack:
        sandboxes = []
        for patch in (_WRONG, gold):
            sandbox = stack.enter_context(open_sandbox(template.spec))
            apply_patch(sandbox, Patch(task.test_patch))
            apply_patch(sandbox, patch)
            sandboxes.append(sandbox)
        meters = {
            "wrong by hand": _Meter(by_hand(sandboxes[0])),
            "wrong": _Meter(lambda: grade(task, template, _WRONG, challenge=_CHALLENGE)),
            "right by hand": _Meter(by_hand(sandboxes[1])),
            "right": _Meter(lambda: grade(task, template, gold, challenge=_CHALLENGE)),
        }
        assert not grade(task, template, _WRONG, challenge=_CHALLENGE).resolved
        assert grade(task, template, gold, challenge=_CHALLENGE).resolved
        for _ in range(rounds):
            for meter in meters.values():
                meter.measure()
    return meters


def main() -> None:
    """Measures, shows and keeps the figures."""
    options = parser(__doc__, rounds=50).parse_args()
    store = TemplateStore()
    wall: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    # Ticks are of 10 ms: the mean of many rounds of a task is one sample of its CPU time.
    for task in load_tasks(task_ids=_TASKS):
        progress(task.task_id)
        for name, meter in _measured(task, store.get(task), options.rounds).items():
            wall.setdefault(name, []).append(statistics.median(meter.wall_ms))
            cpu.setdefault(name, []).append(statistics.fmean(meter.cpu_ms))
    figures: list[Figure] = [
        ratio("CPU of a failing grade / by hand", cpu["wrong"], cpu["wrong by hand"], 0.6),
        ratio("CPU of a passing grade / by hand", cpu["right"], cpu["right by hand"], 1.6),
        ratio("time of a failing grade / by hand", wall["wrong"], wall["wrong by hand"]),
        ratio("time of a passing grade / by hand", wall["right"], wall["right by hand"], 1.3),
        median("time of a failing grade", wall["wrong"], "ms", None),
        median("time of a passing grade", wall["right"], "ms", None),
        median("time of the tests by hand", wall["right by hand"], "ms", None),
    ]
    report("grading", figures, options, rounds=options.rounds, backend=get_backend().name)


if __name__ == "__main__":
    main()
