"""Run by root: becomes an ordinary user and takes snapshots of every kind of file.

As in `checks_as_user`, everything is imported before the change of user, and only the zygote is
started afterwards, by an interpreter and from a folder that everybody may read.
"""

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path

from coding_gym.sandbox import (
    Mount,
    SandboxBackend,
    SandboxLimits,
    SandboxSpec,
    interpreters,
    process,
    standalone,
    zygote_process,
)
from coding_gym.sandbox.process import NoIsolationWarning
from tests.sandbox.snapshot_scenes import BACKENDS, TEMPLATE, describe, destroy, make_every_kind


def main(python: str, folder: str, uid: int) -> None:
    interpreter = interpreters._ask(Path(python))
    assert interpreter is not None
    standalone.default_interpreter = lambda: interpreter
    zygote_process._MAIN = Path(folder) / "zygote" / "__main__.py"
    tempfile.tempdir = folder
    os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
    warnings.simplefilter("ignore", NoIsolationWarning)
    with process.ProcessBackend().open(SandboxSpec()):
        pass
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    layer = Path(folder) / "layer"
    for name, text in TEMPLATE.items():
        (layer / name).parent.mkdir(parents=True, exist_ok=True)
        (layer / name).write_text(text, encoding="utf-8")
    tools = Mount(source=layer, target="/opt/tools")
    spec = SandboxSpec(layers=(layer,), mounts=(tools,), python=interpreter, limits=SandboxLimits())
    report = {name: _differences(backend, spec) for name, backend in BACKENDS.items()}
    sys.stdout.write(json.dumps({"uid": os.getuid(), "differences": report}))


def _differences(backend: SandboxBackend, spec: SandboxSpec) -> list[str]:
    """Returns which of a restored sandbox and of a fork are not as the first was."""
    with backend.open(spec) as sandbox:
        make_every_kind(sandbox)
        before = describe(sandbox)
        snapshot = sandbox.snapshot()
        found = [] if describe(sandbox) == before else ["after the snapshot"]
        destroy(sandbox)
        sandbox.restore(snapshot)
        found += [] if describe(sandbox) == before else ["restored"]
    with backend.open(spec, snapshot=snapshot) as fork:
        return found + ([] if describe(fork) == before else ["fork"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
