"""Episodes in a terminal: one turn by turn, or two side by side from their first difference.

The input is the JSON of `coding_gym.viewer.pages`. Of the escape sequences in its texts only
colours reach the terminal; the others are left out, and control characters become visible marks.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from coding_gym.errors import UnknownNameError
from coding_gym.evaluation.report import number
from coding_gym.viewer.pages import Run

Page = Mapping[str, Any]

# Control sequences, strings such as window titles up to their end or that of the line, and others.
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])"
)
_UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MARKS = {"resolved": ("✔", "green"), "unresolved": ("✘", "red"), "error": ("!", "yellow")}


def read_episode(folder: Path, task: str, attempt: int | None = None) -> tuple[Page, list[Page]]:
    """Returns the page of an episode and all of its turns.

    Args:
        folder: The run's folder.
        task: The task's id.
        attempt: The attempt; None for the first one.

    Raises:
        UnknownNameError: The run has no such episode.
        InvalidArgumentError: The folder holds no run, or its record cannot be read.
    """
    run = Run(folder, folder.name)
    try:
        while run.index.update():
            pass
        attempts = run.index.query(
            "SELECT min(attempt) AS first FROM episodes WHERE task = ?", [task]
        )
        if (first := attempts[0]["first"]) is None:
            names = [row["task"] for row in run.index.query("SELECT DISTINCT task FROM episodes")]
            close = difflib.get_close_matches(task, names, cutoff=0.5)
            similar = f"; similar: {', '.join(close)}" if close else ""
            raise UnknownNameError(f"{folder} has no episode of {task!r}{similar}")
        attempt = first if attempt is None else attempt
        episode = run.episode(task, attempt)
        turns = list(episode["turns"])
        while len(turns) < episode["num_turns"]:
            turns += run.turns(task, attempt, len(turns))["turns"]
        return episode, turns
    finally:
        run.index.close()


def coloured(text: str) -> Text:
    """Returns a text with its colours and without any other effect on a terminal."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # what a bare one hides is displayed
    text = _ESCAPE.sub(lambda found: found[0] if _COLOUR.fullmatch(found[0]) else "", text)
    # Keep the escape characters of colours, whose sequences are left alone.
    pieces = re.split(f"({_COLOUR.pattern})", text)
    pieces[::2] = [_UNUSUAL.sub(_visible, piece) for piece in pieces[::2]]
    made = Text.from_ansi("".join(pieces))
    made.stylize(Style(conceal=False, blink=False))
    return made


def _visible(found: re.Match[str]) -> str:
    character = found[0]
    return character if character.isprintable() else f"\u2039U+{ord(character):04X}\u203a"


def episode_parts(episode: Page, turns: Iterable[Page]) -> Iterator[RenderableType]:
    """Yields an episode in parts: heading, prompt, turns, patch and grade.

    Args:
        episode: The page of the episode.
        turns: All of its turns.
    """
    yield _heading(episode)
    for message in episode["prompt"]:
        yield _rule(str(message["role"]))
        yield _body(message["content"], "dim")
    for turn in turns:
        yield _turn(turn)
    yield from _end(episode)


def difference_parts(
    first: Page, second: Page, first_turns: Sequence[Page], second_turns: Sequence[Page]
) -> Iterator[RenderableType]:
    """Yields two episodes side by side, from the first turn on that differs.

    Args:
        first: The page of an episode.
        second: The page of another one.
        first_turns: All turns of the first.
        second_turns: All turns of the second.
    """
    yield _columns(_heading(first), _heading(second))
    pairs = [*zip_longest(first_turns, second_turns)]
    same = next((i for i, (a, b) in enumerate(pairs) if _digest(a) != _digest(b)), len(pairs))
    yield _rule(f"{same} equal turns" + (", then the first difference" if pairs[same:] else ""))
    for pair in pairs[same:]:
        yield _columns(*(_turn(turn) if turn else Text("") for turn in pair))
    yield _columns(Group(*_end(first)), Group(*_end(second)))


def _digest(turn: Page | None) -> str | None:
    return None if turn is None else turn["digest"]


