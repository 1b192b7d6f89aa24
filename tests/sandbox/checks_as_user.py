"""Run by root: becomes an ordinary user, runs the conformance checks, prints what failed as JSON.

Everything is imported, and one check is run, before the change of user: the package and the
interpreter that runs it may lie in a folder that is private to root. Only the zygote is started
afterwards, by an interpreter and from a folder that everybody may read.
"""

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

from coding_gym.sandbox import interpreters, standalone, zygote_process
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.testing import claims, hold, sandbox_checks

# They start the interpreter that runs this, which the user may not.
_NEED_THIS_INTERPRETER = {"a_sandbox_ends_with_its_owner_however_that_dies"}


def main(python: str, folder: str, uid: int) -> None:
    backend = NamespaceBackend()
    checks = [check for check in sandbox_checks() if check.name not in _NEED_THIS_INTERPRETER]
    checks[0](backend)
    found = interpreters._ask(Path(python))
    assert found is not None
    for module in (standalone, claims):
        module.default_interpreter = lambda: found
    zygote_process._MAIN = Path(folder) / "zygote" / "__main__.py"
    tempfile.tempdir = folder
    os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    failures = {}
    missing = backend.probe().missing
    for check in checks:
        try:
            hold(check, backend, missing=missing)
        except Exception:  # noqa: BLE001 - the test shows it
            failures[check.name] = traceback.format_exc()
    report = {"owner": backend.owner(), "num_checks": len(checks), "failures": failures}
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
