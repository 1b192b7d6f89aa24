"""The repair candidates of a program and their trials, shared by the episodes of a process."""

import logging
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from coding_gym.errors import InfrastructureError
from coding_gym.process_cache import ProcessCache
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import Baseline, Localisation, localise
from coding_gym.repair.menu_features import CANDIDATE_FEATURES, static_features
from coding_gym.repair.search import Trial, try_candidate
from coding_gym.synthesis.suite import Suite
from coding_gym.task import Task
from coding_gym.workspace import Template

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, eq=False)
class Shortlist:
    """The most likely candidates of one program, without its syntax trees.

    Attributes:
        baseline: The results of the visible tests; None if they could not be run.
        candidates: The candidates, the most likely first.
        features: The `static_features` of the candidates.
        texts: The text of each file that a candidate changes, by path.
    """

    baseline: Baseline | None
    candidates: tuple[Candidate, ...]
    features: NDArray[np.float32]
    texts: Mapping[str, str]

    @classmethod
    def of(cls, localisation: Localisation | None, num_slots: int) -> "Shortlist":
        """Returns the shortlist of a localisation, with at most ``num_slots`` candidates."""
        if localisation is None:
            features = np.zeros((num_slots, len(CANDIDATE_FEATURES)), np.float32)
            return cls(None, (), features, {})
        candidates = tuple(islice(localisation.candidates(), num_slots))
        return cls(
            baseline=localisation.baseline,
            candidates=candidates,
            features=static_features(candidates, localisation.spectrum, num_slots),
            texts={c.path: localisation.sources[c.path].text for c in candidates},
        )


_shortlists = ProcessCache[Shortlist](4096)
_trials = ProcessCache[Trial](1 << 17)


class CandidateProgram:
    """The candidates of one program, and their trials: test runs with one candidate.

    All episodes of the process share the results, which are computed on first use, in separate
    sandboxes. After an infrastructure failure, there are no candidates, and every trial fails.

    Args:
        task: The task of the program.
        template: The template of the episode's sandbox; None if the episode has no sandbox.
        backend: Name of the sandbox backend.
        num_slots: Maximum number of candidates.
        on_failure: Called with an infrastructure failure.
    """

    def __init__(
        self,
        task: Task,
        template: Template | None,
        backend: str,
        num_slots: int,
        on_failure: Callable[[InfrastructureError], None],
    ) -> None:
        self._num_slots, self._on_failure = num_slots, on_failure
        self._suite: Suite | None = None
        self._key: tuple[Hashable, ...] = ()
        if template is not None:
            self._suite = Suite(task, template, backend)
            image, command = template.spec.image, task.visible_test_command
            self._key = backend, image, template.key, command, num_slots

    def shortlist(self) -> Shortlist:
        """Returns the shortlist; it is empty after an infrastructure failure."""
        empty_shortlist = Shortlist.of(None, self._num_slots)
        return self._get_cached(_shortlists, self._key, self._find, empty_shortlist)

    def trial(self, shortlist: Shortlist, number: int) -> Trial:
        """Returns the result of the visible tests with candidate ``number``."""
        baseline, candidate = shortlist.baseline, shortlist.candidates[number]
        assert baseline is not None  # noqa: S101 - candidates imply a baseline
        return self._get_cached(
            _trials,
            (*self._key, candidate),
            lambda suite: try_candidate(suite, baseline, shortlist.texts, candidate),
            Trial(breaks_others=True),
        )

    def _find(self, suite: Suite) -> Shortlist:
        localisation, command = localise(suite), suite.task.visible_test_command
        if localisation is None:
            _log.warning("the visible tests could not be run with pytest: %s", command)
        shortlist = Shortlist.of(localisation, self._num_slots)
        if localisation is not None and not shortlist.candidates:
            has_failed = bool(localisation.baseline.failing)
            reason = "no template fits" if has_failed else "no visible test fails"
            _log.warning("no candidates for a repair: %s (%s)", reason, command)
        return shortlist

    def _get_cached(
        self,
        cache: ProcessCache[_T],
        key: Hashable,
        compute: Callable[[Suite], _T],
        fallback: _T,
    ) -> _T:
        suite = self._suite
        if suite is None:
            return fallback
        try:
            return cache.get(key, lambda: compute(suite))
        except InfrastructureError as failure:
            self._suite = None
            self._on_failure(failure)
        return fallback
