"""Containers: their image, user and clean-up, and hostile commands in them."""

import json
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from docker_daemon import NAME
from sandbox_fixtures import MakeLayer, write_files

from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.process_cache import ProcessCache
from coding_gym.sandbox import Sandbox, SandboxSpec, Snapshot, docker_backend, docker_engine
from coding_gym.sandbox.docker_backend import DEFAULT_IMAGE, DockerBackend
from coding_gym.sandbox.docker_engine import Engine

pytestmark = pytest.mark.slow


def _commit(engine: Engine, tag: str, *changes: str) -> str:
    """Makes an image like the test image with another configuration; returns its name."""
    container = engine.api.create_container(NAME, ["true"])["Id"]
    engine.api.commit(container, "coding-gym-test", tag, changes=list(changes))
    engine.remove(container)
    return f"coding-gym-test:{tag}"


@pytest.fixture
def default_engine(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Makes the test's daemon the default daemon."""
    engine.api.tag(NAME, *DEFAULT_IMAGE.split(":"))
    monkeypatch.setenv("DOCKER_HOST", engine.url)
    monkeypatch.setattr(docker_engine, "_engines", ProcessCache())
    yield engine
    docker_engine.connect("").api.close()


@pytest.mark.usefixtures("default_engine")
def test_a_task_is_repaired_and_graded(tiny_row: dict[str, Any]) -> None:
    with closing(gym.make("coding_gym:CodingRepair-v0", tasks=[tiny_row], sandbox="docker")) as env:
        env.reset()
        fix = {"name": "shell", "arguments": {"cmd": "sed -i 's/width + /width * /' shapes.py"}}
        env.step(json.dumps(fix))
        _, reward, terminated, _, info = env.step("done")
        assert (reward, terminated, info["resolved"], info["error"]) == (1.0, True, True, "")


def test_commands_have_the_images_user_and_variables(engine: Engine, make_layer: MakeLayer) -> None:
    image = _commit(engine, "user", "USER coder", "ENV PATH=/bin:/of/image", "ENV A=image")
    env = {"A": "spec", "command": "c", "input": "i", "nonce": "n"}  # names that loop.sh uses
    spec = SandboxSpec(layers=(make_layer({"a": "x"}),), env=env, path=("/of/spec",))
    with DockerBackend(image, host=engine.url).open(spec) as sandbox:
        result = sandbox.run("id -u; stat -c %u a .; echo $USER $PATH $A $command $input $nonce")
    assert result.output == "1234\n1234\n1234\ncoder /of/spec:/bin:/of/image spec c i n\n"


def test_commands_of_a_root_image_run_as_an_ordinary_user(backend: DockerBackend) -> None:
    with backend.open(SandboxSpec(image=NAME)) as sandbox:
        uid, name = sandbox.run("id -u; id -un").output.split()
    assert (int(uid), name) == (backend.owner()[0], "agent")
    assert int(uid) != 0


_WITHOUT_USERS = """
import os, sys
from pathlib import Path
from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.docker_backend import DockerBackend

backend = DockerBackend(sys.argv[1], host=sys.argv[2])
os.chown(sys.argv[3], *backend.owner())
with backend.open(SandboxSpec(layers=(Path(sys.argv[3]),))) as sandbox:
    print(sandbox.run("test -O . && test -O a && id -u").output)
"""


def test_root_without_other_users_owns_layers(engine: Engine, tmp_path: Path) -> None:
    layer = write_files(tmp_path / "layer", {"a": ""})
    program = [sys.executable, "-c", _WITHOUT_USERS, NAME, engine.url, layer]
    process = subprocess.run(["unshare", "-r", *program], capture_output=True, text=True)  # noqa: S607
    assert (process.returncode, int(process.stdout) > 0) == (0, True), process.stderr


def test_the_workspace_has_a_second_path(backend: DockerBackend) -> None:
    with backend.open(SandboxSpec(workspace_alias="/opt/project/here")) as sandbox:
        result = sandbox.run("echo x > a; cat /opt/project/here/a; cd /opt/project/here; pwd")
    assert result.output == "x\n/opt/project/here\n"
    for alias in ("/workspace", "/home", "/root"):  # required folders
        with backend.open(SandboxSpec(workspace_alias=alias)) as sandbox:
            assert sandbox.run("touch a ~/b && ls a").output == "a\n", alias
    with pytest.raises(InvalidArgumentError, match="workspace_alias"):
        backend.open(SandboxSpec(workspace_alias="/"))


def test_a_missing_image_has_a_remedy(engine: Engine) -> None:
    empty = BytesIO()
    with tarfile.open(fileobj=empty, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("file"))
    engine.api.import_image_from_data(empty.getvalue(), "coding-gym-test:empty")
    for image, named in (("no-such-image:1", "no-such-image:1"), ("coding-gym-test:empty", "bash")):
        with pytest.raises(SandboxUnavailableError, match=named):
            DockerBackend(image, host=engine.url).open(SandboxSpec())
        with pytest.raises(InvalidArgumentError, match=named):
            DockerBackend(host=engine.url).open(SandboxSpec(image=image))
    with pytest.raises(InvalidArgumentError, match="no-such-image:1"):
        DockerBackend(host=engine.url).image_id("no-such-image:1")


def test_snapshots_are_refused(backend: DockerBackend) -> None:
    snapshot = Snapshot(backend="docker", spec=SandboxSpec(), data=b"")
    with pytest.raises(InvalidArgumentError):
        backend.open(SandboxSpec(), snapshot=snapshot)
    with backend.open(SandboxSpec()) as sandbox:
        with pytest.raises(InvalidArgumentError):
            sandbox.snapshot()
        with pytest.raises(InvalidArgumentError):
            sandbox.restore(snapshot)
        assert sandbox.run("echo on").output == "on\n"


def test_a_probe_of_an_unusable_image_does_not_raise(engine: Engine) -> None:
    image = _commit(engine, "nobody", "USER missing")
    probe = DockerBackend(image, host=engine.url).probe()
    assert (probe.available, "missing" in probe.detail) == (False, True)


def test_a_missing_daemon_has_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{tmp_path}/left.sock")
    for name in ("no.sock", "left.sock"):
        probe = DockerBackend(host=f"unix://{tmp_path}/{name}").probe()
        assert (probe.available, bool(probe.remedy)) == (False, True)
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", "/nonexistent")
    probe = DockerBackend(host="tcp://127.0.0.1:1").probe()
    assert (probe.available, "DOCKER_CERT_PATH" in probe.remedy) == (False, True)


_FORGERY = r"""
import os
# The first process has the channel as its standard input and output, if it may be opened.
lines = b"\n0 begin\n0 end 0 0 0\n", b"run 1 0 1 1\n//", b"\x01\0\0\0\0\0\0\4abcd"
for name in ("0", "1", "2", "3"):
    for line in lines:
        try:
            descriptor = os.open(f"/proc/1/fd/{name}", os.O_WRONLY | os.O_NONBLOCK)
            os.write(descriptor, line)
        except OSError as error:
            print(name, error.strerror)
"""


@pytest.fixture
def sandbox(backend: DockerBackend) -> Iterator[Sandbox]:
    with backend.open(SandboxSpec()) as opened:
        yield opened


def _still_works(sandbox: Sandbox) -> None:
    for word in ("one", "two"):
        result = sandbox.run(f"echo {word}; exit 3", timeout_s=20)
        assert (result.output, result.exit_code) == (f"{word}\n", 3)


def test_forged_replies_are_returned_as_output(sandbox: Sandbox) -> None:
    names = "0 deadbeef $(readlink /proc/self/fd/0 | grep -oE '[0-9a-f]{16,}')"  # of the input
    result = sandbox.run(f"for n in {names}; do echo $n 0 0 0; done; exit 4", stdin=b"x")
    assert (result.exit_code, result.output[:5]) == (4, "0 0 0")
    sandbox.write_file("forge.py", _FORGERY.encode())
    sandbox.run("python3 forge.py", timeout_s=20)
    _still_works(sandbox)


def test_reading_the_owners_input_does_not_avoid_the_time_limit(sandbox: Sandbox) -> None:
    thief = "cat /proc/1/fd/0 & cat <&1 & read -t 60 </proc/1/fd/0; sleep 60"
    assert sandbox.run(thief, timeout_s=0.5).timed_out
    _still_works(sandbox)


def test_output_that_never_pauses_does_not_avoid_the_time_limit(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_backend, "_READ_BYTES", 8)  # slower than the command
    assert sandbox.run("head -c 4M /dev/zero", timeout_s=0.5).timed_out
    _still_works(sandbox)


def test_the_first_process_is_inaccessible(sandbox: Sandbox) -> None:
    for name in ("mem", "environ", "fd/0", "fd/1", "maps"):
        result = sandbox.run(f"cat /proc/1/{name}")
        assert (result.exit_code, "Permission denied" in result.output) == (1, True), name
    for name in ("root/", "cwd/", "fd/"):
        assert sandbox.run(f"ls /proc/1/{name}").exit_code == 2, name
