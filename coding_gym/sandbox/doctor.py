"""Which backends work on this machine, why the others do not, and what would mend that."""

from coding_gym.sandbox.protocol import Probe
from coding_gym.sandbox.select import backend_names, get_backend


def diagnose() -> tuple[tuple[str, Probe], ...]:
    """Returns every backend's name and how its probe went.

    A probe opens a throw-away sandbox, runs a command in it and closes it, so what it says was
    seen, not concluded from versions or settings.
    """
    return tuple((name, get_backend(name).probe()) for name in backend_names())
