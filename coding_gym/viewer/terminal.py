"""An episode in a terminal, turn by turn.

Colours in the output of programs are kept; other control sequences are removed. The console of
`coding_gym.cli.console` replaces all other control characters with spaces.
"""

import re
from collections import Counter
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from coding_gym.calls import ToolCall, ToolResult
from coding_gym.evaluation.report import number
from coding_gym.grade import Grade, TestStatus
from coding_gym.trajectory import Trajectory, Turn
from coding_gym.viewer import turns

_MAX_TEXT = 20_000  # characters
# Bold, dim, underlined, and foreground colours; not black and white, which a background hides.
_CODE = "0?[0124]|22|24|3[1-69]|49|9[0-6]"
_COLOUR = re.compile(rf"(\x1b\[(?:(?:{_CODE})(?:;(?:{_CODE}))*)?m)")
_NOT_FAILED = (TestStatus.PASSED, TestStatus.UNDECIDED)
_MARKS = {
    "resolved": ("✔", "green"),
    "unresolved": ("✘", "red"),
    "error": ("!", "yellow"),
    "hacked": ("⚑", "red"),  # an impossible task whose impossible test passed
    "impossible": ("✘", "blue"),  # any other attempt at an impossible task
}


def coloured(text: str) -> Text:
    """Returns the output of a program with its colours and without other control sequences."""
    text = turns.ESCAPE.sub(lambda match: match[0] if _COLOUR.fullmatch(match[0]) else "", text)
    pieces = _COLOUR.split(text.replace("\r", "\n"))  # "\r" would hide the text before it
    pieces[::2] = [piece.replace("\x1b", " ") for piece in pieces[::2]]
    return Text.from_ansi("".join(pieces))


def episode_parts(record: Trajectory) -> Iterator[RenderableType]:
    """Yields the parts of an episode: heading, prompt, turns, patch and grade."""
    yield _heading(record)
    for message in turns.prompt(record):
        yield _rule(message["role"])
        yield _body(message["content"], "dim")
    for index, (turn, thought, opening) in enumerate(turns.with_thoughts(record)):
        if opening:
            yield _rule("new prompt")
            yield _body(opening, "dim")
        yield from _turn(index, turn, thought)
    if record.error:
        yield _rule("error", record.error_class)
        yield _body(record.error, "red")
    yield _rule("patch")
    yield Syntax(record.patch[:_MAX_TEXT], "diff", background_color="default")
    if record.grade:
        yield from _grade(record.grade)


def _rule(title: str, *details: str) -> Text:
    return Text.assemble("\n── ", (_line(title), "bold"), (f" {' · '.join(details)}", "dim"))


def _line(text: object) -> str:
    return " ".join(str(text).splitlines())


def _body(text: str, style: str = "", *, is_output: bool = False) -> Text:
    shown = text[:_MAX_TEXT].rstrip("\n")
    body = coloured(shown) if is_output else Text(shown)
    body.stylize_before(style)
    if (left := len(text) - _MAX_TEXT) > 0:
        body.append(f"\n… {left:,} more characters; `coding-gym view` displays them", "dim italic")
    return body


def _heading(record: Trajectory) -> Text:
    mark, colour = _MARKS[turns.outcome(record)]
    usage = ", ".join(f"{value} {name}" for name, value in record.usage.items())
    grade = record.grade
    facts = {
        "reason": grade.reason if grade else record.error_class,
        **{name: getattr(record, name) for name in ("agent", "model", "toolset", "seed")},
        "ended by": record.stop_reason,
        "used": f"{usage}, {number(record.duration_s)} s",
        "cost": record.cost,
        "started": record.started_at,
    }
    heading = Text.assemble(
        (f"{mark} {turns.outcome(record)} ", f"bold {colour}"),
        (_line(record.task_id), "bold"),
        f" attempt {record.attempt}",
    )
    for name, fact in facts.items():
        if fact not in ("", None):
            heading.append(f"\n  {name:9}", "dim").append(_line(fact))
    return heading


def _turn(index: int, turn: Turn, thought: str) -> Iterator[RenderableType]:
    reward = [f"reward {number(turn.reward)}"] if turn.reward else []
    reply = [_line(note)] if (note := turns.reply_note(turn)) else []
    yield _rule(f"turn {index}", *reply, f"{number(turn.duration_s)} s", *reward)
    if thought:
        yield _body(thought, "italic")
    results = (*turn.results, *[None] * len(turn.calls))
    for call, result in zip(turn.calls, results, strict=False):
        yield _call(call, result)
    if other := turns.observation(turn):
        yield _body(other, "dim", is_output=True)


def _call(call: ToolCall, result: ToolResult | None) -> Group:
    failed = call.error or (result and result.ok is False)
    line = Text.assemble(("✘ ", "red") if failed else ("▸ ", "cyan"))
    line.append(_line(call.name), "bold cyan")
    for name, value in call.arguments.items():
        line.append(f"\n  {_line(name)}: ", "cyan").append_text(_body(turns.argument_text(value)))
    if call.error:
        line.append(f"\n  {_line(call.error)}", "red")
    return Group(line, _body(result.content, is_output=True)) if result else Group(line)


def _grade(grade: Grade) -> Iterator[RenderableType]:
    yield _rule("grade", grade.reason, f"{number(grade.duration_s)} s")
    yield coloured(grade.detail)
    if grade.challenge:
        yield Text(f"fail-to-pass tests: {grade.challenge}", "dim")
    for path in grade.dropped_paths:
        if path not in grade.detail:  # a detail names the first paths
            yield Text(f"not graded: {_line(path)}", "yellow")
    lists = {"fail_to_pass": grade.fail_to_pass, "pass_to_pass": grade.pass_to_pass}
    for name, statuses in lists.items():
        for test, status in sorted(statuses.items(), key=lambda one: one[1] in _NOT_FAILED):
            if status != TestStatus.UNDECIDED:
                mark = _MARKS["resolved" if status == TestStatus.PASSED else "unresolved"]
                yield Text.assemble(mark, f" {_line(test)}  ", (f"{name} · {status}", "dim"))
        if num_undecided := Counter(statuses.values())[TestStatus.UNDECIDED]:
            text = f"· {num_undecided} tests of {name} undecided: the grade is known without them"
            yield Text(text, "dim")
