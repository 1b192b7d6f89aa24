"""How long a grade's tests take, warm and cold, against ``python -m pytest`` in the same sandbox.

    python benchmarks/bench_grading.py --rounds 30

The file has 20 tests that do next to nothing, so that what is measured is the way there. *Warm* is
a run for which `coding_gym.grading.start_ahead` was called while the policy thought; *cold* one
for which nothing was. A warm run saves waiting, not work: the same process imports pytest either
way, only earlier. A repair is run three times, and only the first run is warm.
"""

import argparse
import time
from functools import partial
from pathlib import Path

from figures import RESULTS, Figure, at_least, keep, median, progress, ratio, show, timed_ms

from coding_gym.grading import grade, start_ahead
from coding_gym.grading.supervision import prepare_tests, run_tests
from coding_gym.patch import Patch
from coding_gym.sandbox import get_backend, open_sandbox
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import Template, TemplateStore

_TESTS = "tests/test_squares.py"
_BROKEN = "def square(x):\n    return x * x + 1\n"
_HALF = "def square(x):\n    return x * x if x < 10 else 0\n"
_FIXED = "def square(x):\n    return x * x\n"
_CASES = "".join(f"\n\ndef test_{x}():\n    assert square({x}) == {x * x}\n" for x in range(20))
_THOUGHT_S = 1.5  # between two turns; the process has long been ready then

TASK = Task(
    task_id="squares",
    tree=FilesTree({"squares.py": _BROKEN}),
    problem_statement="square(3) is 10",
    gold_patch=Patch.between({"squares.py": _BROKEN}, {"squares.py": _FIXED}).text,
    test_patch=Patch.between({}, {_TESTS: f"from squares import square\n{_CASES}"}).text,
    fail_to_pass=tuple(f"{_TESTS}::test_{x}" for x in range(20)),
    created_at="2024-01-01T00:00:00Z",
)


def runs(template: Template, rounds: int) -> list[Figure]:
    """Measures one run of the tests in a sandbox that holds them."""
    samples: dict[str, list[float]] = {"warm": [], "cold": [], "pytest": []}
    for number in range(rounds + 1):
        with open_sandbox(template.spec) as sandbox:
            prepare_tests(sandbox, has_own_pytest=False)
            sandbox.write_file(_TESTS, f"from squares import square\n{_CASES}".encode())
            sandbox.write_file("squares.py", _FIXED.encode())
            time.sleep(_THOUGHT_S)
            took = {
                "warm": timed_ms(partial(_run, sandbox)),
                "cold": timed_ms(partial(_run, sandbox)),
                "pytest": timed_ms(partial(_bare, sandbox)),
            }
        if number:  # the first one fills caches
            for name, value in took.items():
                samples[name].append(value)
    return [
        ratio("warm run / `python -m pytest`", samples["warm"], samples["pytest"], 0.45),
        ratio("cold run / `python -m pytest`", samples["cold"], samples["pytest"]),
        median("`python -m pytest`, 20 tests", samples["pytest"], "ms", None),
        median("warm run", samples["warm"], "ms", None),
    ]


def _run(sandbox: Sandbox) -> None:
    report = run_tests(sandbox, [_TESTS], timeout_s=60, has_own_pytest=False)
    assert report is not None
    assert len(report.statuses) == 20


def _bare(sandbox: Sandbox) -> None:
    assert sandbox.run(f"python -m pytest {_TESTS}").ok


def grades(template: Template, rounds: int) -> list[Figure]:
    """Measures whole grades: sandboxes, patch, challenge, verdict."""
    figures = []
    for what, source in (("half a repair", _HALF), ("a repair, run three times", _FIXED)):
        patch = Patch.between({"squares.py": _BROKEN}, {"squares.py": source})
        warm, cold, ahead = [], [], []
        for number in range(rounds + 1):
            start = time.perf_counter()
            waiting = start_ahead(TASK, template)
            opened_ms = (time.perf_counter() - start) * 1e3
            time.sleep(_THOUGHT_S)
            one = timed_ms(partial(grade, TASK, template, patch, warm=waiting))
            other = timed_ms(partial(grade, TASK, template, patch))
            if number:
                warm.append(one)
                cold.append(other)
                ahead.append(opened_ms)
        figures.append(ratio(f"grade of {what}: warm / cold", warm, cold))
        figures.append(median(f"grade of {what}, warm", warm, "ms", None))
    return [*figures, median("opening ahead of a grade", ahead, "ms", None)]


def main() -> None:
    """Measures, shows and keeps the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=at_least(1), default=30, help="of each (default 30)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder (default: results)")
    options = parser.parse_args()
    template = TemplateStore().get(TASK)
    progress("runs of the tests")
    figures = runs(template, options.rounds)
    progress("whole grades")
    figures += grades(template, options.rounds)
    show(figures)
    keep("bench_grading", figures, options.results, backend=get_backend().name)


if __name__ == "__main__":
    main()
