"""Snapshots, the sandboxes that they come from, and the sandboxes that restore them."""

import dataclasses
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_fixtures import (
    BACKEND,
    MakeLayer,
    make_sandbox,
    output,
)

from coding_gym.errors import SandboxError
from coding_gym.sandbox import Mount, SandboxSpec
from coding_gym.sandbox.spec import spec_digest


@pytest.fixture
def spec(make_layer: MakeLayer) -> SandboxSpec:
    return SandboxSpec(layers=(make_layer({"file": "base\n", "folder/file": "x"}),))


@pytest.mark.parametrize("data", [b"", b"nonsense", None], ids=["empty", "nonsense", "cut"])
def test_a_failed_restore_closes_the_sandbox(spec: SandboxSpec, data: bytes | None) -> None:
    with BACKEND.open(spec) as sandbox:
        good = sandbox.snapshot()
        bad = dataclasses.replace(good, data=good.data[:-1] if data is None else data)
        with pytest.raises(SandboxError):
            sandbox.restore(bad)
        with pytest.raises(SandboxError):
            sandbox.run("true")
        with pytest.raises(SandboxError):
            BACKEND.open(spec, snapshot=bad)
        with BACKEND.open(spec, snapshot=good) as other:
            assert other.run("cat file").output == "base\n"


def test_mounts_may_cover_all_writable_folders(make_layer: MakeLayer) -> None:
    targets = ("/tmp", "/home/agent")
    mounts = tuple(Mount(source=make_layer({"name": t}), target=t) for t in targets)
    with make_sandbox(mounts=mounts) as sandbox:
        sandbox.write_file("kept", b"1")
        sandbox.restore(sandbox.snapshot())
        assert output(sandbox, "cat kept /tmp/name ~/name") == "1/tmp/home/agent"


def test_a_restore_mounts_at_folders_that_a_policy_replaced(make_layer: MakeLayer) -> None:
    tools = Mount(source=make_layer({"tool": "t\n"}), target="/tmp/way/lib")
    with make_sandbox(mounts=(tools,)) as sandbox:
        for replacement in ("true", "ln -s /usr", "ln -s /etc", "mkfifo"):
            sandbox.run(f"rm -rf /tmp/away; mv /tmp/way /tmp/away; {replacement} /tmp/way")
            sandbox.restore(sandbox.snapshot())
            assert output(sandbox, "cat /tmp/way/lib/tool; ls /tmp") == "t\naway\nway\n"


def test_digests_of_specs_differ_with_content_and_not_with_paths(
    make_layer: MakeLayer, tmp_path: Path
) -> None:
    files = {"file": "base", "folder/other": "base"}
    spec = SandboxSpec(layers=(make_layer(files),))
    copy = shutil.copytree(spec.layers[0], tmp_path / "copy", copy_function=shutil.copy2)
    assert spec_digest(spec) == spec_digest(replace(spec, layers=(copy,)))
    for other in (
        replace(spec, env={"A": "b"}),
        replace(spec, layers=(make_layer(files | {"file": "Base"}),)),
        replace(spec, layers=(make_layer(files | {"more": ""}),)),
    ):
        assert spec_digest(other) != spec_digest(spec)


@pytest.mark.parametrize("link", ["/sandbox", "/.old/allowed"])
def test_a_mount_below_a_symlink_of_the_workspace_stays_inside(
    make_layer: MakeLayer, link: str
) -> None:
    layer = make_layer({"file": "x"})
    (layer / "way").symlink_to(link)
    tools = Mount(source=make_layer({"tool": "t\n"}), target="/workspace/way/tools")
    with make_sandbox(layers=(layer,), mounts=(tools,)) as sandbox:
        assert output(sandbox, f"cat {link}/tools/tool; ls {link}") in {
            "t\nbin\ntools\n",
            "t\ntools\n",
        }
