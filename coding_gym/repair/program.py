"""The repair candidates of a program and their trials, shared by the episodes of a process."""

import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from coding_gym.process_cache import ProcessCache
from coding_gym.repair.candidate_trials import Trial, try_candidate
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import Baseline, Localisation, localise
from coding_gym.repair.menu_features import CANDIDATE_FEATURES, static_features
from coding_gym.synthesis.suite import Suite
from coding_gym.workspace import Template

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


_shortlists = ProcessCache[Shortlist](4096)
_trials = ProcessCache[Trial](1 << 17)


class CandidateProgram:
    """A program with its candidates and their trials; all episodes of the process share these.

    Both are computed on first use, in separate sandboxes with the base tree.

    Args:
        template: The program.
        backend: Name of the sandbox backend.
        arguments: Pytest's arguments for the visible tests.
        num_slots: Maximum number of candidates.
        has_own_pytest: See `coding_gym.task.Task.has_own_pytest`.
    """

    def __init__(
        self,
        template: Template,
        backend: str,
        arguments: str,
        num_slots: int,
        *,
        has_own_pytest: bool,
    ) -> None:
        self._template, self._backend = template, backend
        self._arguments, self._num_slots = arguments, num_slots
        self._has_own_pytest = has_own_pytest

    def shortlist(self) -> Shortlist:
        """Returns the candidates.

        Raises:
            SandboxError: The infrastructure failed.
        """
        return _shortlists.get(self._key, self._find)

    def trial(self, shortlist: Shortlist, number: int) -> Trial:
        """Returns the result of the visible tests with candidate ``number``.

        Raises:
            SandboxError: The infrastructure failed.
        """
        candidate = shortlist.candidates[number]
        return _trials.get((*self._key, candidate), lambda: self._try(shortlist, candidate))

    @property
    def _key(self) -> tuple[Hashable, ...]:
        template = self._template
        return self._backend, template.spec.image, template.key, self._arguments, self._num_slots

    def _find(self) -> Shortlist:
        localisation = localise(self._suite(), self._arguments)
        if localisation is None:
            _log.warning("the visible tests could not be run with pytest %s", self._arguments)
        shortlist = Shortlist.of(localisation, self._num_slots)
        if localisation is not None and not shortlist.candidates:
            has_failed = bool(localisation.baseline.failing)
            reason = "no template fits" if has_failed else "no visible test fails"
            _log.warning("no candidates for a repair: %s (pytest %s)", reason, self._arguments)
        return shortlist

    def _try(self, shortlist: Shortlist, candidate: Candidate) -> Trial:
        assert shortlist.baseline is not None  # noqa: S101 - no baseline, no candidates
        return try_candidate(self._suite(), shortlist.baseline, shortlist.texts, candidate)

    def _suite(self) -> Suite:
        spec = self._template.spec
        return Suite(spec, self._backend, has_own_pytest=self._has_own_pytest)
