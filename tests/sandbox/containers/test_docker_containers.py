"""What containers are made of, and what is left of them: nothing."""

import json
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from host_image import NAME
from sandbox_fixtures import MakeLayer, disconnect_docker, wait_until

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox import Promise, SandboxSpec, Snapshot
from coding_gym.sandbox.containers import DockerBackend
from coding_gym.sandbox.containers.docker_backend import DEFAULT_IMAGE
from coding_gym.sandbox.containers.engine import Engine
from coding_gym.sandbox.folder_cache import FolderCache
from coding_gym.task import Task
from coding_gym.workspace.image_tree import ImageTrees

pytestmark = pytest.mark.slow

_OWNER = """
import os, sys
from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.containers import DockerBackend

name, host = sys.argv[1:]
backend = DockerBackend(name, host=host)
opened = [backend.open(SandboxSpec()) for _ in range(2)]
if os.fork() == 0:
    for sandbox in opened:
        sandbox.close()
    print("open", flush=True)
    sys.stdin.read()
    os._exit(0)
opened[0].run("trap '' HUP TERM; (trap '' HUP TERM; sleep 600) & sleep 600", timeout_s=900)
"""


def _commit(engine: Engine, tag: str, *changes: str) -> str:
    """Returns the name of an image that differs from the test's own in its configuration."""
    container = engine.api.create_container(NAME, ["true"])["Id"]
    engine.api.commit(container, "coding-gym-test", tag, changes=list(changes))
    engine.remove(container)
    return f"coding-gym-test:{tag}"


@pytest.fixture
def default_engine(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Makes the test's daemon the one that is used where none is named."""
    engine.api.tag(NAME, *DEFAULT_IMAGE.split(":"))
    monkeypatch.setenv("DOCKER_HOST", engine.url)
    disconnect_docker("")
    yield engine
    disconnect_docker("")


@pytest.mark.usefixtures("default_engine")
def test_a_task_is_repaired_and_graded(tiny_row: dict[str, Any]) -> None:
    with closing(gym.make("coding_gym:CodingRepair-v0", tasks=[tiny_row], sandbox="docker")) as env:
        env.reset()
        fix = {"name": "shell", "arguments": {"cmd": "sed -i 's/width + /width * /' shapes.py"}}
        env.step(json.dumps(fix))
        _, reward, terminated, _, info = env.step("done")
        assert (reward, terminated, info["resolved"], info["error"]) == (1.0, True, True, "")


def test_a_rebuilt_image_of_the_same_name_has_another_id(
    engine: Engine, tmp_path: Path, tiny_row: dict[str, Any]
) -> None:
    image = {"image": "coding-gym-test:again", "image_path": "/tmp"}
    task = Task.from_row({k: v for k, v in tiny_row.items() if k != "files"} | image)
    trees = ImageTrees(FolderCache(tmp_path), DockerBackend(host=engine.url))
    ids = []
    for number in "12":
        _commit(engine, "again", f"ENV NUMBER={number}")
        ids.append(trees.identity(task))
    assert ids[0] != ids[1]


def test_a_health_check_of_the_image_does_not_run(engine: Engine) -> None:
    if engine.is_podman():
        pytest.skip("images that Podman builds have none")
    file = BytesIO(f"FROM {NAME}\nHEALTHCHECK CMD true\n".encode())
    *_, built = engine.api.build(fileobj=file, tag="coding-gym-test:health", rm=True, decode=True)
    assert "error" not in built
    with DockerBackend("coding-gym-test:health", host=engine.url).open(SandboxSpec()):
        (container,) = engine.api.containers()
        assert "Health" not in engine.api.inspect_container(container["Id"])["State"]


def test_an_absent_image_is_named(engine: Engine) -> None:
    backend = DockerBackend("no-such-image:1", host=engine.url)
    with pytest.raises(SandboxUnavailableError, match="no-such-image:1"):
        backend.open(SandboxSpec())
    assert "no-such-image:1" in backend.probe().remedy


def test_an_image_without_bash_is_named(engine: Engine) -> None:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("file"))
    engine.api.import_image_from_data(buffer.getvalue(), "coding-gym-test:empty")
    with pytest.raises(SandboxUnavailableError, match="bash"):
        DockerBackend("coding-gym-test:empty", host=engine.url).open(SandboxSpec())


