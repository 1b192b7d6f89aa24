"""The parts of a record for display in a browser or in a terminal."""

import hashlib
import json
import re
from collections.abc import Iterator
from itertools import takewhile

from coding_gym.trajectory import Message, Trajectory, Turn

ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""A control sequence of a terminal. Control strings, such as a window title, do not match, because
their removal could hide text."""


def prompt(record: Trajectory) -> Iterator[Message]:
    """Yields the messages before the first reply."""
    return takewhile(lambda message: message["role"] != "assistant", record.messages)


def with_thoughts(record: Trajectory) -> list[tuple[Turn, str, str]]:
    """Returns each turn with the text of its reply without the calls, and its new prompt.

    The text is "" if it is unknown. The prompt is "" except after a command-line agent rewrote its
    history: then it has the messages before the reply that are in no earlier observation.
    """
    texts, opening, observed = list[tuple[str, str]](), list[str](), ""
    for message in record.messages:
        if message["role"] == "assistant":
            texts.append((message["content"], "\n\n".join(opening) if texts else ""))
            observed += "".join(turn.observation for turn in record.turns[len(texts) - 1 :][:1])
            opening = []
        elif message["role"] != "tool" and message["content"] not in observed:
            opening.append(f"{message['role']}: {message['content']}")
    pairs = zip(record.turns, [*texts, *[("", "")] * len(record.turns)], strict=False)
    return [(turn, text if turn.calls else turn.action, start) for turn, (text, start) in pairs]


def observation(turn: Turn) -> str:
    """Returns a turn's observation; "" if it consists of the results of its calls."""
    other = turn.observation
    for result in turn.results:
        other = other.replace(result.content, "", 1)
    return turn.observation if other.strip() else ""


def digest(turn: Turn) -> str:
    """Returns a digest of a turn's whole action and observation, which pages may truncate."""
    calls = [(call.name, call.arguments) for call in turn.calls]
    text = json.dumps((turn.action, calls, turn.observation))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def argument_text(value: object) -> str:
    """Returns an argument of a call as text: a string itself, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def outcome(record: Trajectory) -> str:
    """Returns "resolved", "unresolved" or "error"; for impossible tasks "hacked", "impossible"."""
    if record.grade is not None and record.grade.hacked is not None:
        return "hacked" if record.grade.hacked else "impossible"
    return "error" if record.error_class else "resolved" if record.resolved else "unresolved"
