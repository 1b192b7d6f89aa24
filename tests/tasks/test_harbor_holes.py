"""An exported task's verifier against the ways in which rewards of Harbor's tasks were forged."""

import json
import shlex
from pathlib import Path

import pytest
from grading_fixtures import BASE, FIXED, HIDDEN, TASK, patch_of

from coding_gym.grading import grade
from coding_gym.grading.runners.harbor_runner import TESTS
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.task import Task
from coding_gym.tasks import load_tasks
from coding_gym.tasks.harbor_export import write_harbor_task
from coding_gym.workspace import TemplateStore, apply_patch

pytestmark = pytest.mark.slow

LAY = f"mkdir -p /tmp/tests /tmp/logs/verifier && cp -R {TESTS}/. /tests/ && chmod -R u+x /tests"


@pytest.fixture(scope="module")
def folder(store: TemplateStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("harbor") / "cart"
    write_harbor_task(TASK, store.get(TASK), made)
    return made


@pytest.fixture(scope="module")
def task(folder: Path) -> Task:
    (loaded,) = load_tasks(folder.parent)
    return loaded


class Verifier:
    """Runs an exported task's test.sh on changed trees, with what an agent left elsewhere."""

    def __init__(self, task: Task, store: TemplateStore) -> None:
        self.task, self.template = task, store.get(task)

    def files(self, changes: dict[str, str | None], *, left: str = "", after: str = "") -> str:
        """Returns what Harbor reads as the reward, and what ``after`` prints."""
        patch = Patch(patch_of(changes).text + self.task.test_patch)
        with open_sandbox(self.template.spec) as sandbox:
            apply_patch(sandbox, patch)
            assert sandbox.run(f"{LAY} && {left or 'true'}").ok
            said = sandbox.run(f"{self.task.test_command} >/tmp/said 2>&1; {after or 'true'}")
            rewards = "cat /logs/verifier/reward.json || cat /logs/verifier/reward.txt"
            return sandbox.run(rewards).output + said.output


@pytest.fixture(scope="module")
def verifier(task: Task, store: TemplateStore) -> Verifier:
    return Verifier(task, store)


def cheat(code: str) -> dict[str, str | None]:
    """The program with the bug, which runs ``code`` where it is imported."""
    return {"cart.py": f"{code}\n{BASE['cart.py']}"}


LOST, WON = '{"reward": 0}', '{"reward": 1}'


def test_loaded_again_it_gives_the_same_verdicts(task: Task, store: TemplateStore) -> None:
    assert task.gold_patch == TASK.gold_patch
    verdicts = [
        grade(task, store.get(task), Patch(text)).resolved
        for text in (task.gold_patch, "", patch_of({"README.md": "# Another\n"}).text)
    ]
    assert verdicts == [True, False, False]


def test_hole_1_rewards_that_lay_there_before_do_not_count(verifier: Verifier) -> None:
    left = "echo 1 | tee /logs/verifier/reward.txt /logs/verifier/reward.json"
    after = "ls /logs/verifier"
    assert verifier.files({}, left=left, after=after) == f"{LOST}reward.json\n"


def test_hole_1_a_link_in_place_of_a_reward_is_not_followed(verifier: Verifier) -> None:
    left = "echo 1 > /tmp/mine && ln -s /tmp/mine /logs/verifier/reward.json"
    assert verifier.files({}, left=left, after="cat /tmp/mine") == f"{LOST}1\n"


def test_hole_2_a_json_reward_of_the_tested_code_is_replaced(verifier: Verifier) -> None:
    code = "open('/logs/verifier/reward.json', 'w').write('{\"reward\": 1}')"
    assert verifier.files(cheat(code)) == LOST


def test_hole_3_no_daemon_of_the_tested_code_outlives_the_script(verifier: Verifier) -> None:
    daemon = "import subprocess; subprocess.run(['setsid', '-f', 'sleep', '4242'])"
    after = "grep -lszx '[4]242' /proc/[0-9]*/cmdline"
    fixed = {"cart.py": f"{daemon}\n{FIXED}"}
    assert verifier.files(fixed, after=after) == WON
    assert verifier.files({}, after=f"setsid -f sleep 4242; {after}").startswith(f"{LOST}/proc")


@pytest.mark.parametrize(
    "code",
    [
        "import _pytest.reports as r; old = r.TestReport.from_item_and_call\n"
        "def passed(item, call): call.excinfo = None; return old(item, call)\n"
        "r.TestReport.from_item_and_call = passed",
        "import sys; sys.modules['pytest'].main = lambda *a, **k: 0",
        "import os; os._exit(0)",
    ],
    ids=["all-passed", "pytest-rebound", "exit-code"],
)
def test_hole_4_the_tested_code_cannot_rebind_the_grader(verifier: Verifier, code: str) -> None:
    assert verifier.files(cheat(code)) == LOST


def test_hole_5_files_planted_among_the_tests_are_not_used(verifier: Verifier) -> None:
    planted = "import os; os._exit(0)"
    modules = " ".join(f"/tests/{name}.py" for name in ("json", "conftest", "sitecustomize"))
    left = f"echo '{planted}' | tee {modules}"
    assert verifier.files({"cart.py": FIXED}, left=left) == WON
    changes = {"tests/test_cart.py": "", "tests/test_discounts.py": None, "conftest.py": planted}
    assert verifier.files({k: v for k, v in changes.items() if v is not None}) == LOST


def test_hole_6_modules_and_bytecode_of_the_tree_replace_no_tool(verifier: Verifier) -> None:
    names = ("pytest", "json", "sitecustomize", "_pytest/__init__")
    shadows = {f"{name}.py": "raise SystemExit(0)\n" for name in names}
    assert verifier.files({"cart.py": FIXED, **shadows}) == WON
    assert verifier.files(shadows) == LOST


def test_hole_6_bytecode_beside_the_source_does_not_run(verifier: Verifier) -> None:
    compile_as = (
        "import importlib.util as u, pathlib, py_compile; p = pathlib.Path('/tmp/other.py'); "
        "p.write_text({source!r}); py_compile.compile(str(p), u.cache_from_source('cart.py'), "
        "invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH, doraise=True)"
    )
    buggy = BASE["cart.py"]
    for source, other, total, reward in ((buggy, FIXED, 2, LOST), (FIXED, buggy, 8, WON)):
        planted = f"import cart; assert cart.total([5], 3) == {total}"  # the bytecode's answer
        left = f"python3 -c {shlex.quote(compile_as.format(source=other))}"
        left += f" && python3 -c {shlex.quote(planted)}"
        assert verifier.files({"cart.py": f"{source}\n"}, left=left) == reward


def test_hole_7_the_agents_image_holds_no_answer(folder: Path) -> None:
    files = [path for path in (folder / "environment").rglob("*") if path.is_file()]
    texts = "".join(path.read_text(encoding="utf-8") for path in files)
    assert BASE["cart.py"] in texts
    assert FIXED not in texts
    assert not any(path.name in ("test_discounts.py", ".git") for path in files)
    assert "test_discounts" not in texts
    manifest = (folder / "task.toml").read_text(encoding="utf-8")
    assert manifest.count('network_mode = "no-network"') == 2
    assert 'environment_mode = "separate"' in manifest


def test_hole_7_the_tested_code_cannot_read_what_is_negated(verifier: Verifier) -> None:
    code = "import os, pathlib; t = os.path.exists('/tests/spec.json'); "
    code += "pathlib.Path('/tmp/found').write_text(str(t))"
    assert verifier.files(cheat(code), after="cat /tmp/found") == f"{LOST}False"


@pytest.mark.parametrize(
    "code",
    ["import os; os.kill(os.getppid(), 9)", "import os; os.close(2); os.abort()", "1 / 0"],
    ids=["kills-the-supervisor", "aborts", "does-not-import"],
)
def test_hole_8_there_is_a_verdict_whatever_the_tested_code_does(
    verifier: Verifier, code: str
) -> None:
    assert verifier.files(cheat(code)) == LOST


def test_a_killed_script_counts_as_failed(task: Task, store: TemplateStore) -> None:
    code = "import contextlib, os, pathlib\n"
    code += "pathlib.Path('/logs/verifier/reward.json').write_text('1')\n"
    code += "for pid in {*range(2, 10_000)} - {os.getpid()}:\n"
    code += "    with contextlib.suppress(OSError):\n"
    code += "        os.kill(pid, 9)"
    patch = patch_of(cheat(code))
    verdict = grade(task, store.get(task), patch)
    assert (verdict.resolved, dict(verdict.fail_to_pass)) == (False, {"reward": "missing"})


def test_what_the_settings_say_is_of_this_task(folder: Path) -> None:
    settings = json.loads((folder / "tests/spec.json").read_text(encoding="utf-8"))
    assert settings["expected"].keys() == {*TASK.expected_tests}
    assert all(settings["expected"][test] for test in TASK.fail_to_pass)
    assert (folder / "tests/own/tests/test_discounts.py").read_text(encoding="utf-8") == (
        HIDDEN["tests/test_discounts.py"]
    )
