"""The argument ``sandbox`` as a mapping."""

from pathlib import Path
from typing import Any

import pytest
from episodes import FIX, SUBMIT, MakeEnv, shell
from image_fixtures import oci_layout, system, tar_of

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import default_interpreter

FEW_FILES = {"name": "auto", "limits": {"num_open_files": 99}}
# A hidden test that reads its limit of open files in the grading sandbox.
LIMIT_TEST = (
    "--- /dev/null\n+++ b/test_limits.py\n@@ -0,0 +1,6 @@\n"
    "+import resource\n+\n+\n"
    "+def test_files():\n"
    "+    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 1999\n"  # 2000 minus 1
    "+    open('mark', 'w').close()\n"
)


def test_grading_uses_higher_limits_than_commands(
    tiny_row: dict[str, Any], make_env: MakeEnv
) -> None:
    row = tiny_row | {
        "test_patch": LIMIT_TEST,
        "FAIL_TO_PASS": ["test_limits.py::test_files"],
        "PASS_TO_PASS": [],
    }
    rewards = []
    for sandbox in ("auto", FEW_FILES, {"limits": {"num_open_files": 2000}}):
        env = make_env(tasks=[row], sandbox=sandbox)
        env.reset()
        env.step(FIX)
        rewards.append(env.step(SUBMIT)[1])
    assert rewards == [0.0, 0.0, 1.0]


def test_a_persistent_shell_does_not_change_the_tools(make_env: MakeEnv) -> None:
    env = make_env(sandbox={"shell": "persistent"})
    env.reset()
    assert "goes on in the same shell" in env.episode.messages[0]["content"]
    env.step(shell("cd /tmp; export WHO=me; git() { echo mine; }; realpath() { echo /; }"))
    assert env.step(shell("pwd; echo $WHO; git status"))[4]["text"] == "/tmp\nme\nmine"
    assert env.step(FIX)[4]["text"] == "patch applied successfully"
    assert "width * height" in env.episode.patch().text
    assert env.step(SUBMIT)[1] == 1.0


def test_an_image_without_required_programs_is_refused(make_env: MakeEnv, tmp_path: Path) -> None:
    oci_layout(tmp_path / "image", [tar_of(system())])
    sandbox = {"name": "namespace", "image": str(tmp_path / "image")}
    # Tasks use the host's Python by default, which an image does not contain.
    is_systems = default_interpreter().prefix == Path("/usr")
    with pytest.raises(InvalidArgumentError, match="/usr" if is_systems else "base64, .*git"):
        make_env(sandbox=sandbox).reset(seed=0)
