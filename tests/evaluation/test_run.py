"""Runs against a scripted server: errors have classes, and each attempt counts once."""

import math
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from model_server import Answer, ChatServer, by_turn, message

from coding_gym.agents.chat import ChatAgent, Sampling
from coding_gym.agents.model_client import OpenAIClient
from coding_gym.agents.model_reply import Prices
from coding_gym.episode.config import task_digest
from coding_gym.errors import CodingGymError, InvalidArgumentError
from coding_gym.evaluation.evaluate import evaluate
from coding_gym.rollout import RunFolder
from coding_gym.rollout.run_folder import Outcome
from coding_gym.tasks import load_tasks

TASKS = load_tasks("bundled", limit=3)
LOOK = message(calls={"shell": {"cmd": "ls"}})
SUBMIT = message(calls={"submit": {}})
OF_LLAMA_CPP = "request (9 tokens) exceeds the available context size (8 tokens), try increasing it"


def replies(body: dict[str, Any]) -> int:
    return sum(entry["role"] == "assistant" for entry in body["messages"])


look_then_submit = by_turn(LOOK, SUBMIT)


def chat(server: ChatServer, **options: Any) -> ChatAgent:
    client = OpenAIClient(base_url=server.base_url, **{"max_retries": 2, **options})
    return ChatAgent(client, "tiny", Sampling(temperature=0.5))


def played(answer: Any, out: Path, client: Any = (), **options: Any) -> RunFolder:
    """Runs `evaluate`, by default on one task, with a server that sends ``answer``."""
    with ChatServer(answer) as server:
        return evaluate(out, chat(server, **dict(client)), **{"tasks": TASKS[:1]} | options)


def test_records_have_agent_model_and_usage(tmp_path: Path) -> None:
    folder = played(look_then_submit, tmp_path / "run", {"prices": Prices(input=1e6, output=2e6)})
    (record,) = folder.trajectories()
    assert (record.agent, record.model, record.attempt) == ("chat", "tiny", 0)
    assert record.run_id == folder.config["run_id"]
    assert record.run_id.startswith("run-")
    assert record.usage["prompt_tokens"] == 20
    assert record.usage["completion_tokens"] == 10
    assert record.cost == pytest.approx(2 * (10 + 2 * 5))
    reasons = [turn.model_call.finish_reason for turn in record.turns if turn.model_call]
    assert reasons == ["tool_calls"] * 2
    assert record.stop_reason == "submitted"
    assert record.num_prefix_breaks is None


def refuse(status: int, text: str = "no") -> Callable[[dict[str, Any]], Answer]:
    return lambda _: Answer({"error": {"message": text}}, status, headers={"retry-after-ms": "1"})


