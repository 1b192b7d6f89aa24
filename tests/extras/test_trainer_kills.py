"""A trainer that is killed leaves nothing; a sandbox that is killed costs one sample."""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checks.debug import first_pid
from episodes import Closing
from processes import descendants, wait_gone

pytestmark = pytest.mark.trainer

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "stable_baselines3": ["examples/train_sb3.py", "--envs", "4"],
    "ray": ["examples/train_rllib.py", "--envs", "4"],
    "trl": ["examples/train_trl.py", "--tiny", "--steps", "1000", "--group", "4"],
}
# Of these the package's own driver plays in their tests, one episode or more at a time.
ADAPTERS = ("areno", "gem", "nemo_gym", "openenv", "rllm", "skyrl_gym", "tinker_cookbook")
ADAPTERS += ("verifiers", "verl")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("trainer", COMMANDS)
def test_killing_a_trainer_leaves_nothing(trainer: str) -> None:
    pytest.importorskip(trainer)
    with tempfile.TemporaryDirectory() as folder:  # Ray's sockets need a short path
        assert _left_by_killing(COMMANDS[trainer], 4, folder) == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("package", ADAPTERS)
def test_killing_the_driver_of_an_adapter_leaves_nothing(package: str) -> None:
    pytest.importorskip(package)
    name = {"skyrl_gym": "skyrl", "tinker_cookbook": "tinker"}.get(package, package)
    command = ["-m", "pytest", "-q", f"tests/extras/test_{name}.py"]
    with tempfile.TemporaryDirectory() as folder:
        assert _left_by_killing(command, 2, folder) == []


def _left_by_killing(arguments: list[str], num_sandboxes: int, folder: str) -> list[int | str]:
    """Kills a trainer while it has sandboxes; returns the processes and files that are left."""
    training = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": folder, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with training:
        while _num_sandboxes(training.pid) < num_sandboxes:
            with suppress(subprocess.TimeoutExpired):
                training.wait(0.05)
                raise AssertionError("it ended before it was killed")
        processes = descendants(training.pid)
        training.kill()
    running = wait_gone(processes, 30)
    agents = [pid for pid in running if _command(pid).startswith("ray::")]
    for pid in agents:  # Ray's own stay for a while
        os.kill(pid, signal.SIGKILL)
    files = [str(path) for path in Path(folder).glob("coding_gym*")]
    return [*(pid for pid in running if pid not in agents), *files]


def _num_sandboxes(pid: int) -> int:
    """Returns how many processes are below those that start sandboxes, each of which is two."""
    zygotes = [one for one in descendants(pid) if "coding_gym/sandbox" in _command(one)]
    return max((len(descendants(one)) - 1 for one in zygotes), default=0)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:  # it has ended
        return ""


@pytest.mark.usefixtures("one_thread")
def test_a_killed_sandbox_costs_one_masked_sample(
    tiny_row: dict[str, Any], closing: Closing
) -> None:
    sb3_contrib = pytest.importorskip("sb3_contrib")
    from menu_policy import MenuPolicy
    from stable_baselines3.common.callbacks import BaseCallback

    from coding_gym.adapters.sb3 import make_vec_env

    class Kill(BaseCallback):
        """Kills the sandbox of the first slot at one step; keeps how episodes ended."""

        def __init__(self) -> None:
            super().__init__()
            self.masked: list[bool] = []

        def _on_step(self) -> bool:
            if self.n_calls == 8:
                episode = self.training_env.get_attr("unwrapped", [0])[0].episode
                with episode.access() as context:
                    os.kill(first_pid(context.sandbox), signal.SIGKILL)
            infos = self.locals["infos"]
            self.masked += [info["mask_sample"] for info in infos if "grade" in info]
            return True

    menu = {"name": "MenuActions", "kwargs": {"num_candidates": 8}}
    env = closing(make_vec_env(2, seed=0, wrappers=[menu], tasks=[tiny_row], max_turns=6))
    kill = Kill()
    model = sb3_contrib.MaskablePPO(MenuPolicy, env, n_steps=32, batch_size=64, device="cpu")
    model.learn(128, callback=kill)
    assert len(kill.masked) > 4
    assert np.sum(kill.masked) == 1
