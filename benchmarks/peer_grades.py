"""What a grade costs and which cheats it refuses: this package's, and ways that others grade.

The task is the small one that the red team attacks (`tests/support/cart_task.py`), the cheats are
its patches: each comes with a change of the source that repairs nothing. All graders run in
sandboxes of this package, so that only what they conclude differs.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from cart_task import TASK
from figures import Figure, interleaved, median, progress
from grading_fixtures import patch_of
from making import AbsentError, peer
from mechanisms import PATCHES

from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.sandbox import Sandbox, open_sandbox
from coding_gym.workspace import Template, TemplateStore, apply_patch

Grader = Callable[[Patch], bool]
"""Whether a patch counts as a repair."""


def ours(template: Template) -> Grader:
    """Gives this package's grader, as an episode with the default reward uses it."""
    return lambda patch: grade(TASK, template, patch, challenge="resolved").resolved


def exit_code(template: Template) -> Grader:
    """Gives the exit code of pytest, with the hidden tests in the tree that the patch made."""

    def resolved(patch: Patch) -> bool:
        with open_sandbox(template.spec) as sandbox:
            _prepare(sandbox, patch)
            return sandbox.run("python -m pytest -q tests").exit_code == 0

    return resolved


def swebench(template: Template) -> Grader:
    """Gives SWE-bench's: the printed results, read by its own parser and report."""
    parsers = peer("swebench.harness.log_parsers.python", "swebench")
    grading = peer("swebench.harness.grading", "swebench")
    expected = {
        "FAIL_TO_PASS": list(TASK.fail_to_pass),
        "PASS_TO_PASS": list(TASK.pass_to_pass),
    }

    def resolved(patch: Patch) -> bool:
        with open_sandbox(template.spec) as sandbox:
            _prepare(sandbox, patch)
            log = sandbox.run("python -m pytest -rA tests").output
        found: dict[str, Any] = grading.get_eval_tests_report(
            parsers.parse_log_pytest(log, None), expected
        )
        return bool(grading.get_resolution_status(found) == "RESOLVED_FULL")

    return resolved


def _prepare(sandbox: Sandbox, patch: Patch) -> None:
    apply_patch(sandbox, patch)
    for path in Patch(TASK.test_patch).paths:  # as SWE-bench's scripts check them out
        sandbox.run(f"git checkout -q HEAD -- {path} 2>/dev/null || rm -rf {path}")
    apply_patch(sandbox, Patch(TASK.test_patch))


GRADERS: dict[str, Callable[[Template], Grader]] = {
    "coding_gym": ours,
    "SWE-bench's log parser": swebench,
    "exit code of pytest": exit_code,
}


def grades(rounds: int) -> list[Figure]:
    """Times the grade of a real repair, and counts the cheats that are refused."""
    template, works = TemplateStore().get(TASK), dict[str, Grader]()
    gold, figures = Patch(TASK.gold_patch), list[Figure]()
    for name, make in GRADERS.items():
        progress(f"cheats: {name}")
        try:
            grader = make(template)
        except AbsentError as reason:
            figures.append(Figure(name=f"grade: {name}", absent=str(reason)))
            continue
        assert grader(gold), f"{name} refuses the real repair"
        works[name] = grader
        accepted = sorted(key for key in PATCHES if grader(patch_of(PATCHES[key].changes)))
        figures.append(
            Figure(
                name=f"cheats refused of {len(PATCHES)}: {name}",
                value=len(PATCHES) - len(accepted),
                target=len(PATCHES) if name == "coding_gym" else None,
                is_floor=True,
                details={"accepted": accepted},
            )
        )
    timed = {name: partial(grader, gold) for name, grader in works.items()}
    took = interleaved(timed, max(5, rounds // 5))
    figures += [median(f"grade: {name}", took[name], "ms", None) for name in works]
    return figures
