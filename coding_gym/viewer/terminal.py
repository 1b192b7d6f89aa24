"""Episodes in a terminal: one turn by turn, or two side by side from their first difference.

The input is the JSON of `coding_gym.viewer.pages`. Of the control sequences in what programs wrote
only colours reach the terminal; the others are left out. All other control characters become
visible marks, and so do those of sequences in what the model wrote.
"""

import re
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from coding_gym.arguments import nearest
from coding_gym.errors import UnknownNameError
from coding_gym.evaluation.report import number
from coding_gym.viewer.index import ESCAPE
from coding_gym.viewer.pages import Json, Run

# Bold, dim, underlined, and colours of the foreground that no background hides.
_CODE = "0?[0124]|22|24|3[1-69]|49|9[0-6]"
_COLOUR = re.compile(rf"(\x1b\[(?:(?:{_CODE})(?:;(?:{_CODE}))*)?m)")
_UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]")
_MARKS = {"resolved": ("✔", "green"), "unresolved": ("✘", "red"), "error": ("!", "yellow")}
_DIFF = (("+++", "bold"), ("---", "bold"), ("+", "green"), ("-", "red"), ("@@", "cyan"))


def read_episode(folder: Path, task: str, attempt: int | None = None) -> Json:
    """Returns the page of an episode with all of its turns.

    Args:
        folder: The run's folder.
        task: The task's id; "" for the only one.
        attempt: The attempt; None for the first one.

    Raises:
        UnknownNameError: The run has no such episode.
        InvalidArgumentError: The folder holds no run, or its record cannot be read.
    """
    run = Run(folder, folder.name)
    run.index.list_all()
    rows = run.index.query("SELECT task, min(attempt) AS attempt FROM episodes GROUP BY task")
    first = {row["task"]: row["attempt"] for row in rows}
    if not task and len(first) == 1:
        (task,) = first
    if task not in first:
        near = nearest(task, first)
        more = f" and {len(first) - 10} more" if len(first) > 10 else ""
        names = ", ".join(list(first)[:10]) + more
        hint = f"the nearest is {near!r}" if near else f"it has {names}"
        said = f"has no task {task!r}" if task else f"has {len(first)} tasks; name one"
        raise UnknownNameError(f"{folder} {said}; {hint}")
    attempt = first[task] if attempt is None else attempt
    episode = run.episode(task, attempt)
    while (start := len(episode["turns"])) < episode["num_turns"]:
        episode["turns"] += run.turns(task, attempt, start)["turns"]
    return episode


def coloured(text: str) -> Text:
    """Returns what a program wrote with its colours and no other effect on a terminal."""
    text = ESCAPE.sub(lambda found: found[0] if _COLOUR.fullmatch(found[0]) else "", text)
    pieces = _COLOUR.split(text)
    pieces[::2] = [_marked(piece).plain for piece in pieces[::2]]
    return Text.from_ansi("".join(pieces))


