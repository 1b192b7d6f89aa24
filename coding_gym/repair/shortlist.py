"""The candidates that a menu offers for one program, found once per process and then remembered."""

import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from coding_gym.errors import InvalidArgumentError
from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import Baseline, Commands, Localisation, localise
from coding_gym.repair.menu_features import CANDIDATE_FEATURES, static_features
from coding_gym.repair.places import listing_command, places, viewing_commands
from coding_gym.sandbox.protocol import Sandbox

_log = logging.getLogger(__name__)

_TIMEOUT_S = 180.0  # of one command; the survey limits itself to half of that
_TOTAL_S = 300.0  # of all commands: what runs in the sandbox could ask for ever more of them
_MAX_REMEMBERED = 256


@dataclass(frozen=True, slots=True, eq=False)
class Shortlist:
    """The likeliest candidates of one program. Small: syntax trees are not kept.

    Attributes:
        baseline: How the visible tests go; None where they could not be run.
        candidates: The candidates, the likeliest first.
        features: Theirs as `static_features` gives them.
        texts: The program's files by path.
        listing: The command that lists failing tests and suspicious lines.
        views: The commands that show suspicious places, the most suspicious first.
    """

    baseline: Baseline | None
    candidates: tuple[Candidate, ...]
    features: NDArray[np.float32]
    texts: Mapping[str, str]
    listing: str
    views: tuple[str, ...]

    @classmethod
    def of(cls, found: Localisation | None, num_slots: int) -> "Shortlist":
        """Returns the shortlist of what was found, with so many candidates at most."""
        if found is None:
            nothing = np.zeros((num_slots, len(CANDIDATE_FEATURES)), np.float32)
            return cls(None, (), nothing, {}, listing_command(None), ())
        candidates = tuple(islice(found.candidates(), num_slots))
        return cls(
            baseline=found.baseline,
            candidates=candidates,
            features=static_features(candidates, found.spectrum, num_slots),
            texts={path: source.text for path, source in found.sources.items()},
            listing=listing_command(found),
            views=tuple(viewing_commands(places(found))),
        )


class Shortlists:
    """Finds shortlists, and remembers them for whoever asks for the same again.

    Threads that ask for one at the same time wait for the first of them to find it.

    Args:
        find: Finds one in an open sandbox, from pytest's arguments and a number of candidates.
        max_remembered: Those that were not asked for the longest time are forgotten.
    """

    def __init__(
        self,
        find: Callable[[Sandbox, str, int], Shortlist] | None = None,
        max_remembered: int = _MAX_REMEMBERED,
    ) -> None:
        self._find = find or find_shortlist
        self._max_remembered = max_remembered
        self._entries: OrderedDict[tuple[str, str, int], _Entry] = OrderedDict()
        self._lock = Lock()
        os.register_at_fork(after_in_child=self.after_fork)

    def get(
        self,
        key: str,
        open_sandbox: Callable[[], Sandbox],
        test_arguments: str,
        num_candidates: int,
    ) -> Shortlist:
        """Returns a program's shortlist.

        Args:
            key: Names the program and its environment, as a template's key does.
            open_sandbox: Opens a sandbox of the program at base, where it is not known yet.
            test_arguments: Pytest's arguments for the visible tests.
            num_candidates: How many candidates at most.

        Raises:
            MachineryError: The sandbox could not be opened, or died; the next call tries again.
        """
        with self._lock:
            entry = self._entries.setdefault((key, test_arguments, num_candidates), _Entry())
            self._entries.move_to_end((key, test_arguments, num_candidates))
            while len(self._entries) > self._max_remembered:
                self._entries.popitem(last=False)
        with entry.lock:
            if entry.shortlist is None:
                with open_sandbox() as sandbox:
                    entry.shortlist = self._find(sandbox, test_arguments, num_candidates)
            return entry.shortlist

    def after_fork(self) -> None:
        """Frees the locks, in a child process: the threads that held them stayed in the parent."""
        self._lock = Lock()
        for entry in self._entries.values():
            entry.lock = Lock()


class _Entry:
    def __init__(self) -> None:
        self.lock = Lock()
        self.shortlist: Shortlist | None = None


def find_shortlist(sandbox: Sandbox, test_arguments: str, num_candidates: int) -> Shortlist:
    """Finds a program's shortlist, in a sandbox that nothing else is done in.

    Raises:
        SandboxError: The sandbox died.
    """
    found = _run_all(sandbox, localise(test_arguments))
    if found is None:
        _log.warning("the visible tests could not be run with pytest %s", test_arguments)
    return Shortlist.of(found, num_candidates)


def _run_all(sandbox: Sandbox, commands: Commands) -> Localisation | None:
    end_s = time.monotonic() + _TOTAL_S
    try:
        command = next(commands)
        while (left_s := end_s - time.monotonic()) > 0:
            output = sandbox.run(command, timeout_s=min(left_s, _TIMEOUT_S)).output
            command = commands.send(output)
    except StopIteration as end:
        found: Localisation | None = end.value
        return found
    except InvalidArgumentError:  # names of files that make a command longer than any may be
        return None
    return None
