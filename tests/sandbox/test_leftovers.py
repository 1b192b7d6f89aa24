"""Sandboxes of containers that share folders: neither takes the other's for a dead process's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coding_gym.sandbox import Sandbox, SandboxSpec
from coding_gym.sandbox.landlock import LandlockBackend
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.process import ProcessBackend
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.testing.claims import tree

_IN_NEW_PID_NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc"]
_BACKENDS: dict[str, SandboxBackend] = {
    "namespace": NamespaceBackend(changes="disk"),
    "landlock": LandlockBackend(),
    "process": ProcessBackend(),
}
_OTHER = """
import sys
from pathlib import Path
from test_leftovers import open_one
print(open_one(sys.argv[1], Path(sys.argv[2])).run("cat file").output)
"""


def open_one(kind: str, layer: Path) -> Sandbox:
    return _BACKENDS[kind].open(SandboxSpec(layers=(layer,)))


@pytest.mark.filterwarnings("ignore:the .process. sandbox isolates nothing")
@pytest.mark.parametrize("kind", _BACKENDS)
def test_processes_of_another_pid_namespace_are_not_taken_for_dead(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if subprocess.run([*_IN_NEW_PID_NAMESPACE, "true"], check=False).returncode:
        pytest.skip("no pid namespace can be made")
    if not _BACKENDS[kind].probe().available:
        pytest.skip(f"this machine has no {kind} sandboxes")
    backend = _BACKENDS[kind]
    with tree(backend, {"file": "base"}) as layer, tree(backend, {}) as shared:
        monkeypatch.setattr("tempfile.tempdir", str(shared))
        monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
        env = {**os.environ, "TMPDIR": str(shared), "PYTHONPATH": os.pathsep.join(sys.path)}
        with open_one(kind, layer) as sandbox:
            sandbox.write_file("new", b"kept")
            other = [*_IN_NEW_PID_NAMESPACE, sys.executable, "-c", _OTHER, kind, str(layer)]
            assert subprocess.check_output(other, env=env, text=True) == "base\n"
            assert sandbox.run("cat new; touch newer; ls").output == "keptfile\nnew\nnewer\n"