def _marked(text: str) -> Text:
    """Returns a text with visible marks for all control characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # what a bare one hides is displayed
    return Text(_UNUSUAL.sub(_visible, text))


def _visible(found: re.Match[str]) -> str:
    character = found[0]
    return character if character.isprintable() else f"\u2039U+{ord(character):04X}\u203a"


def episode_parts(episode: Json) -> Iterator[RenderableType]:
    """Yields an episode in parts: heading, prompt, turns, patch and grade."""
    yield _heading(episode)
    for message in episode["prompt"]:
        yield _rule(message["role"])
        yield _body(message["content"], "dim")
    yield from map(_turn, episode["turns"])
    yield from _end(episode)


def difference_parts(first: Json, second: Json) -> Iterator[RenderableType]:
    """Yields two episodes side by side, from the first turn on that differs."""
    yield _columns(_heading(first), _heading(second))
    pairs: list[tuple[Json, Json]] = [*zip_longest(first["turns"], second["turns"], fillvalue={})]
    different = (i for i, (a, b) in enumerate(pairs) if a.get("digest") != b.get("digest"))
    same = next(different, len(pairs))
    yield _rule(f"{same} equal turns" + (", then the first difference" if pairs[same:] else ""))
    for pair in pairs[same:]:
        yield _columns(*(_turn(turn) if turn else "" for turn in pair))
    yield _columns(Group(*_end(first)), Group(*_end(second)))


def _columns(*cells: RenderableType) -> Table:
    columns = (Column(ratio=1, overflow="fold") for _ in cells)
    table = Table.grid(*columns, expand=True, padding=(0, 2))
    table.add_row(*cells)
    return table


def _rule(title: str, *details: str) -> Text:
    return Text.assemble("\n── ", (_line(title), "bold"), (f" {' · '.join(details)}", "dim"))


def _line(text: object) -> str:
    return _marked(str(text)).plain.replace("\n", " ")


def _body(text: Json, style: str = "", written: Callable[[str], Text] = _marked) -> Text:
    body = written(text["text"].rstrip("\n"))
    body.stylize_before(style)
    if left := text["total"] - len(text["text"]):
        body.append(f"\n… {left:,} more characters; `coding-gym view` shows them", "dim italic")
    return body


def _heading(episode: Json) -> Text:
    mark, colour = _MARKS[episode["outcome"]]
    usage = ", ".join(f"{value} {name}" for name, value in episode["usage"].items())
    grade = episode["grade"]
    facts = {
        "reason": grade["reason"] if grade else episode["error_class"],
        "why": f"{grade['detail']:.300}" if grade and episode["outcome"] != "resolved" else "",
        **{name: episode[name] for name in ("run", "agent", "model", "toolset", "seed")},
        "ended by": episode["stop_reason"],
        "used": f"{usage}, {number(episode['duration_s'])} s",
        "cost": episode["cost"],
        "begun": episode["started_at"],
    }
    heading = Text.assemble(
        (f"{mark} {episode['outcome']} ", f"bold {colour}"),
        (_line(episode["task"]), "bold"),
        f" attempt {episode['attempt']}",
    )
    for name, fact in facts.items():
        if fact not in ("", None):
            heading.append(f"\n  {name:9}", "dim").append(_line(fact))
    return heading


def _turn(turn: Json) -> Group:
    model = turn["model"] or {}
    details = [f"{number(turn['duration_s'])} s"]
    tokens = [model.get(f"{kind}_tokens") for kind in ("prompt", "completion")]
    details += ["{} + {} tokens".format(*tokens)] if None not in tokens else []
    details += [f"reward {number(turn['reward'])}"] if turn["reward"] else []
    parts = [_rule(f"turn {turn['number']}", *details)]
    said = turn["thought"] if turn["thought"]["text"] or turn["calls"] else turn["action"]
    parts += [_body(said, "italic")] if said["text"] else []
    for call in turn["calls"]:
        parts.append(_call(call))
        parts += [_body(call["output"], written=coloured)] if call["output"] else []
    parts += [_body(turn["observation"], "dim", coloured)] if turn["observation"]["text"] else []
    return Group(*parts)


def _call(call: Json) -> Text:
    failed = call["error"] or call["ok"] is False
    line = Text.assemble(("✘ ", "red") if failed else ("▸ ", "cyan"))
    line.append(_line(call["name"]), "bold cyan")
    for name, value in call["arguments"].items():
        line.append(f"\n  {_line(name)}: ", "cyan").append_text(_body(value))
    return line.append(f"\n  {_line(call['error'])}", "red") if call["error"] else line


def _end(episode: Json) -> Iterator[RenderableType]:
    if episode["error"]["text"]:
        yield _rule("error", episode["error_class"])
        yield _body(episode["error"], "red", coloured)
    yield _rule("patch")
    yield _patch(episode["patch"])
    if grade := episode["grade"]:
        yield _rule("grade", grade["reason"], f"{number(grade['duration_s'])} s")
        yield coloured(grade["detail"])
        if challenge := grade["challenge"]:
            yield Text(f"tests of the bug: {_line(challenge)}", "dim")
        yield from (Text(f"not graded: {_line(path)}", "yellow") for path in grade["dropped_paths"])
        yield from map(_test, grade["tests"])


def _test(test: Json) -> Text:
    passed = test["status"] == "passed" and not test["why"]
    notes = (test["list"], "" if passed else test["why"] or test["status"])
    remarks = " · ".join(_line(note) for note in notes if note)
    mark = _MARKS["resolved" if passed else "unresolved"]
    return Text.assemble(mark, f" {_line(test['test'])}  ", (remarks, "dim"))


def _patch(patch: Json) -> Text:
    lines = _body(patch).split("\n")
    for line in lines:
        line.stylize(next((style for start, style in _DIFF if line.plain.startswith(start)), ""))
    return Text("\n").join(lines)
