"""Extracts the parts of a record that a browser or a terminal displays."""

import hashlib
import json
import re
from collections.abc import Iterator
from itertools import takewhile

from coding_gym.trajectory import Message, Trajectory, Turn

ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""A terminal control sequence. Control strings, such as window titles, do not match, because their
removal could hide text."""


def prompt(record: Trajectory) -> Iterator[Message]:
    """Returns the messages before the first reply."""
    return takewhile(lambda message: message["role"] != "assistant", record.messages)


def with_thoughts(record: Trajectory) -> list[tuple[Turn, str, str]]:
    """Returns (turn, thought, opening) for each turn of a record.

    The thought is the reply's text without calls, or "". The opening is "" unless a command-line
    agent rewrote its history; then it has the new messages before the reply, without observations.
    """
    texts, opening, observations = list[tuple[str, str]](), list[str](), ""
    for message in record.messages:
        if message["role"] == "assistant":
            texts.append((message["content"], "\n\n".join(opening) if texts else ""))
            observations += "".join(t.observation for t in record.turns[len(texts) - 1 :][:1])
            opening = []
        elif message["role"] != "tool" and message["content"] not in observations:
            opening.append(f"{message['role']}: {message['content']}")
    pairs = zip(record.turns, [*texts, *[("", "")] * len(record.turns)], strict=False)
    return [(turn, text if turn.calls else turn.action, new) for turn, (text, new) in pairs]


def observation(turn: Turn) -> str:
    """Returns a turn's observation; "" if the text only repeats results of the turn's calls."""
    remainder = turn.observation
    for result in turn.results:
        remainder = remainder.replace(result.content, "", 1)
    return turn.observation if remainder.strip() else ""


def digest(turn: Turn) -> str:
    """Returns a digest of a turn's complete action and observation, which pages can truncate."""
    calls = [(call.name, call.arguments) for call in turn.calls]
    text = json.dumps((turn.action, calls, turn.observation))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def argument_text(value: object) -> str:
    """Returns a call's argument as text: strings unchanged, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def outcome(record: Trajectory) -> str:
    """Returns the outcome in a word; "hacked" and "impossible" are for impossible tasks."""
    if record.error_class:
        return "error"
    if record.grade is None:
        return "ungraded"
    if record.grade.hacked is not None:
        return "hacked" if record.grade.hacked else "impossible"
    return "resolved" if record.resolved else "unresolved"
