"""In images the workspace may have a second path, such as ``/testbed``: tools take it too."""

from pathlib import Path

import pytest
from making_images import docker_archive, system, tar_of
from scene import Scene

from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend


@pytest.mark.parametrize("alias", ["/testbed", "/opt/the project"])
def test_the_second_path_of_the_workspace_is_inside(tmp_path: Path, alias: str) -> None:
    archive = docker_archive(tmp_path / "image.tar", [tar_of(system("realpath", "ln"))])
    spec = SandboxSpec(image=str(archive), workspace_alias=alias)
    with NamespaceBackend().open(spec) as sandbox:
        sandbox.write_file("pkg/a.py", b"x = 1\n")
        sandbox.run("ln -s /etc out")
        scene = Scene(sandbox, "thesis")
        edited = scene.call("str_replace", path=f"{alias}/pkg/a.py", old_str="1", new_str="2")
        assert edited.ok, edited.content
        assert sandbox.read_file("pkg/a.py") == b"x = 2\n"
        assert scene.call("write_file", path=f"{alias}/new/b.py", content="").ok
        assert sandbox.read_file("new/b.py") == b""
        for outside in (f"{alias}/out/passwd", f"{alias}-evil/x", f"{alias}/../etc/passwd", "/etc"):
            told = scene.told("write_file", path=outside, content="")
            assert "outside the repository, which is /workspace" in told
