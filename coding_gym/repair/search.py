"""The search for a repair: tries candidates in descending order of score."""

from collections.abc import Sequence
from itertools import islice

from coding_gym.repair.candidate_trials import CandidateTrials
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import Localisation
from coding_gym.synthesis.suite import SuiteSandbox

# Most searches reach this limit before the time limit, so results do not depend on the machine.
_MAX_CANDIDATES = 1000
_MAX_SEARCH_S = 45.0  # processor seconds
_EXTRA = 20  # candidates to try after the first that passes
# Small at first, so that little work is wasted if an early candidate passes.
_FIRST_BATCH, _MAX_BATCH = 30, 240


def find_repair(tests: SuiteSandbox, localisation: Localisation) -> Candidate | None:
    """Tries candidates until all visible tests pass with one, and then `_EXTRA` more.

    Args:
        tests: A sandbox with the program, used only for this purpose.
        localisation: The suspicious statements of the program.

    Returns:
        The preferred candidate with which all visible tests pass; None without one.

    Raises:
        SandboxError: The sandbox died.
    """
    texts = {path: source.text for path, source in localisation.sources.items()}
    trials = CandidateTrials(tests, localisation.baseline, texts)
    remaining, end_s = localisation.candidates(), tests.spent_s + _MAX_SEARCH_S
    num_tried, last, size = 0, _MAX_CANDIDATES, _FIRST_BATCH
    plausible: list[Candidate] = []
    while num_tried < last and tests.spent_s < end_s:
        batch = list(islice(remaining, min(size, last - num_tried)))
        if not batch:
            break
        for number, trial in enumerate(trials.run(batch)):
            if trial.is_plausible:
                last = last if plausible else num_tried + number + 1 + _EXTRA
                plausible.append(batch[number])
        num_tried += len(batch)
        size = min(2 * size, _MAX_BATCH)
    return next(iter(simplest(plausible)), None)


def simplest(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sorts candidates by preference.

    Templates that rarely pass tests by accident come first, then higher scores, then shorter edits.
    """
    return sorted(candidates, key=lambda c: (c.risk, -c.score, c.size, c.path, c.edits))
