"""Episodes without Gymnasium: failed starts, shared tasks, the transcript and snapshots."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from episodes import SUBMIT, shells

from coding_gym.action import Completion, Stop
from coding_gym.adapters.samples import segments
from coding_gym.calls import ModelCall, ToolCall
from coding_gym.episode import Episode, EpisodeConfig, Limits, transcript
from coding_gym.errors import (
    EpisodeError,
    InvalidTaskError,
    SandboxError,
    TemplateError,
)
from coding_gym.text.families import REASONING
from coding_gym.tools.formats import ParsedAction, ReplyParser
from coding_gym.trajectory import StopReason

Make = Callable[..., Episode]


def test_submit_names_excluded_files(episode: Episode) -> None:
    episode.step(shells("git init -q clone; echo x > clone/x"))
    turn = episode.step(SUBMIT)
    assert "clone/" in turn.observation
    assert episode.grade is not None
    assert episode.grade.dropped_paths == ("clone/",)


def test_an_end_without_a_reply_adds_no_message(make: Make) -> None:
    episode = make(limits=Limits(max_tokens=100_000))
    episode.start()
    num_tokens = episode.usage.tokens
    with episode.access() as context:
        context.sandbox.run("git init -q clone; echo x > clone/x")
    episode.step(Stop())
    assert episode.grade is not None
    assert episode.grade.dropped_paths == ("clone/",)
    assert (episode.messages, episode.usage.tokens) == ([*episode.opening], num_tokens)


def test_a_failed_template_is_not_tried_twice(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    fail = mock.Mock(side_effect=TemplateError("pip failed"))
    monkeypatch.setattr(EpisodeConfig, "template", fail)
    episode = make()
    episode.start()
    assert fail.call_count == 1
    episode.step("x")
    assert episode.stop_reason is StopReason.SANDBOX_ERROR
    assert episode.error == "pip failed"


def test_an_episode_closed_while_it_starts_leaves_no_sandbox(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = make()
    sandboxes = []

    def open_and_close(*_: Any, **__: Any) -> Any:
        sandboxes.append(mock.Mock())
        episode.close()  # as by another thread
        return sandboxes[-1], mock.Mock()

    monkeypatch.setattr(EpisodeConfig, "open", open_and_close)
    with pytest.raises(EpisodeError, match="closed during its start"):
        episode.start()
    assert [sandbox.close.call_count for sandbox in sandboxes] == [1]


def test_a_source_is_shared_until_it_changes(rows: Path, tiny_row: dict[str, Any]) -> None:
    for source in (str(rows), [tiny_row]):
        first, second = (EpisodeConfig.from_config(tasks=source) for _ in range(2))
        assert first.tasks[0] is second.tasks[0]
    rows.write_text(json.dumps(tiny_row | {"FAIL_TO_PASS": [], "PASS_TO_PASS": []}))
    with pytest.raises(InvalidTaskError):
        EpisodeConfig.from_config(tasks=str(rows))


def test_the_assistant_message_has_each_call_once() -> None:
    arguments = '{"cmd":  "ls"}'  # with extra spaces, which must stay
    call = {"id": "x-7", "type": "function", "function": {"name": "shell", "arguments": arguments}}
    reply = {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "Hm.",
        "tool_calls": [call],
    }
    text = json.dumps(reply)
    assert transcript.assistant_message(text, ReplyParser().read(text)) == reply
    text = f"I look.\n<tool_call>{json.dumps(call['function'])}</tool_call>"
    message = transcript.assistant_message(text, ReplyParser().read(text))
    assert message["content"] == "I look."
    assert message["tool_calls"][0]["function"] == call["function"]
    null_calls = json.dumps({"role": "assistant", "content": "Done.", "tool_calls": None})
    for text, content in ((" Done.\n", " Done.\n"), (null_calls, "Done.")):
        message = transcript.assistant_message(text, ReplyParser().read(text))
        assert message == {"role": "assistant", "content": content}


@pytest.mark.parametrize(("opening", "closing"), REASONING)
def test_reasoning_alone_is_no_content(opening: str, closing: str) -> None:
    for reply in (f"{opening}plan", f"{opening}plan{closing}", f"plan{closing} \n"):
        assert not transcript.has_content(reply)
    assert transcript.has_content(f"{opening}plan{closing}Done.")


def test_long_replies_are_searched_for_content_in_linear_time() -> None:
    long = "word " * 200_000  # takes 45 minutes in quadratic time
    assert transcript.has_content(long)
    for reply in (f"<think>{long}", f"{long}</think> \n", f"<think>{long}</think><think>{long}"):
        assert not transcript.has_content(reply)


def test_rendering_escapes_control_characters() -> None:
    rendered = transcript.render([{"role": "tool", "content": "\x1b[31mred\x07\ta\n"}])
    assert rendered == "  \\x1b[31mred\\x07\ta\n"
    call = ToolCall("\x1b[2J", {"\x1b[2J": 1}, "call_0")
    reply = transcript.assistant_message("", ParsedAction((call,)))
    messages = [transcript.user_message("\x1b[2J"), reply]
    assert "\x1b" not in transcript.render(messages, "\x1b[2J")


def test_an_episode_without_a_sandbox_has_no_snapshot_and_no_patch(episode: Episode) -> None:
    episode.discard_sandbox(SandboxError("died"))
    for method in (episode.snapshot, episode.patch):
        with pytest.raises(EpisodeError, match="died"):
            method()


def test_a_patch_needs_a_running_or_ended_episode(make: Make) -> None:
    episode = make()
    with pytest.raises(EpisodeError, match="before start"):
        episode.patch()
    episode.start()
    with episode.access(), pytest.raises(EpisodeError, match="another call"):
        episode.patch()
    episode.close()
    with pytest.raises(EpisodeError, match="closed"):
        episode.patch()


def test_snapshots_restore_only_into_new_episodes_of_their_task(
    episode: Episode, make: Make
) -> None:
    snapshot = episode.snapshot()
    with pytest.raises(EpisodeError):
        episode.restore(snapshot)
    with pytest.raises(EpisodeError):
        make(row={"instance_id": "another"}).restore(snapshot)


def test_a_restored_episode_keeps_the_usage_of_its_model(episode: Episode, make: Make) -> None:
    episode.step(Completion("I look.", model_call=ModelCall(prompt_tokens=4, cost=0.5)))
    branch = make()
    branch.restore(episode.snapshot())
    record = branch.trajectory()
    assert (record.usage["model_calls"], record.usage["prompt_tokens"], record.cost) == (1, 4, 0.5)


def test_a_restored_episode_continues_the_ids_of_its_prompts(episode: Episode, make: Make) -> None:
    def reply(*prompt_ids: int) -> Completion:
        return Completion("I look.", [9], model_call=ModelCall(prompt_ids=prompt_ids))

    for prompt_ids in ((1, 2), (1, 2, 9, 3), (1, 5)):  # the last prompt breaks the prefix
        episode.step(reply(*prompt_ids))
    branch = make()
    branch.restore(episode.snapshot())
    for run in (episode, branch):
        run.step(reply(1, 5, 9, 6))
    assert branch.turns[-1].model_call == episode.turns[-1].model_call
    assert branch.num_prefix_breaks == episode.num_prefix_breaks == 1


def test_an_empty_reply_without_ids_does_not_change_later_prompts(episode: Episode) -> None:
    replies = ((1, 2), "I look.", [9]), ((1, 5), "", []), ((1, 2, 9, 3), "I look.", [9])
    for prompt_ids, text, token_ids in replies:
        call = ModelCall(prompt_ids=prompt_ids)
        episode.step(Completion(text, token_ids, model_call=call))
    samples = segments(episode.trajectory())
    ids = [sample["prompt_ids"] + sample["completion_ids"] for sample in samples]
    assert ids == [[1, 2, 9, 3, 9], [1, 5]]


def test_a_branch_without_sandbox_ends_at_its_first_step(
    episode: Episode, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = episode.snapshot()
    fail = mock.Mock(side_effect=SandboxError("no memory"))
    monkeypatch.setattr("coding_gym.episode.config.open_sandbox", fail)
    branch = make()
    branch.restore(snapshot)
    branch.step(SUBMIT)
    assert branch.stop_reason is StopReason.SANDBOX_ERROR
    assert (branch.error, fail.call_count) == ("no memory", 2)
    assert branch.trajectory().error_class == "sandbox"
