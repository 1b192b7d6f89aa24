"""Which backends work on this machine, why the others do not, and what would mend that."""

import warnings
from dataclasses import dataclass
from typing import Any

from coding_gym.sandbox.cgroups import delegation
from coding_gym.sandbox.machine_limits import Shortage, shortages
from coding_gym.sandbox.process import NoIsolationWarning
from coding_gym.sandbox.protocol import Probe
from coding_gym.sandbox.remedies import step_remedy
from coding_gym.sandbox.select import AUTOMATIC, backend_names, get_backend
from coding_gym.sandbox.trial import Step, try_out

_DEFAULT_EPISODES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What is known of one backend.

    Attributes:
        name: Its name.
        probe: What it says of itself, having tried.
        steps: How a small episode in it went; none where it is not available.
    """

    name: str
    probe: Probe
    steps: tuple[Step, ...] = ()

    @property
    def works(self) -> bool:
        """Whether everything was tried and went well."""
        return self.probe.available and all(step.ok for step in self.steps)

    @property
    def failure(self) -> str:
        """What failed, and why; "" where nothing did."""
        failed = next((step for step in self.steps if not step.ok), None)
        if failed is not None:
            return f"could not {failed.name}: {failed.detail}"
        return "" if self.probe.available else self.probe.detail

    @property
    def remedy(self) -> str:
        """The command or option that would make it work; "" where it works."""
        failed = next((step for step in self.steps if not step.ok), None)
        return step_remedy(failed.name) if failed else self.probe.remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is known of this machine.

    Attributes:
        backends: One diagnosis per backend.
        automatic: The backend that ``"auto"`` means here; "" where none works.
        num_episodes: How many sandboxes at a time the limits were compared with.
        shortages: Limits that so many would meet.
        cgroups: Whether sandboxes get control groups of their own, and what would help if not.
    """

    backends: tuple[Diagnosis, ...]
    automatic: str
    num_episodes: int
    shortages: tuple[Shortage, ...]
    cgroups: str

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON-native values."""
        return {
            "automatic": self.automatic,
            "backends": {one.name: _backend_json(one) for one in self.backends},
            "num_episodes": self.num_episodes,
            "shortages": [
                {"limit": s.limit, "has": s.has, "needs": s.needs, "remedy": s.remedy}
                for s in self.shortages
            ],
            "cgroups": self.cgroups,
        }


def examine(*, num_episodes: int = _DEFAULT_EPISODES) -> Report:
    """Tries every backend out in throw-away sandboxes, and compares the machine's limits.

    Args:
        num_episodes: How many sandboxes should be open at a time.
    """
    backends = tuple(_examine(name) for name in backend_names())
    working = {one.name for one in backends if one.works}
    return Report(
        backends=backends,
        automatic=next((name for name in AUTOMATIC if name in working), ""),
        num_episodes=num_episodes,
        shortages=shortages(num_episodes),
        cgroups=delegation().detail,
    )


def diagnose() -> tuple[tuple[str, Probe], ...]:
    """Returns every backend's name and how its probe went.

    A probe opens a throw-away sandbox, runs a command in it and closes it, so what it says was
    seen, not concluded from versions or settings.
    """
    return tuple((name, get_backend(name).probe()) for name in backend_names())


def _examine(name: str) -> Diagnosis:
    backend = get_backend(name)
    probe = backend.probe()
    with warnings.catch_warnings():
        # The report itself says that `process` isolates nothing.
        warnings.simplefilter("ignore", NoIsolationWarning)
        steps = try_out(backend, missing=probe.missing) if probe.available else ()
    return Diagnosis(name=name, probe=probe, steps=steps)


def _backend_json(one: Diagnosis) -> dict[str, Any]:
    return {
        "works": one.works,
        "detail": one.probe.detail,
        "failure": one.failure,
        "remedy": one.remedy,
        "missing": [promise.name for promise in one.probe.missing],
        "steps": [
            {"name": s.name, "ok": s.ok, "detail": s.detail, "duration_s": round(s.duration_s, 4)}
            for s in one.steps
        ],
    }
