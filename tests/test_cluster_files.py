"""The files for clusters fit together, and the Slurm job plays a run on two nodes."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "cluster"

# Two nodes that are this machine; the real `srun` takes options of these names.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
exec "$@"
"""
SCONTROL = """#!/bin/bash
[[ $1 == show && $2 == hostnames && $3 == "127.0.0.[1,1]" ]] || exit 1
printf '127.0.0.1\\n127.0.0.1\\n'
"""


def manifest() -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")))


def test_workers_have_what_the_namespace_backend_needs() -> None:
    _, head, worker = manifest()
    pod = worker["spec"]["template"]["spec"]
    assert pod["hostUsers"] is False
    context = pod["containers"][0]["securityContext"]
    assert context["procMount"] == "Unmasked"
    assert context["seccompProfile"] == context["appArmorProfile"] == {"type": "Unconfined"}
    assert "securityContext" not in head["spec"]["template"]["spec"]["containers"][0]


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
    script = ["bash", FOLDER / "slurm.sbatch", "--num-tasks", "1", "-k", "2"]
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
        os.killpg(job.pid, signal.SIGTERM)  # Slurm ends the steps of a job with it
    assert code == 0, (tmp_path / "log").read_text()
    assert len(list((out / "attempts").iterdir())) == 2
