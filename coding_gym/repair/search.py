"""The search for a repair: candidates tried in falling order of score."""

from collections.abc import Sequence
from itertools import islice

from coding_gym.repair.candidate_trials import CandidateTrials, Trial
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import Localisation
from coding_gym.synthesis.suite import ReplyError, TestSandbox

# The counts end most searches first, so that they do not depend on the machine.
_MAX_CANDIDATES = 1000
_MAX_SEARCH_S = 45.0  # of the processor
_EXTRA = 20  # candidates still tried after the first one that passes
# Small at first, so that little is in vain where one of the first passes.
_FIRST_BATCH, _MAX_BATCH = 30, 240


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
        texts = {path: source.text for path, source in found.sources.items()}
        self._tried = CandidateTrials(tests, found.baseline, texts)
        self._end_s = tests.spent_s + _MAX_SEARCH_S

    def run(self) -> Candidate | None:
        """Tries candidates until one makes all visible tests pass, and a few more.

        Returns:
            The simplest of those that make all visible tests pass; None for none.

        Raises:
            SandboxError: The sandbox died.
        """
        remaining = self._found.candidates()
        num_left, size = _MAX_CANDIDATES, _FIRST_BATCH
        while num_left > 0 and self._tests.spent_s < self._end_s:
            batch = list(islice(remaining, min(size, num_left)))
            if not batch:
                break
            try:
                self.trials += self._tried.run(batch)
            except ReplyError:  # the program itself can cause this
                break
            size = min(2 * size, _MAX_BATCH)
            plausible = [n for n, t in enumerate(self.trials, 1) if t.is_plausible]
            num_left -= len(batch)
            if plausible:
                num_left = plausible[0] + _EXTRA - len(self.trials)
        chosen = simplest([trial.candidate for trial in self.trials if trial.is_plausible])
        return chosen[0] if chosen else None


def simplest(found: Sequence[Candidate]) -> list[Candidate]:
    """Returns candidates, the one to prefer first.

    Templates that rarely pass tests by accident come before those that often do, higher scores
    before lower ones, less text before more.
    """
    return sorted(found, key=lambda c: (c.risk, -c.score, c.size, c.path, c.edits))
