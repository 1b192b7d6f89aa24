"""Harbor's own trials, agents and linter on exported tasks, in our sandboxes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from grading_fixtures import BASE, TASK
from platformdirs import user_cache_path

from coding_gym.tasks.harbor_export import harbor_name, write_harbor_task
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.trainer

pytest.importorskip("harbor", reason="needs Python 3.12 and pip install 'coding-gym[harbor]'")

PROVIDER = "coding_gym.adapters.harbor:SandboxProvider"
# It says that all is well, and kills the grader.
KILLER = """\
import contextlib, os, pathlib
pathlib.Path("/logs/verifier/reward.json").write_text("1")
for pid in {*range(2, 10_000)} - {os.getpid()}:
    with contextlib.suppress(OSError):
        os.kill(pid, 9)
"""


@pytest.fixture
def tasks(store: TemplateStore, tmp_path: Path) -> Path:
    write_harbor_task(TASK, store.get(TASK), tmp_path / "tasks" / harbor_name(TASK))
    return tmp_path / "tasks"


def trial(tasks: Path, agent: str) -> dict[str, object]:
    """The result of the one trial of a job."""
    jobs = tasks.parent / f"jobs-{agent}"
    cache = user_cache_path("coding_gym")
    command = [Path(sys.executable).with_name("harbor"), "run", "-p", tasks, "-a", agent]
    command += ["--ek", f"cache={cache}"]
    home = {"HOME": str(tasks.parent), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [*command, "--env", PROVIDER, "-o", jobs],
        env={**os.environ, **home},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = jobs.glob("*/*/result.json")
    return dict(json.loads(result.read_text(encoding="utf-8")))


def rewards(result: dict[str, object]) -> object:
    verdict = result["verifier_result"]
    return verdict["rewards"] if isinstance(verdict, dict) else None


def test_the_oracle_is_rewarded_and_the_empty_control_is_not(tasks: Path) -> None:
    assert rewards(trial(tasks, "oracle")) == {"reward": 1}
    assert rewards(trial(tasks, "nop")) == {"reward": 0}


def test_a_killed_verifier_gives_an_error_and_no_reward(tasks: Path) -> None:
    files = tasks / harbor_name(TASK) / "solution/files"
    (files / "cart.py").write_text(f"{KILLER}\n{BASE['cart.py']}", encoding="utf-8")
    result = trial(tasks, "oracle")
    assert rewards(result) is None
    error = result["exception_info"]
    assert isinstance(error, dict)
    assert error["exception_type"] == "RewardFileNotFoundError"


def test_what_a_sandbox_cannot_do_is_refused_before_the_agent_starts(tasks: Path) -> None:
    dockerfile = tasks / harbor_name(TASK) / "environment/Dockerfile"
    dockerfile.write_text("FROM alpine:3\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="line 1: FROM 'alpine:3': without a daemon"):
        trial(tasks, "nop")


def test_harbor_itself_accepts_an_exported_task(tasks: Path) -> None:
    from harbor.models.task.task import Task

    folder = tasks / harbor_name(TASK)
    task = Task(folder)
    assert task.name == f"coding-gym/{harbor_name(TASK)}"
    assert TASK.problem_statement in task.instruction
    lint = pytest.importorskip("harbor.lint.task", reason="Harbor 0.25 brings its linter")
    assert {str(finding.rule) for finding in lint.lint_task(folder)} == {"unpinned-image"}
