"""Moments of an episode: what is in one, and what goes on from it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from moves import SUBMIT, shell

from coding_gym.action import Completion
from coding_gym.episode import Episode, Limits, opening
from coding_gym.errors import EpisodeError, SandboxError
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.task import Task
from coding_gym.text.tokenizers import get_tokenizer
from coding_gym.tools import get_toolset
from coding_gym.trajectory import StopReason
from coding_gym.workspace import TemplateStore

Make = Callable[..., Episode]

LOOK = "cat shapes.py; ls -A . /tmp $HOME /dev/shm; cat /tmp/note $HOME/.note; git log --oneline"


@pytest.fixture
def make(tiny_row: dict[str, Any]) -> Iterator[Make]:
    made: list[Episode] = []

    def build(**arguments: Any) -> Episode:
        row = tiny_row | arguments.pop("row", {})
        episode = Episode(
            Task.from_row(row),
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


FIX = shell("sed -i 's/width + height/width * height/' shapes.py")


def test_a_branch_has_the_files_chat_and_usage_of_its_moment(make: Make) -> None:
    episode = make()
    episode.start()
    for command in (
        "echo here > /tmp/note; echo there > ~/.note; echo > /dev/shm/shared",
        "rm test_shapes.py; sed -i 's/width/w/' shapes.py; git commit -qam work",
    ):
        episode.step(shell(command))
    moment = episode.snapshot()
    expected = episode.step(shell(LOOK))
    assert "here\nthere" in expected.text
    episode.step(shell("git reset -q --hard HEAD~; rm -rf /tmp/note ~/.note /dev/shm/*"))
    episode.close()
    for _ in range(2):
        branch = make()
        assert branch.restore(moment) == moment.outcome
        assert branch.usage == moment.usage
        assert branch.messages == list(moment.messages)
        assert branch.step(shell(LOOK)) == expected
        assert len(branch.turns) == 3
        assert branch.info()["turn"] == 3


def test_every_branch_is_graded_by_itself(make: Make) -> None:
    episode = make()
    episode.start()
    episode.step(shell("touch new.py"))
    moment = episode.snapshot()
    repaired, other = make(), make()
    for branch in (repaired, other):
        branch.restore(moment)
    repaired.step(FIX)
    assert repaired.step(SUBMIT).reward == 1.0
    assert other.step(SUBMIT).reward == 0.0
    assert repaired.grade is not None
    assert other.grade is not None
    assert (repaired.grade.resolved, other.grade.resolved) == (True, False)
    assert episode.step(FIX).stop_reason is None
    assert episode.step(SUBMIT).reward == 1.0


def test_limits_and_their_warnings_go_on_where_they_were(make: Make) -> None:
    limits = Limits(max_tool_calls=6, max_tokens=100_000, warn_tool_calls=True, max_turns=9)

    def play_on(episode: Episode) -> list[str]:
        seen: list[str] = []
        while not episode.ended:
            seen.append(episode.step(Completion(shell("echo x"), range(1000))).text)
        return seen

    episode = make(limits=limits)
    episode.start()
    for _ in range(2):
        episode.step(Completion(shell("true"), range(500)))
    moment = episode.snapshot()
    expected = play_on(episode)
    assert [text.partition("\n")[0] for text in expected] == [
        *(f"{left} tools left. Prioritize essential changes." for left in (4, 3, 2)),
        "Last tool call! Make it count.",
    ]
    branch = make(limits=limits)
    branch.restore(moment)
    assert play_on(branch) == expected
    assert branch.usage == episode.usage
    assert branch.stop_reason is StopReason.MAX_TOOL_CALLS
    assert [t.token_ids for t in branch.trajectory().turns] == [
        t.token_ids for t in episode.trajectory().turns
    ]


def test_what_comes_after_does_not_change_a_moment(make: Make) -> None:
    episode = make()
    episode.start()
    moment = episode.snapshot()
    episode.step(FIX)
    assert (moment.usage.turns, len(moment.messages), moment.turns) == (0, 2, ())
    branch = make()
    branch.restore(moment)
    branch.step(FIX)
    assert moment.usage.turns == 0
    assert branch.usage.turns == 1


def test_only_a_running_episode_has_a_snapshot(make: Make) -> None:
    with pytest.raises(EpisodeError, match="snapshot was called before start"):
        make().snapshot()
    ended, closed, lost = make(), make(), make()
    for episode in (ended, closed, lost):
        episode.start()
    ended.step(SUBMIT)
    with pytest.raises(EpisodeError, match=r"the episode has ended \(submitted\)"):
        ended.snapshot()
    closed.close()
    with pytest.raises(EpisodeError, match="was closed"):
        closed.snapshot()
    lost.lose(SandboxError("it burnt down"))
    with pytest.raises(EpisodeError, match="has no sandbox to take a snapshot of: it burnt down"):
        lost.snapshot()


def test_a_snapshot_restores_only_into_a_new_episode_of_its_task(make: Make) -> None:
    episode = make()
    episode.start()
    moment = episode.snapshot()
    with pytest.raises(EpisodeError, match="into a new episode of its task"):
        episode.restore(moment)
    with pytest.raises(EpisodeError, match="into a new episode of its task"):
        make(row={"instance_id": "another"}).restore(moment)


def test_a_sandbox_that_cannot_be_opened_again_makes_a_stillborn_branch(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = make()
    episode.start()
    episode.step(FIX)
    moment = episode.snapshot()
    attempts: list[object] = []

    def fail(*arguments: object, **_: object) -> None:
        attempts.append(arguments)
        raise SandboxError("no memory")

    monkeypatch.setattr(opening, "open_sandbox", fail)
    branch = make()
    assert branch.restore(moment) == moment.outcome
    assert len(attempts) == 2
    assert branch.step(SUBMIT).stop_reason is StopReason.SANDBOX_ERROR
    assert branch.error == "no memory"


def test_a_snapshot_goes_back_into_the_backend_that_auto_chose(make: Make) -> None:
    episode = make(sandbox=SandboxOptions(name="auto"))
    episode.start()
    moment = episode.snapshot()
    assert moment.files.backend != "auto"
    branch = make(sandbox=SandboxOptions(name="auto"))
    branch.restore(moment)
    assert branch.step(shell("echo on")).text == "on"
