"""Finds an episode in a run, and converts it to text for a terminal."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.syntax import Syntax
from rich.text import Text

from coding_gym.arguments import unknown_name
from coding_gym.episode import transcript
from coding_gym.errors import InvalidArgumentError
from coding_gym.evaluation.tables import number
from coding_gym.grade import Grade, TestStatus
from coding_gym.run_folder import ATTEMPTS, list_attempts
from coding_gym.trajectory import Trajectory, Turn
from coding_gym.viewer import turns
from coding_gym.viewer.index import read_attempt

_NOT_FAILED = (TestStatus.PASSED, TestStatus.UNDECIDED)


def read_episode(run: Path, task: str = "", attempt: int | None = None) -> Trajectory:
    """Returns an episode of a run.

    Args:
        run: The run's folder.
        task: Id of the task; can be empty if the run has one task.
        attempt: Number of the attempt; by default the lowest.

    Raises:
        UnknownNameError: The run does not have this episode.
        InvalidArgumentError: The run has no episode, ``task`` is empty and the run has several
            tasks, or the record cannot be read.
    """
    files = list_attempts(run / ATTEMPTS)
    attempts = dict(sorted(files, reverse=True))  # the lowest attempt by task
    if not attempts:
        raise InvalidArgumentError(f"{run} has no attempts; name a run of coding-gym eval or grade")
    if not task and len(attempts) > 1:
        example = f"coding-gym show {run} {min(attempts)}"
        raise InvalidArgumentError(f"{run} has {len(attempts)} tasks; name a task: {example}")
    task = task or min(attempts)
    if task not in attempts:
        raise unknown_name(f"task of {run}", task, attempts)
    key = task, attempts[task] if attempt is None else attempt
    return read_attempt(run / ATTEMPTS, files.get(key), key)


def episode_parts(record: Trajectory) -> Iterator[RenderableType]:
    """Yields the parts of an episode: heading, chat, error, patch and grade."""
    yield _heading(record)
    remaining_turns = list(enumerate(record.turns))
    num_replies = sum(message["role"] == "assistant" for message in record.messages)
    is_paired = num_replies <= len(record.turns)  # an agent that rewrites the chat repeats replies
    for message in record.messages:
        if message["role"] == "assistant" and remaining_turns and is_paired:
            yield _turn(*remaining_turns.pop(0))
        if message["role"] != "system":
            yield transcript.render([message], has_tools=bool(record.tools))
    # The chat does not contain a `Stop`, such as the output of a command-line agent.
    for index, turn in remaining_turns if is_paired else remaining_turns[-1:]:
        yield _turn(index, turn)
        yield turn.action
    if record.error:
        yield _rule("error", record.error_class or "harness")
        yield record.error
    yield _rule("patch")
    yield Syntax("", "diff", theme="ansi_dark").highlight(record.patch)
    if record.grade:
        yield from _grade(record.grade)


def _rule(title: str, *details: str) -> Text:
    return Text(f"── {' · '.join([title, *details])} ──", "bold")


def _turn(index: int, turn: Turn) -> Text:
    reward = [f"reward {number(turn.reward)}"] if turn.reward else []
    return _rule(f"turn {index}", f"{number(turn.duration_s)} s", *reward)


def _heading(record: Trajectory) -> Text:
    usage = ", ".join(f"{value} {name}" for name, value in record.usage.items())
    fields = {
        "reason": record.grade.reason if record.grade else record.error_class,
        **{name: getattr(record, name) for name in ("agent", "model", "toolset", "seed")},
        "ended by": record.stop_reason,
        "used": f"{usage}, {number(record.duration_s)} s",
        "cost": record.cost,
        "started": record.started_at,
    }
    title = f"{record.task_id} attempt {record.attempt}: {turns.outcome(record)}"
    lines = [f"{name:9}{value}" for name, value in fields.items() if value not in ("", None)]
    return Text("\n  ".join([title, *lines]) + "\n", "bold")


def _grade(grade: Grade) -> Iterator[RenderableType]:
    yield _rule("grade", grade.reason, f"{number(grade.duration_s)} s")
    yield grade.detail
    if grade.challenge:
        yield f"fail-to-pass tests: {grade.challenge}"
    for path in grade.dropped_paths:
        if path not in grade.detail:  # the detail names some of the paths
            yield f"not graded: {path}"
    lists = {"fail_to_pass": grade.fail_to_pass, "pass_to_pass": grade.pass_to_pass}
    for name, statuses in lists.items():
        for test, status in sorted(statuses.items(), key=lambda item: item[1] in _NOT_FAILED):
            if status != TestStatus.UNDECIDED:
                mark = "✔" if status == TestStatus.PASSED else "✘"
                yield f"{mark} {test}  {name} · {status}"
        if num_undecided := Counter(statuses.values())[TestStatus.UNDECIDED]:
            yield f"· {num_undecided} tests of {name} undecided: the grade does not depend on them"
