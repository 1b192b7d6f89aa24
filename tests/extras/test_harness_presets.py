"""Each preset, installed from its registry, repairs a task; the model's replies are scripted."""

from pathlib import Path

import pytest
from model_server import gold_model

from coding_gym.agents.chat import ChatAgent
from coding_gym.agents.harness import HarnessPlayer, get_harness, harness_names
from coding_gym.agents.model_client import OpenAIClient
from coding_gym.evaluation import evaluate
from coding_gym.tasks import load_tasks

TASK = "ledgerline-month-overlap"

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("name", harness_names())
def test_preset_repairs_a_task(name: str, tmp_path: Path) -> None:
    (task,) = load_tasks("bundled", task_ids=[TASK])
    with gold_model(task) as server:
        client = OpenAIClient(server.base_url, max_retries=0)
        player = HarnessPlayer(get_harness(name), ChatAgent(client, "tiny"))
        folder = evaluate(tmp_path / "run", player, tasks=[task])
    (record,) = [*folder.trajectories(), *folder.errors()]
    assert (record.error, record.stop_reason, record.resolved) == ("", "submitted", True)
    assert record.usage["model_calls"] == len(server.requests) == 2
    assert len(record.turns[0].calls) == 1