def _columns(left: RenderableType, right: RenderableType) -> Table:
    table = Table(box=None, expand=True, show_header=False, padding=(0, 1))
    table.add_column(ratio=1, overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    table.add_row(left, right)
    return table


def _rule(title: str, *details: object) -> Text:
    shown = " · ".join(str(detail) for detail in details if detail not in ("", None))
    return Text.assemble("\n── ", (_plain(title), "bold"), " ", (_plain(shown), "dim"))


def _plain(text: object) -> str:
    return coloured(str(text)).plain.replace("\n", " ")


def _body(text: Page, style: str = "") -> Text:
    body = coloured(text["text"])
    body.stylize_before(style)
    if left := text["total"] - len(text["text"]):
        body.append(f"\n… {left:,} more characters; `coding-gym view` shows them", "dim italic")
    return body


def _heading(episode: Page) -> Text:
    mark, colour = _MARKS[episode["outcome"]]
    reason = (episode["grade"] or {}).get("reason") or episode["error_class"]
    usage = episode["usage"].items()
    facts = {
        "run": episode["run"],
        "agent": episode["agent"],
        "model": episode["model"],
        "toolset": episode["toolset"],
        "seed": episode["seed"],
        "ended by": episode["stop_reason"],
        "used": ", ".join(f"{_plain(value)} {name}" for name, value in usage),
        "cost": None if episode["cost"] is None else number(episode["cost"]),
        "took": f"{number(episode['duration_s'])} s",
        "begun": episode["started_at"],
    }
    heading = Text.assemble(
        (f"{mark} {_plain(episode['outcome'])}", f"bold {colour}"),
        f" ({_plain(reason)})  " if reason else "  ",
        (_plain(episode["task"]), "bold"),
        f" attempt {episode['attempt']}",
    )
    for name, fact in facts.items():
        if fact not in ("", None):
            heading.append(f"\n  {name:9}", "dim").append(_plain(fact))
    return heading


def _turn(turn: Page) -> Group:
    parts: list[RenderableType] = [_rule(f"turn {turn['number']}", *_turn_details(turn))]
    if turn["thought"]["text"]:
        parts.append(_body(turn["thought"], "italic"))
    elif not turn["calls"]:
        parts.append(_body(turn["action"]))
    for call in turn["calls"]:
        parts.append(_call(call))
        if call["output"] is not None:
            parts.append(_body(call["output"]))
    if turn["observation"]["text"]:
        parts.append(_body(turn["observation"], "dim"))
    return Group(*parts)


def _turn_details(turn: Page) -> Iterator[str]:
    model = turn["model"] or {}
    yield f"{number(turn['duration_s'])} s"
    tokens = [model.get(name) for name in ("prompt_tokens", "completion_tokens")]
    if None not in tokens:
        yield "{:,} + {:,} tokens".format(*tokens)
    if turn["reward"]:
        yield f"reward {number(turn['reward'])}"


def _call(call: Page) -> Text:
    failed = call["error"] or call["ok"] is False
    line = Text.assemble(("✘ " if failed else "▸ ", "red" if failed else "cyan"))
    line.append(_plain(call["name"]), "bold cyan")
    for name, value in call["arguments"].items():
        line.append(f"\n  {_plain(name)}: ", "cyan").append_text(_body(value))
    if call["error"]:
        line.append(f"\n  {_plain(call['error'])}", "red")
    return line


def _end(episode: Page) -> Iterator[RenderableType]:
    if episode["error"]["text"]:
        yield _rule("error", episode["error_class"])
        yield _body(episode["error"], "red")
    yield _rule("patch")
    yield _patch(episode["patch"]) if episode["patch"]["text"] else Text("empty", "dim")
    if (grade := episode["grade"]) is None:
        return
    yield _rule("grade", grade["reason"], f"{number(grade['duration_s'])} s")
    if grade["detail"]:
        yield coloured(grade["detail"])
    for path in grade["dropped_paths"]:
        yield Text(f"not graded: {_plain(path)}", "yellow")
    for test in grade["tests"]:
        passed = test["status"] == "passed" and not test["why"]
        mark, colour = _MARKS["resolved" if passed else "unresolved"]
        notes = (test["list"], test["level"], "" if passed else test["why"] or test["status"])
        shown = " · ".join(_plain(note) for note in notes if note)
        yield Text.assemble((mark, colour), f" {_plain(test['test'])}  ", (shown, "dim"))


_LINES = (("+++", "bold"), ("---", "bold"), ("+", "green"), ("-", "red"), ("@@", "cyan"))


def _patch(patch: Page) -> Text:
    lines = _body(patch).split("\n")
    for line in lines:
        style = next((s for start, s in _LINES if line.plain.startswith(start)), "")
        line.stylize(style)
    return Text("\n").join(lines)