def test_busy_servers_and_malformed_calls_do_not_end_the_episode(tmp_path: Path) -> None:
    broken = message(calls={"shell": {}})
    broken["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = '{"cmd": '
    answers = iter([refuse(429), refuse(500), lambda _: Answer(broken), look_then_submit])
    (record,) = played(lambda body: next(answers)(body), tmp_path / "run").trajectories()
    assert (record.stop_reason, record.usage["num_retries"]) == ("submitted", 2)
    assert record.turns[0].calls[0].error


def test_a_prompt_that_spends_the_token_limit_asks_for_one_token(tmp_path: Path) -> None:
    requests: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Answer:
        requests.append(body)
        return Answer(LOOK)

    limits = {"max_tokens": 100}
    (record,) = played(answer, tmp_path / "run", episode={"limits": limits}).trajectories()
    assert ([body["max_tokens"] for body in requests], record.stop_reason) == ([1], "max_tokens")


@pytest.mark.parametrize(
    ("answer", "error_class"),
    [
        (refuse(401), "refused"),
        (refuse(404), "refused"),
        (refuse(500), "model"),
        (lambda _: Answer({"choices": []}), "model"),
        (lambda _: Answer(message("no", finish_reason="content_filter")), "refused"),
        (lambda _: Answer(LOOK, delay_s=60), "timeout"),
    ],
)
def test_server_fault_is_an_error_of_its_class(
    answer: Callable[[dict[str, Any]], Answer], error_class: str, tmp_path: Path
) -> None:
    timeout_s = 3 if error_class == "timeout" else 120  # a loaded machine replies slowly
    folder = played(answer, tmp_path / "run", {"timeout_s": timeout_s, "max_retries": 1})
    assert list(folder.trajectories()) == []
    (record,) = folder.errors()
    assert record.error_class == error_class
    assert record.error
    assert not record.resolved


def test_records_hold_no_keys_and_no_folders_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise OSError(f"{Path.home()}/models")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    (record,) = played(refuse(401, "bad key sk-secret"), tmp_path / "run").errors()
    assert "bad key [key]" in record.error
    (record,) = played(lambda _: Answer(b"." * 190 + b"sk-secret"), tmp_path / "cut").errors()
    assert "sk-" not in record.error
    monkeypatch.setenv("OPENAI_API_KEY", "text")  # the message contains the key as a word
    full = refuse(400, "bad key text; context length")
    (record,) = played(full, tmp_path / "short").trajectories()
    assert "bad key [key]" in record.turns[-1].action
    monkeypatch.setattr(ChatAgent, "play", fail)
    (record,) = played(look_then_submit, tmp_path / "broken").errors()
    assert record.error.endswith("OSError: ~/models\n")
    assert 'File "/' not in record.error


@pytest.mark.parametrize(
    ("num_replies", "status", "error"),
    [
        (0, 400, {"error": "BadRequest", "message": "maximum context length is 8"}),
        (1, 500, {"error": {"code": 500, "message": OF_LLAMA_CPP}}),
    ],
)
def test_too_long_prompt_ends_the_episode_with_a_grade(
    num_replies: int, status: int, error: dict[str, Any], tmp_path: Path
) -> None:
    def full(body: dict[str, Any]) -> Answer:
        return Answer(error, status) if replies(body) == num_replies else Answer(LOOK)

    (record,) = played(full, tmp_path / "run", {"max_retries": 0}).trajectories()
    assert record.stop_reason == "context"
    assert record.grade is not None
    assert not record.resolved


def as_sglang(data: dict[str, Any], request: dict[str, Any], *, has_ids: bool) -> dict[str, Any]:
    """Moves the ids of a reply to SGLang's fields, if the request asks for these."""
    (choice,) = data["choices"]
    ids, prompt = choice.pop("token_ids"), data.pop("prompt_token_ids")
    if request["return_prompt_token_ids"]:
        choice["prompt_token_ids"] = prompt
    if has_ids and request["return_token_ids"]:
        choice["response_token_ids"] = ids
    elif request["return_meta_info"]:
        choice["meta_info"] = {"output_token_logprobs": [[-0.5, item, None] for item in ids]}
    return data


def as_llama_cpp(data: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """Moves the ids of a reply to llama.cpp's field; the ids of the prompt stay in place."""
    (choice,) = data["choices"]
    assert request["top_logprobs"] == 1
    for entry, number in zip(choice["logprobs"]["content"], choice.pop("token_ids"), strict=True):
        entry["id"] = number
    return data


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(lambda data, _: data, id="vLLM"),
        pytest.param(as_llama_cpp, id="llama.cpp"),
        pytest.param(partial(as_sglang, has_ids=True), id="SGLang"),
        pytest.param(partial(as_sglang, has_ids=False), id="SGLang 0.5.13"),
    ],
)
def test_token_ids_are_kept_and_prefix_breaks_counted(
    shape: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    ids = [([1, 2, 3], [4, 5]), ([1, 2, 3, 4, 5, 6], [7]), ([1, 2, 9], [8])]
    calls = [{"shell": {"cmd": "ls"}}, {"shell": {"cmd": "pwd"}}, {"submit": {}}]

    def answer(body: dict[str, Any]) -> Answer:
        number = replies(body)
        return Answer(shape(message(calls=calls[number], ids=ids[number]), body))

    (record,) = played(answer, tmp_path / "run").trajectories()
    assert [turn.token_ids for turn in record.turns] == [(4, 5), (7,), (8,)]
    assert all(turn.exact and turn.logprobs is not None for turn in record.turns)
    calls_of_turns = [turn.model_call for turn in record.turns if turn.model_call]
    prompts = [(call.prefix_length, call.prompt_ids) for call in calls_of_turns]
    assert prompts == [(0, (1, 2, 3)), (5, (6,)), (2, (9,))]
    assert record.num_prefix_breaks == 1


def test_errors_are_played_again_and_verdicts_kept(tmp_path: Path) -> None:
    first = TASKS[0].problem_statement

    def refuse_first(body: dict[str, Any]) -> Answer:
        if body["messages"][1]["content"] == first:
            return refuse(401)(body)
        return look_then_submit(body)

    folder = played(refuse_first, tmp_path / "run", tasks=TASKS, attempts=2)
    before = {record.started_at for record in folder.trajectories()}
    assert len(list(folder.errors())) == 2
    folder = played(look_then_submit, tmp_path / "run", tasks=TASKS, resume=True)
    after = list(folder.trajectories())
    assert sorted((r.task_id, r.attempt) for r in after) == sorted(
        (task.task_id, attempt) for task in TASKS for attempt in range(2)
    )
    assert before <= {record.started_at for record in after}
    assert list(folder.errors()) == []


def test_resume_needs_only_the_folder(tmp_path: Path) -> None:
    player = {"agent": "random"}
    episode = {"max_turns": 2, "task_ids": [task.task_id for task in TASKS[:2]]}
    folder = evaluate(tmp_path / "run", player, episode=episode, seed=7)
    first, second = folder.trajectories()
    (tmp_path / "run/attempts" / f"{second.task_id}.0.json").unlink()
    folder = evaluate(tmp_path / "run", resume=True, attempts=2)
    records = {(item.task_id, item.attempt): item for item in folder.trajectories()}
    assert len(records) == 4
    assert records[first.task_id, 0].started_at == first.started_at
    repeated = records[second.task_id, 0]
    assert repeated.seed == second.seed
    assert [turn.action for turn in repeated.turns] == [turn.action for turn in second.turns]
    assert RunFolder.open(tmp_path / "run").config["attempts"] == 2


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"player": "gold"}, "name"),
        ({"player": {"agent": "gold"}}, "name"),
        ({"episode": {"max_turns": 3}}, "episode"),
        ({"seed": 1}, "seed"),
        ({"attempts": 1}, "attempts"),
        ({"tasks": TASKS[1:2]}, "tasks"),
        ({"tasks": "bundled"}, "tasks"),
        ({"tasks": None}, "tasks"),  # config.json does not contain the list
        *(
            ({"tasks": [replace(TASKS[0], **{name: "3.9"})]}, "tasks")
            for name in ("problem_statement", "interpreter", "image", "install_commands")
        ),
    ],
)
def test_resume_refuses_changed_settings(
    changes: dict[str, Any], field: str, tmp_path: Path
) -> None:
    evaluate(tmp_path / "run", "noop", tasks=TASKS[:1], attempts=np.int64(2), seed=np.int64(3))
    with pytest.raises(InvalidArgumentError, match=field):
        evaluate(tmp_path / "run", resume=True, **{"tasks": TASKS[:1]} | changes)


