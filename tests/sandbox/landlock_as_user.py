"""Run by root: becomes an ordinary user, runs the conformance checks on Landlock, prints JSON.

Everything is imported, and one sandbox opened, before the change of user: the package and the
interpreter that runs it may lie in a folder that is private to root. Only the processes of
sandboxes are started afterwards, by an interpreter and from a folder that everybody may read.
"""

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

from coding_gym.sandbox import interpreters, standalone
from coding_gym.sandbox.landlock import LandlockBackend, guarded
from coding_gym.testing import claims, hold, sandbox_checks, sandbox_files


def main(python: str, folder: str, uid: int) -> None:
    backend = LandlockBackend()
    checks = sandbox_checks()
    assert backend.probe().available
    found = interpreters._ask(Path(python))
    assert found is not None
    for module in (standalone, claims, sandbox_files):
        vars(module)["default_interpreter"] = lambda: found
    guarded._MAIN = Path(folder) / "zygote" / "landlock" / "__main__.py"
    tempfile.tempdir = folder
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # Its own interpreter and package are out of its reach now, and so are new owners.
    left_out = {"a_sandbox_ends_with_its_owner_however_that_dies"}
    failures = {}
    probe = backend.probe()
    for check in checks:
        try:
            if check.name not in left_out:
                hold(check, backend, missing=probe.missing)
        except Exception:  # noqa: BLE001 - the test shows it
            failures[check.name] = traceback.format_exc()
    report = {
        "owner": backend.owner(),
        "probe": probe.detail,
        "num_checks": len(checks),
        "failures": failures,
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
