"""The `apptainer` backend, on an imitation of the program's documented command line.

None of this has met the program. Where it is installed, the conformance checks run on it as on any
backend (tests/sandbox/test_conformance_backends.py).
"""

import io
import os
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from checks import SandboxCheck, hold, sandbox_checks
from host_image import tar_of_this_machine

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox import Mount, Probe, SandboxSpec, default_interpreter
from coding_gym.sandbox.containers.apptainer import ApptainerBackend, variables

pytestmark = pytest.mark.slow

# `apptainer exec`, as its user guide has it. An image is a folder, which an overlay makes writable.
# The command becomes process 1, as after --no-init. An unknown option is an error.
_IMITATION = r"""#!/bin/bash
binds=() spaces=(--user --map-current-user --keep-caps --mount) new=/mnt/root
shift
while [[ $1 = --* ]]; do
  case $1 in
    --bind) binds+=("$2"); shift ;;
    --pwd) pwd=$2; shift ;;
    --network) [[ $2 = none ]] || exit 2; shift ;;
    --net) spaces+=(--net) ;;
    --containall) spaces+=(--pid --ipc --fork --kill-child) ;;
    --no-privs) drop="setpriv --no-new-privs --bounding-set=-all"
      drop+=" --inh-caps=-all --ambient-caps=-all" ;;
    --cleanenv) clean="env -i" ;;
    --no-init | --no-home | --no-umask | --writable-tmpfs) ;;
    *) exit 2 ;;
  esac
  shift
done
[[ -d $1/usr ]] || { echo "FATAL: no such image" >&2; exit 255; }
export image=$1 pwd drop clean new
exec unshare "${spaces[@]}" bash -ec '
  mount -t tmpfs none /mnt
  mkdir $new /mnt/upper /mnt/work
  mount -t overlay -o "lowerdir=$image,upperdir=/mnt/upper,workdir=/mnt/work" none $new
  mkdir -p $new/dev
  mount -t proc none $new/proc
  mount -t tmpfs -o mode=755 none $new/dev
  for name in null zero full random urandom tty; do
    : > $new/dev/$name
    mount --bind /dev/$name $new/dev/$name
  done
  mkdir -m 1777 $new/dev/shm
  ln -s /proc/self/fd $new/dev/fd
  until [[ $1 = -- ]]; do
    IFS=: read -r source target mode <<< "$1"
    mkdir -p "$new${target%/*}"
    if [[ -d $source ]]; then mkdir -p "$new$target"; else : > "$new$target"; fi
    mount --bind "$source" "$new$target"
    [[ $mode != ro ]] || mount -o remount,bind,ro "$new$target"
    shift
  done
  inside=()
  for name in ${!APPTAINERENV_*}; do inside+=("${name#APPTAINERENV_}=${!name}"); done
  exec chroot $new $drop $clean env -C "$pwd" "${inside[@]}" "${@:2}"
' bash "${binds[@]}" -- "${@:2}"
"""

# /tmp is private, but a folder of the host; root's commands are root, but without capabilities.
_HALF_KEPT = ["temporary_files_are_bounded"]
_HALF_KEPT += ["commands_have_no_privileges_and_gain_none"] if os.geteuid() == 0 else []


@pytest.fixture(scope="session")
def backend(tmp_path_factory: pytest.TempPathFactory) -> ApptainerBackend:
    folder = tmp_path_factory.mktemp("apptainer")
    with tarfile.open(fileobj=io.BytesIO(tar_of_this_machine())) as tar:
        tar.extraction_filter = lambda member, _: member  # no argument before Python 3.11.4
        tar.extractall(folder / "image")  # noqa: S202 - a tar of our own
    program = folder / "apptainer"
    program.write_text(_IMITATION)
    program.chmod(0o755)
    return ApptainerBackend(str(folder / "image"), program=str(program))


@pytest.fixture(scope="session")
def probe(backend: ApptainerBackend) -> Probe:
    found = backend.probe()
    spaces = ["unshare", "--user", "--map-current-user", "--mount", "true"]
    if subprocess.run(spaces, check=False).returncode:
        pytest.skip("no user namespaces here")
    assert (found.available, "experimental" in found.detail) == (True, True), found.detail
    return found


@pytest.mark.parametrize(
    "check",
    [one for one in sandbox_checks() if one.name not in _HALF_KEPT],
    ids=lambda one: one.name,
)
def test_an_imitation_keeps_the_contract(
    backend: ApptainerBackend, probe: Probe, check: SandboxCheck
) -> None:
    hold(check, backend, missing=probe.missing)


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


@pytest.mark.usefixtures("probe")
def test_workspace_alias_and_packages_are_there_too(
    backend: ApptainerBackend, tmp_path: Path
) -> None:
    python = default_interpreter()
    packages = Mount(source=tmp_path, target=str(python.site_packages))
    spec = SandboxSpec(python=python, mounts=(packages,), workspace_alias="/testbed")
    with backend.open(spec) as sandbox:
        result = sandbox.run("echo x > a; cat /testbed/a; cd /testbed; pwd; echo $PYTHONPATH")
    assert result.output == f"x\n/testbed\n{python.site_packages}\n"
    with pytest.raises(InvalidArgumentError, match="workspace_alias"):
        backend.open(SandboxSpec(workspace_alias="/a/../b"))


def test_what_it_lacks_or_cannot_do_is_named(tmp_path: Path) -> None:
    backend = ApptainerBackend(program="no-such-apptainer")
    probe = backend.probe()
    assert "there is no no-such-apptainer program (experimental" in probe.detail
    assert "apptainer.org" in probe.remedy
    with pytest.raises(SandboxUnavailableError, match="there is no no-such-apptainer program"):
        backend.open(SandboxSpec())
    odd = tmp_path / "a,b"
    odd.mkdir()
    for spec in (
        SandboxSpec(mounts=(Mount(source=odd, target="/opt/x"),)),
        SandboxSpec(mounts=(Mount(source=tmp_path, target="/opt/x,/etc:/opt/y"),)),
        SandboxSpec(workspace_alias="/testbed,/etc"),
        SandboxSpec(workspace_alias="/testbed:ro"),
    ):
        with pytest.raises(InvalidArgumentError, match="has a ':' or ','"):
            backend.open(spec)


def test_the_clock_of_the_host_may_be_ahead_of_that_of_the_files(
    backend: ApptainerBackend, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 60)
    with backend.open(SandboxSpec()) as sandbox:
        sandbox.run("echo work > result")
        sandbox.restore(sandbox.snapshot())
        assert sandbox.run("cat result").output == "work\n", probe


def test_a_container_that_ends_is_an_error(
    backend: ApptainerBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sandbox = backend.open(SandboxSpec(image="none.sif"))
    with pytest.raises(SandboxError, match="died: FATAL: no such image"):
        sandbox.run("true")
    sandbox.close()
    assert list(tmp_path.glob("coding_gym-*")) == []
