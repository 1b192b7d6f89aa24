"""The first place where two texts differ, to be read by people."""

from dataclasses import dataclass

_CONTEXT, _CHANGED, _WIDTH = 2, 6, 160  # lines before, lines of each side, characters of a line


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replay first differed from the record.

    Attributes:
        where: What differed, such as ``turn 3: observation``.
        recorded: What the record has.
        replayed: What came now.
    """

    where: str
    recorded: str
    replayed: str

    def __str__(self) -> str:
        return f"{self.where}\n{show(self.recorded, self.replayed)}"


def show(recorded: str, replayed: str) -> str:
    r"""Returns the first lines that differ, those of the record behind ``-``, the others ``+``.

    Long lines are cut to what is around the first character that differs, and what does not print
    is escaped, so that a difference in blanks or line ends can be seen.

    >>> print(show("one\ntwo\n", "one\ntoo\n"))
    line 2:
      one\n
    - two\n
    + too\n
    """
    old, new = recorded.splitlines(keepends=True), replayed.splitlines(keepends=True)
    same = _common(old, new)
    column = _common(old[same] if same < len(old) else "", new[same] if same < len(new) else "")
    start = max(0, column - _WIDTH // 2)
    shown = [f"line {same + 1}:"]
    shown += [f"  {_cut(line, 0)}" for line in old[max(0, same - _CONTEXT) : same]]
    for sign, lines in (("-", old[same:]), ("+", new[same:])):
        kept = lines[:_CHANGED]
        shown += [f"{sign} {_cut(line, 0 if i else start)}" for i, line in enumerate(kept)]
        if not lines:
            shown.append(f"{sign} (nothing more)")
        elif len(lines) > len(kept):
            shown.append(f"{sign} ({len(lines) - len(kept)} more lines)")
    return "\n".join(shown)


def _common(one: list[str] | str, two: list[str] | str) -> int:
    """Returns how many items at the start are the same."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(two)))


def _cut(line: str, start: int) -> str:
    part = line[start : start + _WIDTH]
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in part)
    before, after = "…" if start else "", "…" if start + _WIDTH < len(line) else ""
    return f"{before}{text}{after}"
