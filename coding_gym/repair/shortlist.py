"""The candidates that a menu offers for one program."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import Baseline, Localisation, localise
from coding_gym.repair.menu_features import CANDIDATE_FEATURES, static_features
from coding_gym.synthesis.suite import SuiteSandbox

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Shortlist:
    """The most likely candidates of one program, without its syntax trees.

    Attributes:
        baseline: The results of the visible tests; None if they could not be run.
        candidates: The candidates, the most likely first.
        features: Their `static_features`.
        texts: The files that candidates change, by path.
    """

    baseline: Baseline | None
    candidates: tuple[Candidate, ...]
    features: NDArray[np.float32]
    texts: Mapping[str, str]

    @classmethod
    def of(cls, localisation: Localisation | None, num_slots: int) -> "Shortlist":
        """Returns the shortlist of a localisation, with at most ``num_slots`` candidates."""
        if localisation is None:
            nothing = np.zeros((num_slots, len(CANDIDATE_FEATURES)), np.float32)
            return cls(None, (), nothing, {})
        candidates = tuple(islice(localisation.candidates(), num_slots))
        return cls(
            baseline=localisation.baseline,
            candidates=candidates,
            features=static_features(candidates, localisation.spectrum, num_slots),
            texts={c.path: localisation.sources[c.path].text for c in candidates},
        )


def find_shortlist(tests: SuiteSandbox, test_arguments: str, num_candidates: int) -> Shortlist:
    """Finds a program's shortlist.

    Args:
        tests: A sandbox with the program at base, used only for this purpose.
        test_arguments: Pytest's arguments for the visible tests.
        num_candidates: Maximum number of candidates.

    Raises:
        SandboxError: The sandbox died.
    """
    localisation = localise(tests, test_arguments)
    if localisation is None:
        _log.warning("the visible tests could not be run with pytest %s", test_arguments)
    shortlist = Shortlist.of(localisation, num_candidates)
    if localisation is not None and not shortlist.candidates:
        reason = "no template fits" if localisation.baseline.failing else "no visible test fails"
        _log.warning("no candidates for a repair: %s (pytest %s)", reason, test_arguments)
    return shortlist
