"""A folder beside the workspace whose name begins like the workspace's."""

from pathlib import Path

from scene import Scene

from coding_gym.sandbox import Mount, SandboxSpec, open_sandbox


def test_a_folder_whose_name_begins_like_the_workspace_is_outside(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "file").write_text("one\n")
    mount = Mount(source=shown, target="/workspace-evil")
    with open_sandbox(SandboxSpec(mounts=(mount,))) as sandbox:
        for path in ("/workspace-evil/file", "../workspace-evil/file"):
            nano = Scene(sandbox, "nano").told(
                "apply_patch", search="one", replace="two", file=path
            )
            assert nano == "Path must be inside the repository"
            assert "outside the repository" in Scene(sandbox, "thesis").told("view_file", path=path)
