"""Layers are united and never written; mounts are read-only unless writable."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from image_fixtures import entry, oci_layout, system, tar_of
from sandbox_fixtures import opened, output, tree

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.protocol import Promise, Sandbox, SandboxBackend
from coding_gym.sandbox.spec import HOME, WORKDIR, Mount, SandboxSpec


def test_layers_are_united_and_the_first_wins(backend: SandboxBackend) -> None:
    trees = (
        {"both": "upper", "folder/u": "u", "a/top": ""},
        {"both": "lower", "folder/l": "l", "a": "a file, which hides the lower folder"},
        {"a/low": ""},
    )
    with ExitStack() as stack:
        layers = tuple(stack.enter_context(tree(backend, files)) for files in trees)
        with backend.open(SandboxSpec(layers=layers)) as sandbox:
            assert output(sandbox, "cat both folder/u folder/l; ls a") == "upperultop\n"


def test_layers_are_never_written(backend: SandboxBackend) -> None:
    with tree(backend, {"a": "a", "folder/b": "b"}) as layer:
        spec = SandboxSpec(layers=(layer,))
        with backend.open(spec) as sandbox:
            output(sandbox, "echo changed > a; rm -r folder; mkdir folder; echo new > folder/c")
            assert output(sandbox, "ls folder; cat a") == "c\nchanged\n"
            sandbox.write_file("folder/b", b"again")
            output(sandbox, "chmod 700 a; touch -d 2001-01-01 a")
        files = sorted(str(p.relative_to(layer)) for p in layer.rglob("*") if p.is_file())
        assert files == ["a", "folder/b"]
        assert (layer / "a").read_text(encoding="utf-8") == "a"
        assert (layer / "a").stat().st_mode & 0o111 == 0
        with backend.open(spec) as again:
            assert output(again, "cat a folder/b") == "ab"


def test_files_of_a_layer_can_be_moved_and_linked(backend: SandboxBackend) -> None:
    with opened(backend, {"a": "echo ran\n", "folder/b": "b"}) as sandbox:
        output(sandbox, "chmod +x a; mv a c; ln -s c d; ln c e; mv folder renamed")
        assert output(sandbox, "bash ./d; ./e; cat renamed/b") == "ran\nran\nb"


def test_modes_dates_and_links_of_a_layer_are_kept(backend: SandboxBackend) -> None:
    with tree(backend, {"run.sh": "#!/bin/sh\necho ran\n", "folder/x": ""}) as layer:
        (layer / "run.sh").chmod(0o755)
        (layer / "link").symlink_to("folder/x")
        date = int((layer / "run.sh").stat().st_mtime)
        with backend.open(SandboxSpec(layers=(layer,))) as sandbox:
            assert output(sandbox, "./run.sh") == "ran\n"
            assert output(sandbox, "readlink link") == "folder/x\n"
            assert output(sandbox, "stat -c %Y run.sh") == f"{date}\n"


def test_mounts_are_read_only_at_the_path_of_the_sandbox(backend: SandboxBackend) -> None:
    with tree(backend, {"file": "mounted"}) as source:
        mounts = (
            Mount(source=source, target="/opt/tools/one"),
            Mount(source=source / "file", target="/opt/tools/file"),
        )
        with backend.open(SandboxSpec(mounts=mounts)) as sandbox:
            path, file = (sandbox.path(mount.target) for mount in mounts)
            assert output(sandbox, f"cat {path}/file {file}") == "mounted" * 2
            sandbox.run(f"echo x > {file}; cd {path}; echo x > file; echo x > new; rm -f file")
            sandbox.run(f"chmod 700 {file} {path}/file")
        assert sorted(p.name for p in source.iterdir()) == ["file"]
        assert (source / "file").read_text(encoding="utf-8") == "mounted"
        assert (source / "file").stat().st_mode & 0o111 == 0


def test_a_writable_mount_gets_files_of_an_unprivileged_user(backend: SandboxBackend) -> None:
    with tree(backend, {}) as source:
        source.chmod(0o777)
        mount = Mount(source=source, target="/opt/staging", writable=True)
        with backend.open(SandboxSpec(mounts=(mount,))) as sandbox:
            output(sandbox, f"echo made > {sandbox.path(mount.target)}/file")
        assert (source / "file").read_text(encoding="utf-8") == "made\n"
        uid = (source / "file").stat().st_uid
        assert uid != 0
        assert backend.name == "landlock" or uid == backend.owner()[0]


def test_invalid_specs_are_refused(backend: SandboxBackend) -> None:
    missing = Path("/no/such/folder")
    mount, usr = Mount(source=missing, target="/opt/x"), Path("/usr")
    rows: list[dict[str, Any]] = [
        {"layers": (missing,)},
        {"layers": (Path("/etc/passwd"),)},
        {"layers": (Path("/", "x" * 300),)},
        {"mounts": (mount,)},
        *({"env": env} for env in ({"A=B": "x"}, {"A": "x" * (17 << 20)})),
        {"path": ("a\0b",)},
        *({"mounts": (replace(mount, source=usr, target=t),)} for t in ("/", "x", "/a/..", "/a\0")),
        {"workspace_alias": "/"},
        {"shell": "persistant"},
        *({"forwards": {port: usr}} for port in (80, 70_000)),
        {"forwards": {8123: usr}, "network": True},
    ]
    if backend.name != "namespace":
        rows.append({"forwards": {8123: usr}})
    for fields in rows:
        with pytest.raises(InvalidArgumentError):
            backend.open(SandboxSpec(**fields))
    if backend.name != "docker":  # all its sandboxes have an image
        with pytest.raises(InvalidArgumentError) as caught:
            backend.open(SandboxSpec(workspace_alias="/testbed"))
        assert ("use 'namespace'" in str(caught.value)) is (backend.name != "namespace")


@pytest.mark.promise(Promise.PRIVATE_ROOT)
def test_paths_are_the_same_in_every_sandbox(sandbox: Sandbox) -> None:
    paths = output(sandbox, "pwd; cd; pwd")
    assert paths == f"{WORKDIR}\n{HOME}\n"
    assert sandbox.path("/opt/x") == "/opt/x"


@pytest.mark.promise(Promise.OWN_IMAGE)
def test_an_image_is_the_root_of_its_commands(backend: SandboxBackend, tmp_path: Path) -> None:
    if backend.name == "docker":
        pytest.skip("it runs images of its daemon")
    layer = tar_of([*system(), entry("etc/mark", "of the image")])
    image = oci_layout(tmp_path / "image", [layer], Env=["PATH=/usr/bin:/bin", "FROM_IMAGE=yes"])
    with opened(backend, {"file": "of the layer"}, image=str(image)) as sandbox:
        assert output(sandbox, "echo $(</etc/mark) $FROM_IMAGE $(<file)") == (
            "of the image yes of the layer\n"
        )
        assert output(sandbox, "type -P python3 git || echo none") == "none\n"
        sandbox.write_file("written", b"new")
        assert output(sandbox, "echo $(<written)") == "new\n"
