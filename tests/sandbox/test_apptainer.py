"""What `apptainer` is told. None of this has met the program: only its documented interface.

Where it is installed the conformance tests run on it as on any backend. Here a recorded stand-in
takes its command line, and runs what it would run inside without a container.
"""

import json
from pathlib import Path

import pytest

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox import Mount, SandboxLimits, SandboxSpec, default_interpreter
from coding_gym.sandbox.apptainer import ApptainerBackend
from coding_gym.sandbox.apptainer.backend import MISSING, arguments, variables
from coding_gym.sandbox.promises import Promise

_FOLDERS = {name: Path("/made") / name for name in ("workspace", "home", "tmp")}
# Writes down what it was told, then is process 1 of nothing: it only ends.
_RECORDER = """#!/bin/bash
printf '%s\\0' "$@" > "$0.arguments"
env -0 > "$0.variables"
echo "FATAL: no such image" >&2
exit 3
"""


def line(spec: SandboxSpec) -> list[str]:
    return arguments("/bin/apptainer", "image.sif", spec, _FOLDERS)


def binds(words: list[str]) -> list[str]:
    return [words[i + 1] for i, word in enumerate(words) if word == "--bind"]


def test_nothing_of_the_host_is_shown_but_what_was_asked_for(tmp_path: Path) -> None:
    mount = Mount(source=tmp_path, target="/opt/x")
    writable = Mount(source=tmp_path, target="/opt/y", writable=True)
    words = line(SandboxSpec(mounts=(mount, writable)))
    assert words[:2] == ["/bin/apptainer", "exec"]
    for option in ("--containall", "--no-home", "--cleanenv", "--no-privs", "--no-init"):
        assert words.index(option) < words.index("image.sif")
    assert binds(words) == [
        "/made/workspace:/workspace",
        "/made/home:/home/agent",
        "/made/tmp:/tmp",
        f"{tmp_path}:/opt/x:ro",
        f"{tmp_path}:/opt/y:rw",
    ]


def test_the_network_is_closed_unless_a_build_asks_for_it() -> None:
    words = line(SandboxSpec())
    assert words[words.index("--net") : words.index("--net") + 3] == ["--net", "--network", "none"]
    assert "--net" not in line(SandboxSpec(network=True))


def test_the_loop_of_the_docker_backend_runs_in_it_under_the_limits() -> None:
    limits = SandboxLimits(file_bytes=1 << 20, num_open_files=99)
    words = line(SandboxSpec(limits=limits))
    after = words[words.index("image.sif") + 1 :]
    assert after[:2] == ["bash", "-c"]
    assert after[2].startswith("ulimit -c 0; ulimit -f 1024; ulimit -n 99\n")
    assert "kill -9 -1" in after[2]


def test_variables_go_in_under_a_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    given = variables(SandboxSpec(env={"LIST": "a,b"}))
    assert given["APPTAINERENV_LIST"] == "a,b"
    assert given["APPTAINERENV_TZ"] == "UTC"
    monkeypatch.setenv("APPTAINER_CACHEDIR", "/scratch")
    hostile = ("SECRET", "APPTAINERENV_SECRET", "SINGULARITYENV_SECRET", "APPTAINER_BIND")
    hostile += ("APPTAINER_BINDPATH", "SINGULARITY_BIND", "APPTAINER_MOUNT", "https_proxy")
    for name in hostile:
        monkeypatch.setenv(name, "/of/the/host")
    with_host = variables(SandboxSpec(env={"LIST": "a,b"}))
    assert with_host == {**given, "APPTAINER_CACHEDIR": "/scratch"}


def test_workspace_alias_and_packages_are_there_too(tmp_path: Path) -> None:
    python = default_interpreter()
    packages = Mount(source=tmp_path, target=str(python.site_packages))
    spec = SandboxSpec(python=python, mounts=(packages,), workspace_alias="/testbed")
    assert "/made/workspace:/testbed" in binds(line(spec))
    assert variables(spec)["APPTAINERENV_PYTHONPATH"] == str(python.site_packages)
    assert Promise.OWN_PYTHON in MISSING
    with pytest.raises(InvalidArgumentError, match="workspace_alias"):
        ApptainerBackend(program="no-such-apptainer").open(SandboxSpec(workspace_alias="/a/../b"))


def test_a_machine_without_it_is_told_where_to_get_it() -> None:
    backend = ApptainerBackend(program="no-such-apptainer")
    probe = backend.probe()
    assert (probe.available, probe.detail) == (False, "there is no no-such-apptainer program")
    assert "apptainer.org" in probe.remedy
    with pytest.raises(SandboxUnavailableError, match="there is no no-such-apptainer program"):
        backend.open(SandboxSpec())


def test_what_it_cannot_do_is_refused_by_name(tmp_path: Path) -> None:
    backend = ApptainerBackend(program="no-such-apptainer")
    odd = tmp_path / "a,b"
    odd.mkdir()
    with pytest.raises(InvalidArgumentError, match="has a ':' or ',' in it"):
        backend.open(SandboxSpec(mounts=(Mount(source=odd, target="/opt/x"),)))
    with pytest.raises(InvalidArgumentError, match="does not exist"):
        backend.open(SandboxSpec(layers=(tmp_path / "none",)))


def test_a_container_that_ends_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program = tmp_path / "apptainer"
    program.write_text(_RECORDER)
    program.chmod(0o755)
    layer = tmp_path / "layer"
    layer.mkdir()
    (layer / "file").write_text("base")
    backend = ApptainerBackend("python.sif", program=str(program))
    sandbox = backend.open(SandboxSpec(layers=(layer,)))
    with pytest.raises(SandboxError, match="died: FATAL: no such image"):
        sandbox.run("true")
    sandbox.close()
    told = (tmp_path / "apptainer.arguments").read_text().split("\0")
    assert told[0] == "exec"
    assert "python.sif" in told
    assert [path.name for path in tmp_path.glob("coding_gym-*")] == []
    probe = backend.probe()
    assert not probe.available
    assert json.dumps(probe.detail)
