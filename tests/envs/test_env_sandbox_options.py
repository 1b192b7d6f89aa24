"""`sandbox=` as a mapping: what it changes, and every door it passes through."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec
from moves import FIX, SUBMIT, shell

from coding_gym import Grade
from coding_gym.adapters.trl import environment_factory
from coding_gym.envs.coding_repair import CodingRepairEnv
from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.sandbox import default_interpreter
from coding_gym.testing.sandbox_images import save_image
from coding_gym.vector import make_vec

FEW_FILES = {"name": "auto", "limits": {"num_open_files": 99}}
HOW_MANY = shell("ulimit -n")
# A hidden test that says how many files the grading sandbox lets it open.
COUNTS = (
    "--- /dev/null\n+++ b/test_limits.py\n@@ -0,0 +1,6 @@\n"
    "+import resource\n+\n+\n"
    "+def test_files():\n"
    "+    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 1100\n"
    "+    open('mark', 'w').close()\n"
)


def test_the_policys_commands_run_within_the_limits(tiny_row: dict[str, Any]) -> None:
    env = CodingRepairEnv(tasks=[tiny_row], sandbox=FEW_FILES)
    env.reset()
    assert env.step(HOW_MANY)[4]["text"] == "99"
    assert env.step(FIX)[4]["text"] == "patch applied successfully"
    assert env.step(SUBMIT)[1] == 1.0
    env.close()


def test_grading_has_the_same_limits_and_what_it_needs_at_least(tiny_row: dict[str, Any]) -> None:
    row = tiny_row | {
        "test_patch": COUNTS,
        "FAIL_TO_PASS": ["test_limits.py::test_files"],
        "PASS_TO_PASS": [],
    }
    rewards = []
    for sandbox in ("auto", FEW_FILES, {"limits": {"num_open_files": 1100}}):
        env = CodingRepairEnv(tasks=[row], sandbox=sandbox)
        env.reset()
        env.step(FIX)
        rewards.append(env.step(SUBMIT)[1])
        env.close()
    assert rewards == [0.0, 0.0, 1.0]


def test_a_spec_with_options_round_trips_through_json(tiny_row: dict[str, Any]) -> None:
    env: Any = gym.make("CodingRepair-v0", tasks=[tiny_row], sandbox=FEW_FILES)
    again = EnvSpec.from_json(env.spec.to_json())
    assert again == env.spec
    remade: Any = gym.make(again)
    remade.reset()
    assert remade.step(HOW_MANY)[4]["text"] == "99"
    remade.close()
    env.close()


def test_vector_envs_and_adapters_pass_options_on(tiny_row: dict[str, Any]) -> None:
    vec = make_vec(2, tasks=[tiny_row], sandbox=FEW_FILES)
    vec.reset()
    assert vec.step([HOW_MANY] * 2)[4]["text"].tolist() == ["99", "99"]
    vec.close()
    rollout: Any = environment_factory(tasks=[tiny_row], sandbox=FEW_FILES)()
    rollout.reset(task_id="shapes-area")
    assert rollout.shell(cmd="ulimit -n").strip() == "99"


def test_options_that_cannot_be_are_refused_before_anything_runs(tiny_row: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="'memory'; did you mean 'memory_bytes'"):
        CodingRepairEnv(tasks=[tiny_row], sandbox={"limits": {"memory": 1}})
    with pytest.raises(UnknownNameError, match="no sandbox shell is called 'bash'"):
        make_vec(2, tasks=[tiny_row], sandbox={"shell": "bash"})


def test_a_waiting_shell_changes_no_byte() -> None:
    actions = [
        shell("ls -la; git status; env | sort; pwd; echo $0 $-; id"),
        shell("python -m pytest -q 2>&1 | tail -n 3; exit 3"),
        shell("echo changed >> README.md; cat <<< in; git diff; sleep 60 & disown"),
        '{"name": "apply_patch", "arguments": {"search": "changed", "replace": "x", '
        '"file": "README.md"}}',
        shell("cat README.md | tail -n 1; echo $((6 * 7)) >&2; false"),
        SUBMIT,
    ]
    seen = []
    for kind in ("fresh", "waiting"):
        env = CodingRepairEnv(sandbox={"shell": kind}, max_obs_tokens=64)
        steps: list[Any] = [env.reset(seed=2)[1]]
        steps += [env.step(action)[1:] for action in actions]
        env.close()
        seen.append([json.dumps(step, default=Grade.to_json) for step in steps])
    assert seen[1] == seen[0]


def test_a_persistent_shell_keeps_what_a_policy_set_and_not_ours(tiny_row: dict[str, Any]) -> None:
    env = CodingRepairEnv(tasks=[tiny_row], sandbox={"shell": "persistent"})
    env.reset()
    env.step(shell("cd /tmp; export WHO=me; git() { echo mine; }; realpath() { echo /; }"))
    assert env.step(shell("pwd; echo $WHO; git status"))[4]["text"] == "/tmp\nme\nmine"
    assert env.step(FIX)[4]["text"] == "patch applied successfully"
    assert "width * height" in env.patch().text
    assert env.step(SUBMIT)[1] == 1.0
    env.close()


def test_the_prompt_is_true_of_the_shell(tiny_row: dict[str, Any]) -> None:
    for kind, words in (("fresh", "starts anew"), ("persistent", "goes on in the same shell")):
        with closing(CodingRepairEnv(tasks=[tiny_row], sandbox={"shell": kind})) as env:
            env.reset(seed=0)
            assert words in env.episode.messages[0]["content"]


def test_an_image_without_what_episodes_need_is_named(
    tiny_row: dict[str, Any], tmp_path: Path
) -> None:
    save_image(tmp_path / "image.tar")
    sandbox = {"name": "namespace", "image": str(tmp_path / "image.tar")}
    # The host's own Python, which tasks run with unless they say otherwise, is no part of an image.
    is_systems = default_interpreter().prefix == Path("/usr")
    said = "is part of the host's /usr" if is_systems else r"lacks base64, .*git.*; install"
    with (
        closing(CodingRepairEnv(tasks=[tiny_row], sandbox=sandbox)) as env,
        pytest.raises(InvalidArgumentError, match=said),
    ):
        env.reset(seed=0)
