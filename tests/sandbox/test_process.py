"""What is particular to the backend that isolates nothing."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from coding_gym.errors import SandboxError
from coding_gym.sandbox import (
    HOME,
    Mount,
    Sandbox,
    SandboxLimits,
    SandboxSpec,
    cgroups,
    default_interpreter,
)
from coding_gym.sandbox.process import ProcessBackend

pytestmark = pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning")


def _open(spec: SandboxSpec) -> Sandbox:
    return ProcessBackend().open(spec)


def test_paths_of_the_spec_become_paths_of_the_host(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    (tools / "bin").mkdir(parents=True)
    (tools / "bin" / "say").write_text("#!/bin/sh\necho said\n", encoding="utf-8")
    (tools / "bin" / "say").chmod(0o755)
    spec = SandboxSpec(
        mounts=(Mount(source=tools, target="/opt/tools"),),
        path=("/opt/tools/bin",),
        env={"TOOLS": "/opt/tools/lib:relative:/elsewhere"},
    )
    with _open(spec) as sandbox:
        assert sandbox.path("/opt/tools") == str(tools)
        assert sandbox.run("say").output == "said\n"
        assert sandbox.run('echo "$TOOLS"').output == f"{tools}/lib:relative:/elsewhere\n"
        assert sandbox.run("ls", cwd="/opt/tools").output == "bin\n"


def test_home_and_workspace_are_private_and_go_away(tmp_path: Path) -> None:
    layer = tmp_path / "layer"
    layer.mkdir()
    (layer / "file").write_text("x", encoding="utf-8")
    with _open(SandboxSpec(layers=(layer,))) as sandbox:
        sandbox.run("echo changed > file; echo x > ~/x")
        folder = Path(sandbox.workdir)
        assert sandbox.read_file(f"{HOME}/x") == b"x\n"
        assert sandbox.read_file("/workspace/file") == b"changed\n"
        assert folder.is_dir()
    assert not folder.parent.exists()
    assert (layer / "file").read_text(encoding="utf-8") == "x"


def test_mounted_packages_of_the_interpreter_are_found(tmp_path: Path) -> None:
    python = default_interpreter()
    (tmp_path / "mounted.py").write_text("print('found')\n", encoding="utf-8")
    packages = Mount(source=tmp_path, target=str(python.site_packages))
    with _open(SandboxSpec(python=python, mounts=(packages,))) as sandbox:
        assert sandbox.run("python -c 'import mounted'").output == "found\n"


def test_a_snapshot_may_hold_what_no_limit_keeps_out() -> None:
    limits = SandboxLimits(disk_bytes=1 << 20, num_inodes=10)
    with _open(SandboxSpec(limits=limits)) as sandbox:
        sandbox.run("head -c 5000000 /dev/zero > file")
        snapshot = sandbox.snapshot()
        sandbox.run("rm file")
        sandbox.restore(snapshot)
        assert sandbox.run("stat -c %s file").output == "5000000\n"


def test_a_start_that_fails_half_way_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    _open(SandboxSpec()).close()
    refusing = Mock(**{"open_entrance.side_effect": SandboxError("no more")})
    monkeypatch.setattr(cgroups, "make_group", lambda _: refusing)
    before = sorted(Path("/proc/self/fd").iterdir())
    with pytest.raises(SandboxError, match="no more"):
        _open(SandboxSpec())
    assert sorted(Path("/proc/self/fd").iterdir()) == before
    refusing.close.assert_called_once()


def test_limits_are_set() -> None:
    with _open(SandboxSpec(python=default_interpreter())) as sandbox:
        assert sandbox.run("ulimit -n; ulimit -c").output == "1024\n0\n"


def test_a_shell_that_is_ended_says_nothing_of_its_command() -> None:
    shells = "for number in {1..30}; do bash -c 'sleep 60; true' & done; sleep 60; true"
    with _open(SandboxSpec()) as sandbox:
        for _ in range(3):
            result = sandbox.run(shells, timeout_s=0.5)
            assert (result.timed_out, result.output) == (True, "")
