"""An episode without Gymnasium: limits within an action, tokens, grading once."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from moves import shells

from coding_gym.action import Completion, Stop
from coding_gym.episode import Episode, Limits
from coding_gym.errors import EpisodeError, TemplateError
from coding_gym.task import Task
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import get_toolset
from coding_gym.trajectory import StopReason
from coding_gym.workspace import Template, TemplateStore

Make = Callable[..., Episode]


@pytest.fixture
def make(tiny_row: dict[str, Any]) -> Iterator[Make]:
    made: list[Episode] = []

    def build(**arguments: Any) -> Episode:
        episode = Episode(
            Task.from_row(tiny_row),
            TemplateStore().get,
            toolset=get_toolset("nano"),
            tokenizer=get_tokenizer("coding_gym_16k"),
            **arguments,
        )
        made.append(episode)
        return episode

    yield build
    for episode in made:
        episode.close()


def test_the_chat_starts_with_the_toolsets_prompt_and_the_issue(make: Make) -> None:
    outcome = make().start()
    assert [m["role"] for m in outcome.messages] == ["system", "user"]
    assert outcome.text == outcome.messages[1]["content"]


def test_a_tool_call_limit_ends_the_episode_within_an_action(make: Make) -> None:
    episode = make(limits=Limits(max_tool_calls=2))
    episode.start()
    outcome = episode.step(shells("echo 1", "echo 2", "echo 3 > three"))
    assert outcome.stop_reason is StopReason.MAX_TOOL_CALLS
    assert outcome.text == "1\n2"
    assert episode.patch().is_empty


def test_a_token_limit_counts_sampled_tokens_where_they_are_given(make: Make) -> None:
    episode = make(limits=Limits(max_tokens=100_000))
    episode.start()
    before = episode.usage.tokens
    episode.step(Completion(shells("true"), range(5000)))
    assert 5000 < episode.usage.tokens - before < 5020
    assert episode.step(Completion(shells("true"), range(95_000))).stop_reason is (
        StopReason.MAX_TOKENS
    )


def test_a_prompt_beyond_the_budget_is_logged_and_ends_with_the_first_action(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    episode = make(limits=Limits(max_tokens=10, count="content"))
    episode.start()
    assert "shapes-area: the prompt has 350 tokens, of max_tokens=10 with" in caplog.text
    assert "raise max_tokens" in caplog.text
    outcome = episode.step(Completion(shells("echo one > one"), range(7)))
    assert (outcome.stop_reason, outcome.messages) == (StopReason.MAX_TOKENS, ())
    assert episode.patch().is_empty
    (turn,) = episode.trajectory().turns
    assert (len(turn.token_ids), turn.calls) == (7, ())


def test_nothing_runs_after_the_end(make: Make) -> None:
    episode = make(limits=Limits(max_turns=1))
    episode.start()
    episode.step("hello")
    grade = episode.grade
    with pytest.raises(EpisodeError, match="has ended"):
        episode.step("again")
    assert episode.grade is grade


def test_a_step_before_start_is_refused(make: Make) -> None:
    with pytest.raises(EpisodeError, match="before start"):
        make().step("x")


def test_the_trajectory_holds_the_whole_chat_and_every_turn(make: Make) -> None:
    episode = make()
    episode.start()
    episode.step(shells("echo one", "echo two"))
    episode.step('{"name": "submit", "arguments": {}}')
    trajectory = episode.trajectory()
    assert next(t.observation for t in trajectory.turns) == "one\ntwo"
    assert [len(t.calls) for t in trajectory.turns] == [2, 1]
    assert all(t.duration_s > 0 for t in trajectory.turns)
    assert trajectory.stop_reason is StopReason.SUBMITTED
    assert [m["role"] for m in trajectory.messages] == [
        *("system", "user"),
        *("assistant", "tool", "tool"),
        *("assistant", "tool"),
    ]
    assert json.loads(json.dumps(trajectory.to_json())) == trajectory.to_json()


def test_a_tree_too_large_for_a_patch_is_the_policys_fault(make: Make) -> None:
    episode = make()
    episode.start()
    episode.step(shells("head -c 17000000 /dev/urandom > big.bin"))
    outcome = episode.step('{"name": "submit", "arguments": {}}')
    assert outcome.stop_reason is StopReason.SUBMITTED
    assert outcome.reward == 0.0
    assert episode.grade is not None
    assert episode.grade.reason == "patch_not_applied"
    assert "big.bin is larger than" in episode.grade.detail


def test_a_stop_is_recorded_without_tokens(make: Make) -> None:
    episode = make()
    episode.start()
    episode.step(Stop("the budget of the trainer is spent"))
    (turn,) = episode.trajectory().turns
    assert (turn.token_ids, turn.exact) == ((), True)
    assert turn.action == "the budget of the trainer is spent"


def test_a_template_that_cannot_be_built_is_not_tried_twice(tiny_row: dict[str, Any]) -> None:
    attempts = []

    def fail(task: Task) -> Template:
        attempts.append(task)
        raise TemplateError("pip said no")

    toolset, tokenizer = get_toolset("nano"), get_tokenizer("coding_gym_16k")
    episode = Episode(Task.from_row(tiny_row), fail, toolset=toolset, tokenizer=tokenizer)
    episode.start()
    assert len(attempts) == 1
    assert episode.step("x").stop_reason is StopReason.SANDBOX_ERROR
    assert episode.error == "pip said no"
