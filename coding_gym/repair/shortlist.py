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
    """The likeliest candidates of one program, without its syntax trees.

    Attributes:
        baseline: How the visible tests go; None where they could not be run.
        candidates: The candidates, the likeliest first.
        features: Theirs as `static_features` gives them.
        texts: The files that candidates change, by path.
    """

    baseline: Baseline | None
    candidates: tuple[Candidate, ...]
    features: NDArray[np.float32]
    texts: Mapping[str, str]

    @classmethod
    def of(cls, found: Localisation | None, num_slots: int) -> "Shortlist":
        """Returns the shortlist of what was found, with so many candidates at most."""
        if found is None:
            nothing = np.zeros((num_slots, len(CANDIDATE_FEATURES)), np.float32)
            return cls(None, (), nothing, {})
        candidates = tuple(islice(found.candidates(), num_slots))
        return cls(
            baseline=found.baseline,
            candidates=candidates,
            features=static_features(candidates, found.spectrum, num_slots),
            texts={path: found.sources[path].text for path in {c.path for c in candidates}},
        )


def find_shortlist(tests: SuiteSandbox, test_arguments: str, num_candidates: int) -> Shortlist:
    """Finds a program's shortlist.

    Args:
        tests: A sandbox with the program at base, in which nothing else is done.
        test_arguments: Pytest's arguments for the visible tests.
        num_candidates: How many candidates at most.

    Raises:
        SandboxError: The sandbox died.
    """
    found = localise(tests, test_arguments)
    if found is None:
        _log.warning("the visible tests could not be run with pytest %s", test_arguments)
    shortlist = Shortlist.of(found, num_candidates)
    if found is not None and not shortlist.candidates:
        why = "no template fits" if found.baseline.failing else "no visible test fails"
        _log.warning("no candidates for a repair: %s (pytest %s)", why, test_arguments)
    return shortlist
