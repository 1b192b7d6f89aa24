"""Infrastructure failures truncate episodes and raise no exceptions."""

import subprocess
from contextlib import suppress
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from unittest import mock

import pytest
from episodes import SUBMIT, MakeEnv, raising

from coding_gym.episode import config
from coding_gym.errors import EpisodeError, GradingError, SandboxError
from coding_gym.workspace import TemplateStore


def test_an_episode_without_a_sandbox_is_truncated_and_masked(
    make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail = mock.Mock(side_effect=SandboxError("out of memory"))
    monkeypatch.setattr(config, "open_sandbox", fail)
    env = make_env()
    _, info = env.reset()
    assert info["text"].startswith("area(3, 5)")
    assert fail.call_count == 2
    _, reward, terminated, truncated, info = env.step(SUBMIT)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["stop_reason"] == "sandbox_error"
    assert info["error"] == "out of memory"
    assert info["mask_sample"] is True
    assert info["resolved"] is False


@pytest.mark.slow
def test_a_full_cache_folder_masks_the_episode_and_is_named(
    make_env: MakeEnv, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(small_disk))
    monkeypatch.setattr(config, "_template_store", TemplateStore)
    partial_build = small_disk / "coding_gym" / "templates" / "key.0a1b.partial" / "tree"
    partial_build.mkdir(parents=True)  # as after a killed build
    filler = small_disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    env = make_env()
    env.reset()
    _, reward, terminated, truncated, info = env.step(SUBMIT)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["stop_reason"], info["mask_sample"]) == ("sandbox_error", True)
    assert str(small_disk) in info["error"]
    with pytest.raises(EpisodeError, match=str(small_disk)):
        env.step(SUBMIT)
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)  # noqa: S607
    env.reset()
    assert env.step(SUBMIT)[4]["error"] == ""
    assert list(small_disk.glob("coding_gym/*/*.partial")) == []


def test_a_second_attempt_can_open_the_sandbox(
    make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = chain([SandboxError("busy")], repeat(mock.DEFAULT))
    fail_once = mock.Mock(wraps=config.open_sandbox, side_effect=outcomes)
    monkeypatch.setattr(config, "open_sandbox", fail_once)
    env = make_env()
    env.reset()
    _, _, terminated, _, info = env.step(SUBMIT)
    assert terminated
    assert info["error"] == ""
    assert fail_once.call_count > 1


def test_a_failing_grader_masks_the_episode(
    make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "coding_gym.episode.episode.grade_patch", raising(GradingError("no report"))
    )
    env = make_env()
    env.reset()
    _, reward, terminated, truncated, info = env.step(SUBMIT)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["stop_reason"], info["error"]) == ("grading_error", "no report")
    assert info["mask_sample"] is True


@pytest.mark.parametrize(
    ("place", "failure"),
    [
        ("episode.episode.grade_patch", KeyboardInterrupt()),
        ("tools.toolset.Toolset.execute", ZeroDivisionError("a bug of a tool")),
    ],
)
def test_an_interrupted_turn_leaves_no_trace_and_the_next_step_names_it(
    place: str, failure: BaseException, make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = make_env(limits={"max_tokens": 8000})
    env.reset()
    usage = replace(env.episode.usage)
    monkeypatch.setattr(f"coding_gym.{place}", raising(failure))
    with pytest.raises(type(failure)):
        env.step(SUBMIT)
    assert (env.episode.usage, env.episode.turns) == (usage, ())
    info = env.step(SUBMIT)[4]
    assert (info["stop_reason"], info["mask_sample"]) == ("sandbox_error", True)
    assert type(failure).__name__ in info["error"]
    assert env.episode.trajectory().usage["tool_calls"] == 0