def test_resume_refuses_a_changed_script(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text('"look"\n')
    evaluate(tmp_path / "run", str(script), tasks=TASKS[:1])
    evaluate(tmp_path / "run", tasks=TASKS[:1], resume=True)
    script.write_text('"another"\n')
    with pytest.raises(InvalidArgumentError, match="actions"):
        evaluate(tmp_path / "run", tasks=TASKS[:1], attempts=2, resume=True)


def test_resume_accepts_tasks_of_another_installation(tmp_path: Path) -> None:
    evaluate(tmp_path / "run", "noop", tasks=TASKS[:1])
    moved = replace(TASKS[0], tree=replace(TASKS[0].tree, folder=str(tmp_path)))
    evaluate(tmp_path / "run", tasks=[moved], resume=True)
    images = [f"{folder}/astropy:latest" for folder in ("a", "b", "/c", "/d")]  # "/": image files
    assert len({task_digest(replace(TASKS[0], image=image)) for image in images}) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"player": None}, "player"),
        ({"player": {"agnt": "noop"}}, "agent"),
        ({"player": {"model": "tiny"}}, "agent"),
        ({"tasks": {"srouce": "bundled"}}, "source"),
        ({"tasks": {"needs_tests": True}}, "needs_tests"),
        ({"episode": {"tasks": "bundled"}}, "tasks"),
        ({"episode": {"max_turn": 3}}, "max_turns"),
        ({"tasks": []}, "one task"),  # an empty list does not mean all tasks
        ({"max_cost": "5"}, "max_cost"),
        ({"max_cost": math.nan}, "max_cost"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"seed": "3"}, "seed"),
        ({"images_window": 0}, "images_window"),
        ({"images_window": 2, "ray": "auto"}, "images_window"),
        ({"episode": {"command_timeout_s": np.float32(3)}}, "JSON"),
    ],
)
def test_invalid_arguments_leave_no_folder(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(CodingGymError, match=message):
        evaluate(tmp_path / "run", **{"player": "noop", "tasks": TASKS[:1]} | arguments)
    assert not (tmp_path / "run").exists()


def test_resume_records_versions_that_differ(tmp_path: Path) -> None:
    folder = evaluate(tmp_path / "run", "gold", tasks=TASKS[:1])
    with pytest.raises(InvalidArgumentError, match="not empty"):
        evaluate(tmp_path / "run", "noop", tasks=TASKS[:1])
    new = folder.config["versions"]["gymnasium"]
    folder.config["versions"]["gymnasium"] = "0.1"
    folder.save_config()
    for _ in range(2):
        folder = evaluate(tmp_path / "run", tasks=TASKS[:1], resume=True)
    assert folder.config["versions"]["gymnasium"] == f"0.1, then {new}"


def test_budget_stops_within_one_episode_per_slot(tmp_path: Path) -> None:
    client = {"prices": Prices(input=1e6, output=0.0)}
    options = {"attempts": 8, "concurrency": 2, "max_cost": 60.0}
    folder = played(look_then_submit, tmp_path / "run", client, tasks=TASKS, **options)
    costs = [record.cost or 0.0 for record in folder.trajectories()]
    assert 60 <= sum(costs) <= 60 + 2 * 20


def test_budget_is_kept_on_resume_and_may_grow(tmp_path: Path) -> None:
    out, options = tmp_path / "run", {"tasks": TASKS, "concurrency": 1}
    folder = played(look_then_submit, out, **options, max_tokens=15)
    assert len(folder.keys()) == 1
    folder = played(look_then_submit, out, **options, resume=True)
    assert len(folder.keys()) == 1
    folder = played(look_then_submit, out, **options, resume=True, max_tokens=10**6)
    assert len(folder.keys()) == len(TASKS)


@pytest.mark.parametrize(
    ("budget", "client"),
    [
        ({"max_tokens": 100}, {}),
        ({"max_cost": 1.0}, {}),
        ({"max_cost": 1.0}, {"prices": Prices(input=1e6, output=1e6)}),
    ],
)
def test_budget_that_cannot_be_counted_stops_the_run(
    budget: dict[str, Any], client: dict[str, Any], tmp_path: Path
) -> None:
    silent = {name: value for name, value in SUBMIT.items() if name != "usage"}
    answer, options = Answer(silent), {"tasks": TASKS, "concurrency": 1, **budget}
    folder = played(lambda _: answer, tmp_path / "run", client, **options)
    assert [outcome.cost for outcome in folder.outcomes()] == [None]


def test_reply_of_no_tokens_has_the_cost_of_its_prompt(tmp_path: Path) -> None:
    client = {"prices": Prices(input=1e6, output=1e6)}
    empty = Answer(message(usage=(10, 0)))
    (record,) = played(
        lambda _: empty, tmp_path / "run", client, episode={"max_turns": 1}
    ).trajectories()
    assert record.cost == 10


def test_one_player_plays_a_run_and_resumes_it(tmp_path: Path) -> None:
    with ChatServer(look_then_submit) as server:
        player = chat(server)
        evaluate(tmp_path / "run", player, tasks=TASKS[:1])
        folder = evaluate(tmp_path / "run", player, tasks=TASKS[:1], attempts=2, resume=True)
    assert len(folder.keys()) == 2


def test_usage_includes_errors_that_were_repeated(tmp_path: Path) -> None:
    spent: list[int] = []
    for is_resumed in (False, True, True):
        played(
            lambda body: refuse(401)(body) if replies(body) else Answer(LOOK),
            tmp_path / "run",
            resume=is_resumed,
            on_start=lambda runner, *_: spent.append(runner.tokens),
        )
    assert spent == [0, 15, 30]


def test_killed_writers_leave_whole_records(tmp_path: Path) -> None:
    folder = evaluate(tmp_path / "run", "gold", tasks=TASKS[:2])
    first, second = sorted((tmp_path / "run/attempts").iterdir())
    partial = first.with_name(f".{first.name}.1.partial")
    partial.write_bytes(first.read_bytes()[:100])
    first.unlink()
    assert folder.keys() == {(TASKS[1].task_id, 0)}
    before = second.stat().st_mtime_ns
    folder = evaluate(tmp_path / "run", tasks=TASKS[:2], resume=True)
    assert len(list(folder.trajectories())) == 2
    assert sorted((tmp_path / "run/attempts").iterdir()) == [first, second]
    assert second.stat().st_mtime_ns == before


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
def test_damaged_records_are_named(text: str, tmp_path: Path) -> None:
    folder = evaluate(tmp_path / "run", "noop", tasks=TASKS[:1])
    (file,) = (folder.path / "attempts").iterdir()
    file.write_text(text)
    with pytest.raises(InvalidArgumentError, match=file.name):
        list(folder.trajectories())
    with pytest.raises(InvalidArgumentError, match=file.name):
        list(folder.outcomes())


def test_any_task_id_can_be_a_file_name(tmp_path: Path) -> None:
    folder = evaluate(tmp_path / "run", "gold", tasks=TASKS[:1])
    (record,) = folder.trajectories()
    ids = ["owner/name-1", "../escape", "a.0.error", "naïve %2F", ".hidden"]
    with folder.writer() as writer:
        for task_id in ids:
            writer.add(replace(record, task_id=task_id))
    assert folder.keys() == {(task_id, 0) for task_id in [*ids, record.task_id]}
    assert set(folder.outcomes()) == {Outcome.of(record)}
    assert {record.task_id for record in folder.trajectories()} == {*ids, record.task_id}


def test_second_writer_is_refused(tmp_path: Path) -> None:
    folder = evaluate(tmp_path / "run", "gold", tasks=TASKS[:1])
    with folder.writer(), pytest.raises(InvalidArgumentError, match="another process"):
        evaluate(folder.path, tasks=TASKS[:1], attempts=7, resume=True)
    assert RunFolder.open(folder.path).config == folder.config


def test_resume_reads_the_settings_that_the_last_writer_left(tmp_path: Path) -> None:
    folder = evaluate(tmp_path / "run", "noop", tasks=TASKS[:1])
    writer = RunFolder.writer

    @contextmanager
    def locked_late(self: RunFolder) -> Iterator[None]:
        with writer(self):  # the last writer has just ended
            folder.config["attempts"] = 7
            folder.save_config()
            yield

    refused = pytest.raises(InvalidArgumentError, match="at least 7")
    with mock.patch.object(RunFolder, "writer", locked_late), refused:
        evaluate(folder.path, tasks=TASKS[:1], attempts=2, resume=True)


def test_interrupt_lets_running_episodes_end(tmp_path: Path) -> None:
    def interrupt(body: dict[str, Any]) -> Answer:
        if not replies(body):
            os.kill(os.getpid(), signal.SIGINT)
        return look_then_submit(body)

    try:
        folder = played(interrupt, tmp_path / "run", tasks=TASKS, attempts=4, concurrency=1)
    except KeyboardInterrupt:
        pytest.fail("the first Ctrl-C discarded an episode")
    assert len(list(folder.trajectories())) == 1


@pytest.mark.parametrize("calls", [{"shell": {"cmd": "ls"}}, {}])
def test_replies_are_sent_back_unchanged(calls: dict[str, Any], tmp_path: Path) -> None:
    reply = message("Look.", calls)
    original = reply["choices"][0]["message"]
    original["reasoning_content"] = "Hm."
    if calls:
        original["tool_calls"][0]["function"]["arguments"] = '{"cmd":  "ls" }'

    with ChatServer(by_turn(reply, SUBMIT)) as server:
        folder = evaluate(tmp_path / "run", chat(server), tasks=TASKS[:1])
        sent = server.requests[-1]["messages"][2]
    assert {name: sent[name] for name in original if original[name]} == {
        k: v for k, v in original.items() if v
    }
    (record,) = folder.trajectories()
    turn = record.turns[0]
    assert (turn.action, turn.carries_calls, turn.exact) == ("Look.", bool(calls), False)
    assert [call.arguments for call in turn.calls] == [*calls.values()]
    assert turn.token_ids


def test_consecutive_errors_stop_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    options = {"attempts": 4, "max_lost": 3, "concurrency": 1}
    folder = played(refuse(401), tmp_path / "run", **options)
    assert len([*folder.outcomes()]) == 3
    assert not folder.keys()
    with ChatServer(look_then_submit) as server:
        folder = evaluate(folder.path, chat(server), tasks=TASKS[:1], resume=True)
    assert len(folder.keys()) == 4


def test_max_lost_stops_the_run_despite_a_later_success(tmp_path: Path) -> None:
    numbers = count()

    def answer(body: dict[str, Any]) -> Answer:
        return refuse(401)(body) if next(numbers) == 0 else Answer(SUBMIT, delay_s=1)

    bounds = {"max_lost": 1, "concurrency": 2, "attempts": 3}
    outcomes = list(played(answer, tmp_path / "run", **bounds).outcomes())
    assert sum(bool(outcome.error_class) for outcome in outcomes) == 1
    assert len(outcomes) <= 2