def test_commands_run_as_the_user_of_the_image(engine: Engine, make_layer: MakeLayer) -> None:
    image = _commit(engine, "user", "USER coder")
    spec = SandboxSpec(layers=(make_layer({"a": "x"}),))
    with DockerBackend(image, host=engine.url).open(spec) as sandbox:
        result = sandbox.run("id -u; stat -c %u a .; echo $USER")
    assert result.output == "1234\n1234\n1234\ncoder\n"


def test_commands_of_an_image_of_root_are_an_ordinary_users(backend: DockerBackend) -> None:
    with backend.open(SandboxSpec(image=NAME)) as sandbox:
        uid, name = sandbox.run("id -u; id -un").output.split()
    assert (int(uid), name) == (backend.owner()[0], "agent")
    assert int(uid) != 0


@pytest.mark.parametrize("option", ["profile=unconfined", "profile=builtin"])
def test_unconfined_calls_are_not_counted_as_filtered(
    option: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(engine.info, "SecurityOptions", [f"name=seccomp,{option}"])
    is_missing = Promise.SYSTEM_CALLS in engine.missing()
    assert is_missing is (option == "profile=unconfined" or engine.is_podman())


def test_the_image_gives_variables_and_the_spec_wins(engine: Engine) -> None:
    image = _commit(engine, "env", "ENV PATH=/bin:/of/image", "ENV TERM=image", "ENV A=image")
    spec = SandboxSpec(env={"A": "spec"}, path=("/of/spec",))
    with DockerBackend(image, host=engine.url).open(spec) as sandbox:
        result = sandbox.run('echo "$PATH $TERM $A"')
    assert result.output == "/of/spec:/bin:/of/image image spec\n"


def test_a_workspace_has_a_second_path(backend: DockerBackend) -> None:
    with backend.open(SandboxSpec(workspace_alias="/opt/project/here")) as sandbox:
        result = sandbox.run("echo x > a; cat /opt/project/here/a; cd /opt/project/here; pwd")
    assert result.output == "x\n/opt/project/here\n"
    for alias in ("/workspace", "/home", "/root"):  # folders that are needed
        with backend.open(SandboxSpec(workspace_alias=alias)) as sandbox:
            assert sandbox.run("touch a ~/b && ls a").output == "a\n", alias
    with pytest.raises(InvalidArgumentError, match="workspace_alias"):
        backend.open(SandboxSpec(workspace_alias="/"))


def test_a_mounted_socket_reaches_a_server_of_the_host(backend: DockerBackend) -> None:
    def answer(server: socket.socket) -> None:
        with server.accept()[0] as stream:
            stream.sendall(b"reached")

    connect = (
        "import socket; s = socket.socket(1); s.connect('/opt/own'); print(s.recv(9).decode())"
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX) as server,
        ThreadPoolExecutor() as threads,
    ):
        path = Path(folder, "socket")
        server.bind(str(path))
        path.chmod(0o666)
        server.listen()
        server.settimeout(60)
        threads.submit(answer, server)
        with backend.open(SandboxSpec(sockets={"/opt/own": path})) as sandbox:
            assert sandbox.run(f'python3 -c "{connect}"').output == "reached\n"


def test_a_killed_owner_leaves_no_container(engine: Engine) -> None:
    before = {one["Id"] for one in engine.api.containers(all=True)}
    command = [sys.executable, "-c", _OWNER, NAME, engine.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        mine = [one for one in engine.api.containers() if one["Id"] not in before]
        assert len(mine) >= 2
        owner.kill()
        # Although a fork of it goes on.
        wait_until(lambda: {one["Id"] for one in engine.api.containers(all=True)} <= before)


def test_a_dead_container_is_an_error_ever_after(backend: DockerBackend, engine: Engine) -> None:
    others = {container["Id"] for container in engine.api.containers(all=True)}
    with backend.open(SandboxSpec()) as sandbox:
        for container in engine.api.containers():
            if container["Id"] not in others:
                engine.api.kill(container["Id"])
        messages = []
        for _ in range(2):
            with pytest.raises(SandboxError) as caught:
                sandbox.run("sleep 60")
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


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


def test_a_missing_daemon_has_a_remedy(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{tmp_path}/left.sock")
    for name in ("no.sock", "left.sock"):
        probe = DockerBackend(host=f"unix://{tmp_path}/{name}").probe()
        assert (probe.available, bool(probe.remedy)) == (False, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every socket")
def test_a_socket_of_others_has_a_remedy(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"{tmp_path}/other.sock")
        other.listen()
        (tmp_path / "other.sock").chmod(0)
        probe = DockerBackend(host=f"unix://{tmp_path}/other.sock").probe()
    assert "usermod" in probe.remedy
