"""Run by root: becomes an ordinary user, holds a backend to its claims, prints JSON.

Everything is imported, and every backend is used once, before the change of user: the package and
the interpreter that runs it may lie in a folder that is private to root. Only the processes of
sandboxes are started afterwards, by an interpreter and from a folder that everybody may read.
"""

import json
import os
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

from checks import claims, hold, sandbox_checks, sandbox_files
from repositories import write_files
from snapshot_scenes import BACKENDS, TEMPLATE, differences

from coding_gym.host import interpreters
from coding_gym.sandbox import Mount, SandboxBackend, SandboxSpec, landlock, zygotes
from coding_gym.sandbox.landlock import LandlockBackend
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.process import NoIsolationWarning
from coding_gym.sandbox.spec import Interpreter

# It starts the interpreter that runs this, which the user may not.
_NEEDS_THIS_INTERPRETER = "a_sandbox_ends_with_its_owner_however_that_dies"
# Commands of Landlock sandboxes run as their owner in any case; these checks are of what it may do.
_OF_THE_USER = ("_files", "_layers", "_isolation")


def checks(backend: SandboxBackend) -> dict[str, Any]:
    """Returns which conformance checks fail, and how."""
    failures = {}
    chosen = [
        check
        for check in sandbox_checks()
        if check.name != _NEEDS_THIS_INTERPRETER
        and (backend.name == "namespace" or check.run.__module__.endswith(_OF_THE_USER))
    ]
    probe = backend.probe()
    for check in chosen:
        try:
            hold(check, backend, missing=probe.missing)
        except Exception:  # noqa: BLE001 - the test shows it
            failures[check.name] = traceback.format_exc()
    return {"num_checks": len(chosen), "owner": backend.owner(), "failures": failures}


def snapshots(folder: Path, interpreter: Interpreter) -> dict[str, list[str]]:
    """Returns by backend which of a restored sandbox and of a fork are not as the first was."""
    layer = write_files(folder / "layer", TEMPLATE)
    tools = Mount(source=layer, target="/opt/tools")
    spec = SandboxSpec(layers=(layer,), mounts=(tools,), python=interpreter)
    return {name: differences(backend, spec) for name, backend in BACKENDS.items()}


def python_copy(folder: Path, uid: int) -> list[str]:
    """Returns the files of the copy that commands get of another user's interpreter."""
    place = landlock.reachable_python(folder / "python", (uid, uid))
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if not path.is_dir())


def _become(uid: int, folder: Path, interpreter: Interpreter) -> None:
    for module in (zygotes, claims, sandbox_files):
        vars(module)["default_interpreter"] = lambda: interpreter
    vars(zygotes)["MAIN"] = folder / "inside" / "__main__.py"
    tempfile.tempdir = str(folder)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def main(what: str, python: str, folder: str, uid: int) -> None:
    report: dict[str, Any]
    warnings.simplefilter("ignore", NoIsolationWarning)
    interpreter = interpreters.describe(Path(python))
    assert interpreter is not None
    backend = LandlockBackend() if what == "landlock" else NamespaceBackend()
    for one in (backend, BACKENDS["process"]):
        sandbox_checks()[0](one)
    _become(uid, Path(folder), interpreter)
    if what == "python":
        report = {"owner": (os.getuid(), os.getgid()), "files": python_copy(Path(folder), int(uid))}
    elif what == "snapshots":
        report = {
            "owner": (os.getuid(), os.getgid()),
            "differences": snapshots(Path(folder), interpreter),
        }
    else:
        report = checks(backend)
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
