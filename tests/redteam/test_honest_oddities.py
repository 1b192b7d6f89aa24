"""Honest repairs resolve their tasks, even if the repairs or their tests are unusual."""

import pytest
from golds import GOLDS, Gold, task_of
from grading_fixtures import FIXED, GradeTree
from side_files import OUTSIDE

from coding_gym.grade import GradeReason
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

_HARMLESS = Patch.between({}, {"notes.txt": "Nothing reads this.\n"})


@pytest.mark.parametrize("gold", GOLDS.values(), ids=GOLDS.keys())
def test_unusual_repair_resolves_and_its_base_does_not(store: TemplateStore, gold: Gold) -> None:
    task = task_of(gold)
    verdict = grade(task, store.get(task), Patch(task.gold_patch))
    assert verdict.resolved, verdict
    unrepaired = grade(task, store.get(task), _HARMLESS)
    assert unrepaired.reason is GradeReason.TESTS_FAILED
    assert set(unrepaired.fail_to_pass.values()) == {"failed"}, unrepaired


@pytest.mark.parametrize("part", range(4))
def test_side_files_do_not_fail_a_real_repair(grade_tree: GradeTree, part: int) -> None:
    files: dict[str, str | None] = {}
    for changes in list(OUTSIDE.values())[part::4]:
        files |= changes
    verdict = grade_tree({"cart.py": FIXED, **files})
    assert verdict.resolved, verdict


_OPENS_THE_SUPERVISOR = """\
import os

for name in ('mem', 'fd/1', 'environ'):
    try:
        open(f'/proc/{os.getppid()}/{name}', 'rb').close()
    except OSError:
        continue
    raise SystemExit(f'{name} could be opened')
"""


@pytest.mark.parametrize(
    "code",
    [
        _OPENS_THE_SUPERVISOR,
        "import subprocess\n\nsubprocess.Popen(['sleep', '500'])\n",
        "import atexit\n\natexit.register(print, 'bye')\n",
        "import sys\n\nprint('1 failed', file=sys.stderr)\n",
        "import os\n\nif os.fork() == 0:\n    os._exit(3)\nos.wait()\n",
        "import threading\n\nthreading.Thread(target=threading.Event().wait).start()\n",
        "import sys\n\nsys.stdin.close()\n",
    ],
)
def test_repair_with_unusual_code_resolves(grade_tree: GradeTree, code: str) -> None:
    verdict = grade_tree({"cart.py": f"{FIXED}\n\n{code}"})
    assert verdict.resolved, verdict
