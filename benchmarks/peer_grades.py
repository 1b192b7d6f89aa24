"""The cost of a grade, and the cheats that it refuses: this package's, and ways that others grade.

The task is the small one that the red team attacks, the cheats are its patches (`tests/redteam`):
each comes with a change of the source that repairs nothing. All ways run in sandboxes of this
package, so that only their conclusions differ. The other two do the steps of SWE-bench's
evaluation script: check out the test files, apply the test patch, run pytest on its files.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "redteam"))

from cheats import PATCHES
from figures import Figure, interleaved, median, progress
from fixtures import AbsentError, peer
from grading_fixtures import TASK, patch_of

from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.workspace import Template, TemplateStore, apply_patch

_TEST_FILE = "tests/test_discounts.py"
_CODE = "pytest ended with "
Grader = Callable[[Patch], bool]
"""Whether a patch counts as a repair."""


def ours(template: Template) -> Grader:
    """Gives this package's grader, as an episode with the default reward uses it."""
    return lambda patch: grade(TASK, template, patch, challenge="resolved").resolved


def exit_code(template: Template) -> Grader:
    """Gives the exit code of pytest on the hidden tests."""

    def resolved(patch: Patch) -> bool:
        return _evaluated(template, patch).rstrip().endswith(f"{_CODE}0")

    return resolved


def swebench(template: Template) -> Grader:
    """Gives SWE-bench's own reading of the log and its own report."""
    grading = peer("swebench.harness.grading", "swebench")
    is_graded = f"{_TEST_FILE}::"
    expected = {
        "FAIL_TO_PASS": list(TASK.fail_to_pass),
        "PASS_TO_PASS": [test for test in TASK.pass_to_pass if test.startswith(is_graded)],
    }
    spec = SimpleNamespace(repo="pallets/flask", version="2.0")  # one that runs `pytest -rA`

    def resolved(patch: Patch) -> bool:
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write(_evaluated(template, patch))
            log.flush()
            statuses, _ = grading.get_logs_eval(spec, log.name)
        found = grading.get_eval_tests_report(statuses, expected)
        return bool(grading.get_resolution_status(found) == "RESOLVED_FULL")

    return resolved


def _evaluated(template: Template, patch: Patch) -> str:
    """Returns the output of SWE-bench's evaluation script, in a sandbox."""
    check_out = f"git checkout HEAD {_TEST_FILE}"
    lines = [
        "set -uxo pipefail",
        check_out,
        f"git apply -v - <<'EOF_OF_TESTS'\n{TASK.test_patch}\nEOF_OF_TESTS",
        ": '>>>>> Start Test Output'",
        f"python -m pytest -rA {_TEST_FILE}",
        "code=$?",
        ": '>>>>> End Test Output'",
        check_out,
        f"set +x; echo {_CODE}$code",
    ]
    with open_sandbox(template.spec) as sandbox:
        apply_patch(sandbox, patch)
        return sandbox.run("\n".join(lines)).output


GRADERS: dict[str, Callable[[Template], Grader]] = {
    "coding_gym": ours,
    "SWE-bench's script and log parser": swebench,
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
