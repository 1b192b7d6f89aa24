"""How an attempt at a repair is judged by the tests."""

from __future__ import annotations

from typing import Any, NamedTuple

PLAUSIBLE = "!"  # every failing test passes and no other one broke
BREAKS = "*"  # every failing test passes, but another one broke
SOME = "+"  # some failing test passes
CHANGED = "~"  # a failing test fails in another way
SAME = "="  # nothing changed, or something broke
DIED = "t"  # the process died or took too long
UNTRIED = "-"  # no time was left


class Verdict(NamedTuple):
    """How one attempt ended.

    Attributes:
        code: One of this module's codes.
        fixed: Indices of the failing tests that pass.
    """

    code: str
    fixed: list[int]


class Judge:
    """Compares runs with the state of things before any edit.

    Args:
        state: What the driver remembers: ids of ``failing`` and ``passing`` tests, ``signatures``
            of the failing ones.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self.failing: list[str] = state["failing"]
        self._passing = set(state["passing"])
        self._signatures: dict[str, str] = state["signatures"]

    def is_broken(self, test: str, outcome: str | None) -> bool:
        """Whether a test that passed before does not any more."""
        return test in self._passing and outcome != "passed"

    def judge(
        self, outcomes: dict[str, str], signatures: dict[str, str], *, all_ran: bool
    ) -> Verdict:
        """Returns the verdict on a run; only one of all tests can be plausible."""
        fixed = [i for i, test in enumerate(self.failing) if outcomes.get(test) == "passed"]
        broken = all_ran and any(self.is_broken(t, outcomes.get(t)) for t in self._passing)
        if len(fixed) == len(self.failing):
            return Verdict(PLAUSIBLE if all_ran and not broken else BREAKS, fixed)
        if fixed:
            return Verdict(SAME if broken else SOME, fixed)
        changed = any(signatures.get(t, "") != self._signatures.get(t) for t in self.failing)
        return Verdict(CHANGED if changed and not broken else SAME, fixed)
