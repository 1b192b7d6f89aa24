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

from coding_gym.sandbox import interpreters, zygote_process
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.testing import sandbox_checks, sandbox_files


def main(python: str, folder: str, uid: int) -> None:
    backend = NamespaceBackend()
    checks = sandbox_checks()
    checks[0](backend)
    found = interpreters._ask(Path(python))
    assert found is not None
    for module in (zygote_process, sandbox_files):
        module.default_interpreter = lambda: found
    zygote_process._MAIN = Path(folder) / "zygote" / "__main__.py"
    tempfile.tempdir = folder
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    failures = {}
    for check in checks:
        try:
            check(backend)
        except Exception:  # noqa: BLE001 - the test shows it
            failures[check.__name__] = traceback.format_exc()
    report = {"owner": backend.owner(), "num_checks": len(checks), "failures": failures}
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
