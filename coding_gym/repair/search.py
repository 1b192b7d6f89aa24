"""The search for a repair: tries candidates in descending order of score."""

from collections.abc import Sequence

from coding_gym.repair.candidate_trials import try_candidate
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import Localisation
from coding_gym.synthesis.suite import Suite

# Most searches reach this limit before the time limit, so results do not depend on the machine.
_MAX_CANDIDATES = 1000
_MAX_SEARCH_S = 75.0  # processor seconds
_EXTRA = 20  # candidates to try after the first that passes


def find_repair(suite: Suite, localisation: Localisation) -> Candidate | None:
    """Tries candidates until all visible tests pass with one, and then `_EXTRA` more.

    Args:
        suite: The visible tests of the program.
        localisation: The suspicious statements of the program.

    Returns:
        The preferred candidate with which all visible tests pass; None without one.

    Raises:
        GradingError, SandboxError: The infrastructure failed.
    """
    texts = {path: source.text for path, source in localisation.sources.items()}
    last, end_s = _MAX_CANDIDATES, suite.spent_s + _MAX_SEARCH_S
    plausible: list[Candidate] = []
    for number, candidate in enumerate(localisation.candidates()):
        if number == last or suite.spent_s > end_s:
            break
        if try_candidate(suite, localisation.baseline, texts, candidate).is_plausible:
            last = last if plausible else number + 1 + _EXTRA
            plausible.append(candidate)
    return next(iter(simplest(plausible)), None)


def simplest(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sorts candidates by preference.

    Templates that rarely pass tests by accident come first, then higher scores, then shorter edits.
    """
    return sorted(candidates, key=lambda c: (c.risk, -c.score, c.size, c.path, c.edits))
