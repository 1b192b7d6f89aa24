"""Sandboxes of the namespace backend whose root is an image."""

from pathlib import Path

import pytest
from image_fixtures import (
    MakeImage,
    entry,
    folder,
    oci_layout,
    programs,
    symlink,
    tar_of,
)
from sandbox_fixtures import BACKEND, MakeLayer, make_sandbox
from sandbox_fixtures import stripped_output as output

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import Mount, Sandbox, SandboxSpec, default_interpreter

pytestmark = pytest.mark.slow


def test_the_spec_overrides_variables_of_the_image(image: str) -> None:
    with make_sandbox(image=image, env={"TZ": "UTC"}, path=("/first",)) as sandbox:
        assert output(sandbox, 'echo "$TZ $PATH $GREETING"') == (
            "UTC /first:/bin-d:/bin hello there"
        )
        assert output(sandbox, "/bin/stat -c %u:%g / /data /etc/passwd") == "0:0\n0:0\n0:0"
        assert output(sandbox, "cd /data; /bin/ls . full; /bin/cat kept changed full/new") == (
            ".:\nchanged\nfull\nkept\n\nfull:\nnew\nkeptafternew"
        )


def test_the_root_is_writable_and_discarded(image: str, sandbox: Sandbox) -> None:
    output(sandbox, "echo new > /etc/new; mkdir /opt; rm -r /data/full; echo x >> /data/kept")
    assert output(sandbox, "cat /etc/new /data/kept; ls /data") == "new\nkeptx\nchanged\nkept"
    with make_sandbox(image=image) as other:
        assert output(other, "cat /data/kept; ls /etc /data") == (
            "kept/data:\nchanged\nfull\nkept\n\n/etc:\ngroup\nhostname\nhosts\npasswd\nresolv.conf"
        )


def test_the_images_user_runs_its_commands(make_image: MakeImage) -> None:
    image = make_image(User="worker")
    with make_sandbox(image=image) as sandbox:
        assert output(sandbox, "id -u; id -g; id -un; echo $USER") == "1234\n1235\nworker\nworker"
        assert output(sandbox, "touch ~/x /workspace/y /tmp/z; stat -c %u ~/x") == "1234"
        caps = output(sandbox, "cat /proc/self/status")
        assert "CapPrm:\t0000000000000000" in caps


def test_mounts_and_private_folders_hide_the_image(image: str, make_layer: MakeLayer) -> None:
    mount = Mount(source=make_layer({"inner": "mounted"}), target="/data/full/mount")
    with make_sandbox(image=image, mounts=(mount,)) as sandbox:
        assert output(sandbox, "cat /data/full/mount/inner") == "mounted"
        assert not sandbox.run("echo x > /data/full/mount/inner").ok
        assert output(sandbox, "echo $HOME; ls -A ~ /tmp /dev/shm; cat /etc/hosts") == (
            "/home/agent\n/dev/shm:\n\n/home/agent:\n\n/tmp:\n"
            "127.0.0.1 localhost sandbox\n::1 localhost"
        )
        assert output(sandbox, "echo x > /dev/null; stat -c %F /dev/null") == (
            "character special file"
        )


def test_an_interpreter_outside_usr_is_mounted_in_an_image(image: str) -> None:
    python = default_interpreter()
    spec = SandboxSpec(image=image, python=python)
    if python.prefix.is_relative_to("/usr"):
        with pytest.raises(InvalidArgumentError, match="python"):
            BACKEND.open(spec)
        return
    with BACKEND.open(spec) as sandbox:
        look = "stat -c %N /sandbox/bin/python"
        assert output(sandbox, look).endswith(f"{python.executable}'")
        output(sandbox, "rm /sandbox/bin/python; mkdir -p /sandbox/bin/python/folder")
        sandbox.restore(sandbox.snapshot())
        assert output(sandbox, look).endswith(f"{python.executable}'")


def test_a_snapshot_holds_the_changes_of_the_root(image: str, sandbox: Sandbox) -> None:
    output(sandbox, "echo new > /etc/new; rm -r /data/full; mkdir /data/full; echo y > file")
    taken = sandbox.snapshot()
    output(sandbox, "rm /etc/new /data/kept; touch /data/full/z")
    look = "cat /etc/new file; ls -A /data /data/full"
    wanted = "new\ny\n/data:\nchanged\nfull\nkept\n\n/data/full:"
    sandbox.restore(taken)
    assert output(sandbox, look) == wanted
    with BACKEND.open(SandboxSpec(image=image), snapshot=taken) as fork:
        assert output(fork, look) == wanted
        assert output(fork, "cat /etc/hosts").startswith("127.0.0.1")


def test_links_of_the_image_resolve_inside(make_image: MakeImage, make_layer: MakeLayer) -> None:
    image = make_image([folder("real"), symlink("linked", "/real"), symlink("up", "../real")])
    mount = Mount(source=make_layer({"inner": "mounted"}), target="/linked/below/mount")
    with make_sandbox(image=image, mounts=(mount,), workspace_alias="/up/place") as sandbox:
        assert output(sandbox, "cat /real/below/mount/inner; ls /real") == "mountedbelow\nplace"


def test_an_image_needs_bash_but_a_link_is_enough(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="bash"):
        make_sandbox(image=str(oci_layout(tmp_path / "empty", [tar_of([folder("etc")])])))
    merged = [  # as in most distributions, whose /bin is /usr/bin
        symlink("bin", "usr/bin"), symlink("lib", "usr/lib"), symlink("lib64", "usr/lib64"),
        *((entry(f"usr/{info.name}", data, mode=0o755)) for info, data in programs("bash")),
    ]  # fmt: skip
    image = oci_layout(tmp_path / "merged", [tar_of(merged)])
    with make_sandbox(image=str(image)) as sandbox:
        assert output(sandbox, "echo works") == "works"
