"""The examples that need no trainer, and the files for clusters."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from episodes import run_command
from model_server import Answer, ChatServer, message

from coding_gym.run_folder import RunFolder
from coding_gym.tasks import load_tasks


@pytest.mark.slow
def test_best_of_six_branches_repairs_the_bug(run_example: Callable[..., list[str]]) -> None:
    lines = run_example("tree_search.py", "--branches", "6")
    assert "candidate 5: score +1.00" in lines
    assert "best is candidate 5 (+1.00); hidden tests: resolved" in lines
    assert "best of 6 from the snapshot: reward 1.40" in lines


(TASK,) = load_tasks("bundled", task_ids=["cronwise-working-days"])
PATH = "cronwise/expression.py"


@pytest.fixture
def predict(run_example: Callable[..., list[str]], tmp_path: Path) -> Callable[[str], Any]:
    """A function that returns the example's prediction for a reply, and the request."""

    def prediction_of(reply: str) -> tuple[str, dict[str, Any]]:
        out = tmp_path / "preds.jsonl"
        with ChatServer(lambda _: Answer(message(reply))) as server:
            options = ["--model", "tiny", "--base-url", server.base_url, "--task", TASK.task_id]
            run_example("direct_baseline.py", *options, "--out", str(out))
            (request,) = server.requests
        (line,) = out.read_text().splitlines()
        return json.loads(line)["model_patch"], request

    return prediction_of


@pytest.mark.slow
def test_patch_of_one_reply_is_graded(predict: Any, tmp_path: Path) -> None:
    reply = f"<think>```diff\n--- no\n```</think>\nThis:\n```diff\n{TASK.gold_patch}```\nDone."
    patch, request = predict(reply)
    assert patch == TASK.gold_patch
    assert "tools" not in request
    prompt = request["messages"][1]["content"]
    assert prompt.startswith(TASK.problem_statement)
    assert f"\n{PATH}\n" in prompt
    assert "self.any_day and self.any_weekday" in prompt
    run_command("grade", tmp_path / "preds.jsonl")
    (record,) = RunFolder.open(tmp_path / "preds.graded").trajectories()
    assert (record.resolved, record.model) == (True, "tiny")


@pytest.mark.slow
def test_reply_without_patch_is_an_empty_prediction(predict: Any) -> None:
    assert predict("I cannot say.")[0] == ""


@pytest.mark.slow
def test_partial_rollouts_keep_the_version_of_each_turn(
    run_example: Callable[..., list[str]],
) -> None:
    lines = run_example("partial_rollouts.py", "--episodes", "2", "--turns-per-round", "2")
    versions = [line.partition("versions ")[2] for line in lines]
    assert versions == ["['0', '0', '1', '1', '2']"] * 2


CLUSTER = Path(__file__).parents[1] / "examples" / "cluster"

# Both nodes are this machine; `srun` ignores its options.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
exec "$@"
"""
SCONTROL = """#!/bin/bash
[[ $1 == show && $2 == hostnames && $3 == "127.0.0.[1,1]" ]] || exit 1
printf '127.0.0.1\\n127.0.0.1\\n'
"""


@pytest.mark.trainer
def test_slurm_job_plays_a_run_on_its_nodes(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"srun": SRUN, "scontrol": SCONTROL}.items():
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    out = tmp_path / "run"
    variables = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "VENV": sys.prefix,
        "OUT": str(out),
        "LOCAL_DISK": str(tmp_path),
        "RAY_agent_register_timeout_ms": "120000",  # as in tests/extras
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_JOB_NODELIST": "127.0.0.[1,1]",
        "SLURM_CPUS_PER_TASK": "2",
        "SLURM_SUBMIT_DIR": str(tmp_path),
    }
    script = ["bash", CLUSTER / "slurm.sbatch", "--num-tasks", "1", "-k", "2"]
    with (tmp_path / "log").open("wb") as log:
        job = subprocess.Popen(
            script,
            env=os.environ | variables,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        code = job.wait(timeout=400)
    finally:
        os.killpg(job.pid, signal.SIGTERM)  # Slurm also ends the steps of a job
    assert code == 0, (tmp_path / "log").read_text()
    assert len(list((out / "attempts").iterdir())) == 2
