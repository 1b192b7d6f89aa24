"""What sandboxes are made from: base images, layers, users."""

import io
import os
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from host_image import NAME, tar_of_this_machine, wait_until_removed
from image_fixtures import oci_layout
from sandbox_fixtures import MakeLayer

from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.sandbox import Mount, Promise, SandboxSpec
from coding_gym.sandbox.containers import DockerBackend
from coding_gym.sandbox.containers.docker_engine import Engine
from coding_gym.sandbox.images import image_digest, save_image

pytestmark = pytest.mark.slow

_PAGE = (Path(__file__).parents[3] / "docs" / "sandboxes.md").read_text(encoding="utf-8")


def _commit(engine: Engine, tag: str, *changes: str, repository: str = "coding-gym-test") -> str:
    """Returns the name of an image that differs from the test's own in its configuration."""
    container = engine.api.create_container(NAME, ["true"])["Id"]
    engine.api.commit(container, repository, tag, changes=list(changes))
    engine.remove(container)
    return f"{repository}:{tag}"


def test_an_image_of_the_engine_is_saved_by_name(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine.url)
    path = save_image(NAME, folder=tmp_path)
    assert image_digest(str(path)).startswith("sha256:")
    assert list(path.parent.iterdir()) == [path]
    assert save_image(NAME, folder=tmp_path) == path
    with pytest.raises(InvalidArgumentError, match="none:latest"):
        save_image("none", folder=tmp_path)


def test_a_health_check_of_the_image_does_not_run(engine: Engine) -> None:
    if engine.is_podman():
        pytest.skip("images that Podman builds have none")
    file = io.BytesIO(f"FROM {NAME}\nHEALTHCHECK CMD true\n".encode())
    *_, built = engine.api.build(fileobj=file, tag="coding-gym-test:health", rm=True, decode=True)
    assert "error" not in built
    with DockerBackend("coding-gym-test:health", host=engine.url).open(SandboxSpec()):
        (container,) = engine.api.containers()
        assert "Health" not in engine.api.inspect_container(container["Id"])["State"]


def test_cleanup_keeps_images_of_others(
    backend: DockerBackend,
    engine: Engine,
    make_layer: MakeLayer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = SandboxSpec(layers=(make_layer({"a": "x"}),))
    with backend.open(spec) as sandbox:
        sandbox.run("true")
    wait_until_removed(engine.api, engine.api.containers(all=True))
    theirs = engine.api.create_container(_built(engine)[0], ["true"])["Id"]
    engine.api.commit(theirs, "mine", "1")
    now = time.time()
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: now + 7200)
        engine.sweep()
    assert theirs in {one["Id"] for one in engine.api.containers(all=True)}
    engine.remove(theirs)
    [command] = [line for line in _PAGE.splitlines() if line.endswith("docker image rm")]
    subprocess.run(command, shell=True, env=os.environ | {"DOCKER_HOST": engine.url}, check=True)  # noqa: S602 - ours
    assert _built(engine) == []
    assert engine.find_image(NAME) is not None
    engine.api.remove_image("mine:1")
    with backend.open(spec) as sandbox:
        assert sandbox.run("cat a").output == "x"


def _built(engine: Engine) -> list[str]:
    names = [tag for one in engine.api.images() for tag in one["RepoTags"] or ()]
    return [name for name in names if "coding-gym-layers:" in name]


def test_an_absent_image_is_named(engine: Engine) -> None:
    backend = DockerBackend("no-such-image:1", host=engine.url)
    with pytest.raises(SandboxUnavailableError, match="no-such-image:1"):
        backend.open(SandboxSpec())
    probe = backend.probe()
    assert not probe.available
    assert "no-such-image:1" in probe.remedy


def test_an_image_without_bash_is_named(engine: Engine) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("file"))
    engine.api.import_image_from_data(buffer.getvalue(), "coding-gym-test:empty")
    with pytest.raises(SandboxUnavailableError, match="bash"):
        DockerBackend("coding-gym-test:empty", host=engine.url).open(SandboxSpec())


