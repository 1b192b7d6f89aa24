"""One menu or many, here or elsewhere: the same actions give the same, and work is shared."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from episodes import SHELF, Closing, play, raising
from shelf_menu import RUN_TESTS, TRY, make, play_seeded

from coding_gym.errors import SandboxError
from coding_gym.repair import program
from coding_gym.synthesis.suite import TestSandbox

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def program_of_its_own(name: str) -> dict[str, Any]:
    """Returns the task with a program whose candidates nobody has found yet."""
    return SHELF | {"files": SHELF["files"] | {"NOTES": name}}


def test_the_same_actions_give_the_same_in_another_process(closing: Closing) -> None:
    code = (
        "import sys; sys.path[:0] = ['tests/support', 'tests/wrappers']\n"
        "import shelf_menu as t\n"
        "env = t.make(); print(t.play_seeded(env)); env.close()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    env = closing(make())
    here = play_seeded(env)
    assert play_seeded(env) == here
    assert other.communicate()[0].strip() == here


def test_threads_find_and_try_candidates_once(
    closing: Closing, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening = mock.Mock(wraps=TestSandbox)
    monkeypatch.setattr(program, "TestSandbox", opening)
    tasks = [program_of_its_own("threads")]

    def run(_: int) -> list[str]:
        env = closing(make(tasks=tasks))
        env.reset(seed=0)
        return play(env, [TRY, RUN_TESTS])

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(run, range(4))
    assert opening.call_count == 2  # found once and tried once for all four
    assert others == [first] * 3


def test_a_machinery_failure_masks_the_episode(
    closing: Closing, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = closing(make(tasks=[program_of_its_own("failure")]))
    with monkeypatch.context() as patch:
        patch.setattr(program, "TestSandbox", raising(SandboxError("no room left")))
        env.reset()
        _, reward, terminated, truncated, info = env.step(RUN_TESTS)
    assert (reward, terminated, truncated, info["mask_sample"]) == (0.0, False, True, True)
    assert (info["stop_reason"], info["error"]) == ("sandbox_error", "no room left")
    env.reset()
    assert env.action_masks()[TRY]
