"""Episodes from plain arguments."""

import json
from pathlib import Path
from typing import Any

import pytest
from moves import shell

from coding_gym.envs import CodingRepairEnv
from coding_gym.episode import EpisodeFactory, Limits
from coding_gym.errors import InvalidTaskError, UnknownNameError
from coding_gym.tasks import opening


def test_episodes_are_made_from_json(tiny_row: dict[str, Any]) -> None:
    limits = {"max_tool_calls": 2, "warn_tool_calls": True}
    config = {"tasks": [tiny_row], "limits": limits, "sandbox": "auto"}
    factory = EpisodeFactory.from_config(**json.loads(json.dumps(config)))
    assert factory.limits == Limits(max_tool_calls=2, warn_tool_calls=True)
    (task,) = factory.tasks
    episode = factory.create(task)
    episode.start()
    assert episode.step(shell("echo on")).text.endswith("on")
    assert episode.info()["budget"]["tool_calls"] == 1
    episode.close()
    with pytest.raises(UnknownNameError, match="no grading is called 'hiden'; did you mean"):
        EpisodeFactory.from_config(tasks=[tiny_row], grading="hiden")


def test_a_source_is_read_once_and_shared_until_it_changes(
    tiny_row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    read = opening.open_source
    monkeypatch.setattr(opening, "open_source", lambda *given: reads.append(given) or read(*given))
    tiny_row = tiny_row | {"problem_statement": str(tmp_path)}  # no other test has read it
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(tiny_row), encoding="utf-8")
    for source in (str(path), [tiny_row]):
        reads.clear()
        factories = [EpisodeFactory.from_config(tasks=source) for _ in range(3)]
        env = CodingRepairEnv(tasks=source, task_ids=[tiny_row["instance_id"]])
        assert len(reads) == 1
        assert factories[0].tasks[0] is factories[2].tasks[0]
        assert env.reset()[1]["task_id"] == factories[0].tasks[0].task_id
        env.close()
    path.write_text(json.dumps(tiny_row | {"FAIL_TO_PASS": [], "PASS_TO_PASS": []}))
    with pytest.raises(InvalidTaskError, match="names no test"):
        EpisodeFactory.from_config(tasks=str(path))
