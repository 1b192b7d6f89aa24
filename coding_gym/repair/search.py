"""The search for a repair: single edits batch by batch, then pairs, then a second look."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from coding_gym.mutation.source import Source
from coding_gym.repair import driver
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.pairs import Trial, pairs, simplest
from coding_gym.repair.probe.verdicts import BREAKS, CHANGED, PLAUSIBLE, SOME, UNTRIED

_EXTRA = 60  # candidates still tried after the first one that passes
_MAX_PAIRED = 40
_MAX_CHECKED = 3

Commands = Generator[str, str, None]
"""Yields shell commands and is sent their output."""


class Search:
    """Has the driver try candidates and remembers what came of them.

    Args:
        sources: The files that candidates change.
        num_failing: Failing tests to repair.
        seconds: Time for all trials.
        batch_size: Candidates per request.

    Attributes:
        trials: What was tried, in order.
    """

    def __init__(
        self, sources: Mapping[str, Source], num_failing: int, seconds: float, batch_size: int
    ) -> None:
        self.trials: list[Trial] = []
        self._sources = sources
        self._num_failing = num_failing
        self._seconds = seconds
        self._batch_size = batch_size

    def run(
        self, singles: Iterable[Candidate], max_singles: int, max_pairs: int
    ) -> Generator[str, str, Candidate | None]:
        """Returns the candidate to apply, or None."""
        yield from self._try_all(islice(singles, max_singles))
        if not self._ended(PLAUSIBLE):
            promising = self._ended(SOME, BREAKS) + self._ended(CHANGED)
            yield from self._try_all(islice(pairs(promising[:_MAX_PAIRED]), max_pairs))
        chosen = yield from self._checked(simplest(self._ended(PLAUSIBLE)), PLAUSIBLE)
        if chosen is None:
            chosen = yield from self._checked(self._partial(), SOME)
        return chosen

    def _ended(self, *codes: str) -> list[Trial]:
        return [trial for trial in self.trials if trial.code in codes]

    def _partial(self) -> list[Candidate]:
        """Returns single edits that make at least half of the failing tests pass."""
        found = [
            trial
            for trial in self._ended(SOME)
            if 2 * len(trial.fixed) >= self._num_failing and "+" not in trial.candidate.template
        ]
        return [trial.candidate for trial in sorted(found, key=lambda t: -len(t.fixed))]

    def _try_all(self, found: Iterable[Candidate]) -> Commands:
        remaining = iter(found)
        while batch := list(islice(remaining, self._batch_size)):
            reply = yield from self._try(batch, full=False)
            if reply is None:
                return
            for number, code in enumerate(reply["codes"]):
                fixed = frozenset(reply["fixed"].get(str(number), ()))
                self.trials.append(Trial(batch[number], code, fixed))
            if UNTRIED in reply["codes"] or PLAUSIBLE in reply["codes"]:
                return

    def _checked(
        self, found: Sequence[Candidate], code: str
    ) -> Generator[str, str, Candidate | None]:
        """Returns the first of the candidates that also holds in a fresh run of all tests."""
        for candidate in found[:_MAX_CHECKED]:
            reply = yield from self._try([candidate], full=True)
            if reply is not None and reply["codes"] == code:
                return candidate
        return None

    def _try(self, batch: Sequence[Candidate], *, full: bool) -> driver.Talk:
        request = driver.trial_request(
            batch, self._sources, seconds=self._seconds, extra=_EXTRA, full=full
        )
        reply = yield from driver.ask("try", request)
        return reply if reply is not None and _fits(reply, len(batch)) else None


def _fits(reply: Mapping[str, Any], num_tried: int) -> bool:
    """Whether a reply is one to so many candidates; the program under test can write others."""
    codes, fixed = reply.get("codes"), reply.get("fixed")
    if not isinstance(codes, str) or len(codes) > num_tried or not isinstance(fixed, dict):
        return False
    return all(isinstance(f, list) and {type(n) for n in f} <= {int} for f in fixed.values())
