"""A real model on llama.cpp's server; sampled tokens are recorded unchanged."""

import math
import runpy
from pathlib import Path
from typing import Any

import pytest

from coding_gym.agents.built_in import get_player
from coding_gym.agents.player import Player
from coding_gym.calls import ModelCall
from coding_gym.evaluation import evaluate, report

xllamacpp = pytest.importorskip("xllamacpp")

pytestmark = [pytest.mark.trainer, pytest.mark.nightly]

EXAMPLE = Path(__file__).parents[2] / "examples" / "real_model.py"
END = 2  # <|im_end|> of SmolLM2
VOCABULARY = 49_152
MAX_TOKENS = 48
CONTEXT = 8192


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    example = runpy.run_path(str(EXAMPLE))
    file: Path = example["extract"](example["download"](folder), folder)
    return file


@pytest.fixture(scope="module")
def server(model: Path) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.n_ctx, parameters.n_parallel = CONTEXT, 1
    parameters.cpuparams.n_threads = 1
    parameters.warmup, parameters.use_jinja = False, True
    return xllamacpp.Server(parameters)  # stops when nothing refers to it


def agent(server: Any, **sampling: Any) -> Player:
    base_url = f"{server.listening_address}/v1"
    return get_player("chat", model="smol", base_url=base_url, sampling=sampling)


def test_sampled_ids_and_log_probabilities_are_recorded(server: Any, tmp_path: Path) -> None:
    player = agent(server, max_tokens=MAX_TOKENS, temperature=0.7)
    episode = {"max_turns": 2, "toolset": "compact", "tool_format": "json"}
    tasks = {"source": "bundled", "limit": 1}
    folder = evaluate(tmp_path / "run", player, tasks=tasks, episode=episode)
    (record,) = folder.trajectories()
    assert len(record.turns) == 2
    for turn in record.turns:
        call = turn.model_call
        assert isinstance(call, ModelCall)
        assert 0 < len(turn.token_ids) == call.completion_tokens <= MAX_TOKENS
        assert all(0 <= number < VOCABULARY for number in turn.token_ids)
        assert turn.logprobs is not None
        assert all(-math.inf < value <= 0 for value in turn.logprobs)
        assert (turn.token_ids[-1] == END) == (call.finish_reason != "length")
    assert report(folder).num_attempts == 1


def test_a_prompt_longer_than_the_context_ends_the_episode(server: Any, tmp_path: Path) -> None:
    player = agent(server, max_tokens=8)
    problem, files = "word " * 2 * CONTEXT, {"notes.txt": "nothing\n"}
    row = {"instance_id": "long", "problem_statement": problem, "files": files}
    folder = evaluate(tmp_path / "run", player, tasks=[row], episode={"grading": "none"})
    (record,) = folder.trajectories()
    assert (record.stop_reason, record.error) == ("context", "")
