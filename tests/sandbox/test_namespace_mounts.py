"""What a namespace sandbox shows of the host's folders, and where."""

import shutil
from pathlib import Path

import pytest
from machines import run_on
from sandbox_scene import MakeLayer, make_sandbox

import coding_gym
from coding_gym.sandbox import Mount, Sandbox, default_interpreter


def test_a_package_under_a_shown_folder_is_covered(
    make_layer: MakeLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = make_layer({"share/kept": "y"})
    shutil.copytree(Path(coding_gym.__file__).parent, prefix / "src2" / "coding_gym")
    monkeypatch.chdir(prefix / "src2")  # it is imported from there
    script = f"""
from dataclasses import replace
from coding_gym.sandbox import SandboxSpec, default_interpreter, get_backend
python = replace(default_interpreter(), prefix=Path({str(prefix)!r}))
with get_backend("namespace").open(SandboxSpec(python=python)) as sandbox:
    print(sandbox.run("cd {prefix}; ls -A src2/coding_gym; cat share/kept").output)
"""
    ended = run_on("", script)
    assert (ended.stdout, ended.stderr) == ("y\n", "")


def test_third_party_packages_of_the_host_are_covered(sandbox: Sandbox) -> None:
    script = (
        "import os, site, sys\n"
        "for place in [*site.getsitepackages(), *(p for p in sys.path if 'packages' in p)]:\n"
        "    if os.path.isdir(place): print(os.listdir(place))\n"
    )
    sandbox.write_file("places.py", script.encode())
    for python in ("python", "/usr/bin/python3"):
        if sandbox.run(f"test -x $(command -v {python})").exit_code == 0:
            assert set(sandbox.run(f"{python} places.py").output.splitlines()) <= {"[]"}
    assert sandbox.run("python -c 'import gymnasium'").exit_code == 1


def test_a_mount_on_covered_packages_can_be_imported(make_layer: MakeLayer) -> None:
    python = default_interpreter()
    layer = make_layer({"our_tool.py": "print('imported')"})
    mount = Mount(source=layer, target=str(python.site_packages))
    with make_sandbox(python=python, mounts=(mount,)) as sandbox:
        assert sandbox.run("python -m our_tool").output == "imported\n"
        assert sandbox.path(mount.target) == mount.target


def test_mount_points_of_one_sandbox_do_not_show_in_another(make_layer: MakeLayer) -> None:
    mount = Mount(source=make_layer({}), target="/opt/only-here")
    with (
        make_sandbox(mounts=(mount,)) as one,
        make_sandbox() as other,
    ):
        assert one.run("ls /opt").output == "only-here\n"
        assert other.run("ls /opt").output == ""


@pytest.mark.parametrize("target", ["relative", "/", "/opt/../etc"])
def test_targets_that_cannot_be_are_refused(tmp_path: Path, target: str) -> None:
    with pytest.raises(ValueError, match="target must be an absolute path"):
        make_sandbox(mounts=(Mount(source=tmp_path, target=target),))