def test_commands_run_as_the_user_of_the_image(engine: Engine, make_layer: MakeLayer) -> None:
    image = _commit(engine, "user", "USER coder")
    spec = SandboxSpec(layers=(make_layer({"a": "x"}),))
    with DockerBackend(image, host=engine.url).open(spec) as sandbox:
        assert (
            sandbox.run("id -u; stat -c %u a .; echo $USER").output == "1234\n1234\n1234\ncoder\n"
        )


def test_images_run_as_root_only_if_mapped(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = DockerBackend(NAME, host=engine.url)
    for image in ("", NAME):
        with usual.open(SandboxSpec(image=image)) as sandbox:
            uid, name = sandbox.run("id -u; id -un").output.split()
        assert (int(uid), name) == (usual.owner()[0], "agent")
        assert int(uid) != 0
    monkeypatch.setitem(engine.info, "SecurityOptions", ["name=seccomp", "name=userns"])
    with usual.open(SandboxSpec(image=NAME)) as sandbox:
        assert sandbox.run("id -u; touch file && stat -c %u file").output == "0\n0\n"
        assert sandbox.run("chown 5 file").exit_code == 1
        assert "CapEff:\t0000000000000000" in sandbox.run("cat /proc/self/status").output


@pytest.mark.parametrize(
    ("option", "is_missing"),
    [("profile=unconfined", True), ("profile=builtin", False), ("profile=/my.json", False)],
)
def test_unconfined_calls_are_not_counted_as_filtered(
    option: str, is_missing: bool, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(engine.info, "SecurityOptions", [f"name=seccomp,{option}"])
    missing = DockerBackend(NAME, host=engine.url).probe().missing
    assert (Promise.SYSTEM_CALLS in missing) is (is_missing or engine.is_podman())


def test_the_image_gives_variables_and_the_spec_wins(engine: Engine) -> None:
    image = _commit(
        engine, "env", "ENV PATH=/bin:/of/image", "ENV TERM=image", "ENV LC_ALL=C", "ENV A=image"
    )
    spec = SandboxSpec(env={"A": "spec"}, path=("/of/spec",))
    with DockerBackend(image, host=engine.url).open(spec) as sandbox:
        result = sandbox.run('echo "$PATH $TERM $A $LC_ALL"')
    assert result.output == "/of/spec:/bin:/of/image image spec C\n"


def test_a_workspace_has_a_second_path(engine: Engine, backend: DockerBackend) -> None:
    spec = SandboxSpec(workspace_alias="/opt/project/here")
    with backend.open(spec) as sandbox:
        result = sandbox.run("echo x > a; cat /opt/project/here/a; cd /opt/project/here; pwd")
    assert result.output == "x\n/opt/project/here\n"
    for alias in ("/workspace", "/home", "/home/agent", "/root"):  # folders that are needed
        with backend.open(SandboxSpec(workspace_alias=alias)) as sandbox:
            assert sandbox.run("touch a ~/b && ls a").output == "a\n", alias
    with pytest.raises(InvalidArgumentError, match="workspace_alias"):
        backend.open(SandboxSpec(workspace_alias="/"))


def test_an_oci_layout_is_loaded_without_its_names(engine: Engine, tmp_path: Path) -> None:
    folder = oci_layout(tmp_path / "oci", [tar_of_this_machine()])
    with DockerBackend("unused", host=engine.url).open(SandboxSpec(image=str(folder))) as sandbox:
        assert sandbox.run("git --version").exit_code == 0


def test_mounts_are_copied_where_the_daemon_does_not_share_files(
    backend: DockerBackend,
    engine: Engine,
    make_layer: MakeLayer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = make_layer({"folder/file": "mounted"})
    monkeypatch.setattr(engine, "shares_files", lambda _: False)
    mount = Mount(source=source, target="/opt/tools")
    with backend.open(SandboxSpec(mounts=(mount,))) as sandbox:
        result = sandbox.run("cat /opt/tools/folder/file; echo x > /opt/tools/folder/file")
        assert (result.exit_code, result.output[:7]) == (1, "mounted")
    writable = Mount(source=source, target="/opt/tools", writable=True)
    with pytest.raises(SandboxUnavailableError):
        backend.open(SandboxSpec(mounts=(writable,)))
