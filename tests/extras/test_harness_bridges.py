"""Unmodified loops of other projects repair a bundled task in our sandbox, and are graded by us."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("nano.agent", reason="needs the extra `peers`")
pytest.importorskip("minisweagent", reason="needs the extra `peers`")

import yaml
from scripted_server import IDLE, calls, serving

from coding_gym.adapters.mini_swe_agent import MiniSweEnvironment
from coding_gym.adapters.nano import NanoEnvironment
from coding_gym.errors import SandboxError
from coding_gym.grade import GradeReason

TASK = "ledgerline-month-overlap"
FILE = "ledgerline/periods.py"
WRONG, RIGHT = "or date <= self.end", "or date < self.end"
FIX = f"sed -i 's/{WRONG}/{RIGHT}/' {FILE}"
DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
LOOK = "git log --oneline | head -n 1; cat /etc/shadow; ls /workspace | head -n 3"

# What litellm and its parts warn of is theirs.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is looked up on a network, announced, or written to the home folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("MSWEA_SILENT_STARTUP", "1")
        patch.setenv("MSWEA_GLOBAL_CONFIG_DIR", str(tmp_path_factory.mktemp("mswea")))
        patch.setenv("MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT", "1")
        yield


def nano_agent(env: NanoEnvironment, url: str, tool_limit: int = 10) -> Any:
    agent = pytest.importorskip("nano.agent", reason="needs the extra `peers`")
    return agent.Agent(
        "openai/scripted", url, token_limit=100_000, tool_limit=tool_limit, log=False, env=env
    )


def mini_agent(env: MiniSweEnvironment, url: str) -> Any:
    """The agent and the model class of mini-swe-agent, with its own configuration file."""
    reason = "needs the extra `peers`"
    agents = pytest.importorskip("minisweagent.agents.default", reason=reason)
    models = pytest.importorskip("minisweagent.models.litellm_model", reason=reason)
    import minisweagent

    config = yaml.safe_load((minisweagent.package_dir / "config" / "mini.yaml").read_text())
    model = models.LitellmModel(
        **config["model"]
        | {"model_name": "openai/scripted", "cost_tracking": "ignore_errors"}
        | {"model_kwargs": {"api_base": url}},
    )
    limits = {"step_limit": 10, "cost_limit": 0.0}
    return agents.DefaultAgent(model, env, **config["agent"] | limits)


def test_nano_agents_loop_repairs_a_bundled_task() -> None:
    script = [
        calls(("shell", {"cmd": LOOK})),
        calls(("apply_patch", {"search": WRONG, "replace": RIGHT, "file": FILE})),
        calls(("shell", {"cmd": "python -m pytest -q -p no:cacheprovider | tail -n 1"})),
    ]
    with serving(script) as server, NanoEnvironment(TASK) as env:
        agent = nano_agent(env, server.url)
        diff = agent.run(env.task.problem_statement)
        grade = env.grade()
    assert grade.resolved
    assert diff == env.patch().text
    assert RIGHT in diff
    replies = [m["content"] for m in agent.messages if m["role"] == "tool"]
    assert "/etc/shadow: No such file" in replies[0]
    assert replies[1] == "patch applied successfully"
    assert replies[2].endswith("in 0.00s")
    assert len(server.requests) == len(script) + 1
    assert agent.tool_stats["tool_success_rate_apply_patch"] == 1.0


def test_nano_agent_sees_new_files_in_its_diff_and_each_run_begins_at_the_base() -> None:
    with serving([calls(("shell", {"cmd": "echo x > new.txt"}))]) as server:
        env = NanoEnvironment(TASK)
        agent = nano_agent(env, server.url)
        assert "+++ b/new.txt" in agent.run("Add a file.")
        assert not env.is_clean()
        grade = env.grade()
        assert not grade.resolved
    with serving([IDLE]) as server:
        assert nano_agent(env, server.url, tool_limit=0).run("Do nothing.") == ""
        assert env.grade().reason is GradeReason.EMPTY_PATCH


def test_mini_swe_agents_loop_repairs_a_bundled_task() -> None:
    script = [
        calls(("bash", {"command": LOOK})),
        calls(("bash", {"command": FIX}), ("bash", {"command": f"git diff {FILE}"})),
        {"role": "assistant", "content": "No call at all."},
        calls(("bash", {"command": "sleep 60"})),
        calls(("bash", {"command": DONE})),
    ]
    with serving(script) as server, MiniSweEnvironment(TASK, timeout=0.2) as env:
        agent = mini_agent(env, server.url)
        end = agent.run(env.task.problem_statement)
        assert end == {"exit_status": "Submitted", "submission": ""}
        assert agent.serialize()["info"]["config"]["environment"]["cwd"] == "/workspace"
        grade = env.grade()
    assert grade.resolved
    told = [json.loads(m["content"]) for m in agent.messages if m["role"] == "tool"]
    assert "/etc/shadow: No such file" in told[0]["output"]
    assert RIGHT in told[2]["output"]
    assert "timed out after 0.2 seconds" in told[3]["exception_info"]
    assert len(server.requests) == len(script)


def test_idle_models_are_not_resolved() -> None:
    with serving([]) as server, NanoEnvironment(TASK) as env:
        nano_agent(env, server.url, tool_limit=2).run(env.task.problem_statement)
        assert env.grade().reason is GradeReason.EMPTY_PATCH
    with serving([]) as server, MiniSweEnvironment(TASK) as mini:
        end = mini_agent(mini, server.url).run(mini.task.problem_statement)
        assert end["exit_status"] == "RepeatedFormatError"
        assert mini.grade().reason is GradeReason.EMPTY_PATCH


def test_prompts_of_mini_swe_agent_know_the_sandbox_and_no_variable_of_the_host() -> None:
    with MiniSweEnvironment(TASK, env={"PAGER": "cat"}) as env:
        known = env.get_template_vars(more=1)
    names = {"cwd", "timeout", "env", "system", "node", "release", "version", "machine", "more"}
    assert known.keys() == names
    assert known["system"] == "Linux"


def test_a_sandbox_that_dies_is_not_blamed_on_the_policy() -> None:
    script = [calls(("shell", {"cmd": FIX})), calls(("shell", {"cmd": "ls"}))]
    with serving(script) as server, NanoEnvironment(TASK) as env:
        agent = nano_agent(env, server.url, tool_limit=1)
        start = env.start

        def start_and_die() -> None:
            start()
            with env.episode.access() as context:
                context.sandbox.close()

        env.start = start_and_die  # type: ignore[method-assign]
        with pytest.raises(SandboxError):
            agent.run(env.task.problem_statement)
        with pytest.raises(SandboxError):
            env.grade()
