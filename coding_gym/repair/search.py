"""The search for a repair: candidates in falling order of score, tried in a sandbox."""

from collections.abc import Sequence
from itertools import islice

from coding_gym.repair.candidate_trials import CandidateTrials, Trial
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import Localisation
from coding_gym.synthesis.suite import ReplyError, TestSandbox

# The counts end the search first, so that it does not depend on the machine.
_MAX_CANDIDATES = 1000
_MAX_SEARCH_S = 45.0  # of the processor
_EXTRA = 20  # candidates still tried after the first one that passes
# Small at first, so that little is in vain where one of the first passes.
_FIRST_BATCH, _MAX_BATCH = 30, 240
_MAX_PARTIAL = 3


class Search:
    """Tries the candidates of one program.

    Args:
        tests: A sandbox with the program, in which nothing else is done.
        found: Where the bug may be.

    Attributes:
        trials: What was tried, in order.
    """

    def __init__(self, tests: TestSandbox, found: Localisation) -> None:
        self.trials: list[Trial] = []
        self._tests, self._found = tests, found
        self._num_failing = len(found.baseline.failing)
        texts = {path: source.text for path, source in found.sources.items()}
        self._tried = CandidateTrials(tests, found.baseline, texts)
        self._end_s = tests.spent_s + _MAX_SEARCH_S

    def run(self) -> Candidate | None:
        """Returns the candidate to apply: the simplest that makes all visible tests pass.

        Without one it is a candidate that makes at least half of the failing tests pass and breaks
        none; None where there is none either.

        Raises:
            SandboxError: The sandbox died.
        """
        try:
            return self._search()
        except ReplyError:  # which the program may have brought about
            return None

    def _search(self) -> Candidate | None:
        remaining = islice(self._found.candidates(), _MAX_CANDIDATES)
        num_left, size = _MAX_CANDIDATES, _FIRST_BATCH
        while num_left > 0 and self._tests.spent_s < self._end_s:
            batch = list(islice(remaining, min(size, num_left)))
            if not batch:
                break
            self.trials += self._tried.run(batch)
            size = min(2 * size, _MAX_BATCH)
            plausible = [n for n, trial in enumerate(self.trials) if trial.is_plausible]
            num_left -= len(batch)
            if plausible:
                num_left = plausible[0] + 1 + _EXTRA - len(self.trials)
        chosen = simplest([trial.candidate for trial in self.trials if trial.is_plausible])
        return chosen[0] if chosen else self._partial()

    def _partial(self) -> Candidate | None:
        """Returns a candidate that makes at least half of the failing tests pass, breaking none."""
        half = [t for t in self.trials if t.num_fixed and 2 * t.num_fixed >= self._num_failing]
        half.sort(key=lambda trial: -trial.num_fixed)
        for trial in self._tried.run_all([t.candidate for t in half[:_MAX_PARTIAL]]):
            if trial.num_fixed and not trial.breaks_others:
                return trial.candidate
        return None


def simplest(found: Sequence[Candidate]) -> list[Candidate]:
    """Returns candidates, the one to prefer first.

    Templates that rarely pass tests by accident come before those that often do, higher scores
    before lower ones, less text before more.
    """
    return sorted(found, key=lambda c: (c.risk, -c.score, c.size, c.path, c.edits))
