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
    num_left, size = _MAX_CANDIDATES, _FIRST_BATCH
    num_tried = 0
    plausible: list[tuple[int, Candidate]] = []  # with their numbers, from 1
    while num_left > 0 and tests.spent_s < end_s:
        batch = list(islice(remaining, min(size, num_left)))
        if not batch:
            break
        numbered = enumerate(zip(batch, trials.run(batch), strict=True), num_tried + 1)
        plausible += [(n, candidate) for n, (candidate, trial) in numbered if trial.is_plausible]
        num_tried += len(batch)
        num_left -= len(batch)
        size = min(2 * size, _MAX_BATCH)
        if plausible:
            num_left = plausible[0][0] + _EXTRA - num_tried
    chosen = simplest([candidate for _, candidate in plausible])
    return chosen[0] if chosen else None


def simplest(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sorts candidates by preference.

    Templates that rarely pass tests by accident come first, then higher scores, then shorter edits.
    """
    return sorted(candidates, key=lambda c: (c.risk, -c.score, c.size, c.path, c.edits))
