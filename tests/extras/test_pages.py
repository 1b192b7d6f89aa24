"""What the trainers' pages show runs, with a tiny model or a script in the model's place."""

import gc
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from episodes import SUBMIT
from model_server import Answer, ChatServer, message
from pages import SERVER, TRAINERS, run_page, skip_unless_installed

from coding_gym.episode import EpisodeFactory
from coding_gym.tasks import load_tasks

# What the packages warn of is theirs.
pytestmark = [pytest.mark.trainer, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]

QWEN = "Qwen/Qwen3-0.6B"
ON_CPU = {"num_generations=8": "num_generations=8, use_cpu=True, bf16=False, report_to='none'"}
DONE = {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}


@pytest.fixture(autouse=True)
def elsewhere(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Files go to a folder of the test; nothing is looked up on a network or announced.

    Connections that the packages leave open are closed with the test, and not after the last one.
    """
    page = request.node.name.removeprefix("test_").replace("_", "-") + ".md"
    if page in TRAINERS:
        skip_unless_installed(page)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setenv("MSWEA_SILENT_STARTUP", "1")
    monkeypatch.setenv("MSWEA_GLOBAL_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("RLLM_HOME", str(tmp_path))
    yield
    if litellm := sys.modules.get("litellm"):  # it keeps its clients
        litellm.in_memory_llm_clients_cache.flush_cache()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A model that ends the episode at once, by a reply without a call or by mini's command."""

    def answer(body: dict[str, Any]) -> Answer:
        is_mini = any(each["function"]["name"] == "bash" for each in body.get("tools", ()))
        calls = {"bash": DONE} if is_mini else None
        is_first = len(body["messages"]) == 1
        text = "" if is_mini else "```bash\necho 1 > made\n```" if is_first else "Done."
        return Answer(message(text, calls, ids=([1, 2], [3])))

    with ChatServer(answer) as running:
        yield running


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a model with random weights."""
    pytest.importorskip("trl")
    from tiny_qwen import build_model, train_tokenizer

    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = train_tokenizer(["any text"])
    tokenizer.save_pretrained(folder)
    build_model(tokenizer).save_pretrained(folder)
    return str(folder)


def test_bridges(server: ChatServer) -> None:
    page = run_page("bridges.md", {}, {SERVER: server.base_url}, slice(1))
    assert page["episode"].grade is not None
    factory = EpisodeFactory.from_config(task_ids=["ledgerline-month-overlap"])
    with closing(factory.create(factory.tasks[0])) as episode:
        episode.start()
        given = {"episode": episode}
        page = run_page("bridges.md", given, {SERVER: server.base_url}, slice(1, None))
    assert page["agent"].n_calls == 1


def test_capture(server: ChatServer, tiny: str) -> None:
    samples: list[tuple[dict[str, Any], float]] = []
    replaced = {SERVER: server.base_url, QWEN: tiny, **ON_CPU}
    page = run_page("capture.md", {"train": lambda *one: samples.append(one)}, replaced)
    # The loop asks again after a reply without a call.
    assert {tuple(sample["completion_ids"]) for sample, _ in samples} == {(3,)}
    assert {reward for _, reward in samples} == {0.0}
    assert len(list(page["folder"].trajectories())) == len(load_tasks("bundled"))
    assert len(page["trainer"].train_dataset) == len(load_tasks("bundled"))
    player = page["CapturePlayer"](
        page["play_by_hand"], page["OpenAIClient"](server.base_url), model="my-model"
    )
    one = load_tasks(task_ids=["ledgerline-month-overlap"])
    folder = page["evaluate"](player, "runs/by_hand", tasks=one)
    (record,) = folder.trajectories()
    assert ("+++ b/made" in record.patch, record.usage["model_calls"]) == (True, 2)


def test_trl(tiny: str) -> None:
    page = run_page("trl.md", {}, {QWEN: tiny, **ON_CPU})
    assert len(page["trainer"].train_dataset) == len(load_tasks(split="train"))


@pytest.mark.usefixtures("one_thread")
def test_stable_baselines3() -> None:
    small = {'"n_steps": 64, "batch_size": 256': '"n_steps": 8, "batch_size": 8'}
    small |= {"    4,\n": "    1,\n", "learn(5_000)": "learn(8)"}
    page = run_page("stable-baselines3.md", {}, small)
    assert page["model"].num_timesteps == 8
    page["env"].close()


def test_skyrl() -> None:
    from pyarrow.parquet import read_metadata

    run_page("skyrl.md", {})
    assert read_metadata("train.parquet").num_rows == len(load_tasks(split="train"))


def test_verl() -> None:
    from pyarrow.parquet import read_metadata

    run_page("verl.md", {})
    assert read_metadata("train.parquet").num_rows == len(load_tasks(split="train"))


def test_gem() -> None:
    page = run_page("gem.md", {})
    assert (page["reward"], page["terminated"], page["info"]["turn"]) == (0.0, False, 1)
    assert page["play"](page["env"], lambda _: SUBMIT) == [(SUBMIT, 0.0)]


def test_openenv(monkeypatch: pytest.MonkeyPatch) -> None:
    from serving import serve_app

    apps: list[Any] = []
    monkeypatch.setattr("uvicorn.run", lambda app, **_: apps.append(app))
    run_page("openenv.md", {}, only=slice(1))
    with serve_app(apps[0]) as url:
        page = run_page("openenv.md", {}, {"http://127.0.0.1:8000": url}, slice(1, None))
    assert page["result"].done is False


def test_nemo_gym() -> None:
    run_page("nemo-gym.md", {})
    lines = Path("train.jsonl").read_text(encoding="utf-8").splitlines()
    assert len([json.loads(line) for line in lines]) == len(load_tasks(split="train"))


def test_rllm() -> None:
    page = run_page("rllm.md", {})
    rows = page["DatasetRegistry"].load_dataset("coding_gym", "train")
    assert len(rows) == len(load_tasks(split="train"))


def test_tinker() -> None:
    from tinker_cookbook.completers import TokensWithLogprobs
    from tiny_qwen import CHATML, train_tokenizer

    tokenizer = train_tokenizer(["any text"], chat_template=CHATML)

    async def policy(_: Any, stop: Any, **__: Any) -> TokensWithLogprobs:
        ids = [*tokenizer.encode("Done."), *stop]
        return TokensWithLogprobs(tokens=ids, maybe_logprobs=[-0.5] * len(ids))

    replaced = {'get_tokenizer("Qwen/Qwen3-4B-Instruct-2507")': "tokenizer", "size=8": "size=2"}
    page = run_page("tinker.md", {"tokenizer": tokenizer, "policy": policy}, replaced)
    assert page["group"].get_total_rewards() == [0.0, 0.0]


def test_verifiers(server: ChatServer) -> None:
    page = run_page("verifiers.md", {}, {SERVER: server.base_url})
    assert len(page["traces"]) == len(load_tasks(split="train"))
    assert not any(trace.errors for trace in page["traces"])


def test_every_page_of_a_trainer_has_a_test() -> None:
    tested = {name.removeprefix("test_").replace("_", "-") + ".md" for name in globals()}
    assert TRAINERS - tested == {"rllib.md"}  # beside RLlib's other tests, in their session of Ray
