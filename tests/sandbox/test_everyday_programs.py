"""Programs that expect a person, a network or a name of the machine end at once, or work."""

import shutil

import pytest
from sandbox_fixtures import make_sandbox, python_output, stripped_output

from coding_gym.sandbox import Sandbox, default_interpreter

pytestmark = pytest.mark.slow


def test_own_host_name_resolves(sandbox: Sandbox) -> None:
    script = "import socket; print(socket.gethostbyname(socket.gethostname()))"
    assert python_output(sandbox, script) == "127.0.0.1\n"


def test_network_devices_are_listed(sandbox: Sandbox) -> None:
    assert python_output(sandbox, "import socket; print(socket.if_nameindex())") == "[(1, 'lo')]\n"


def test_git_asks_for_no_text_whatever_the_editor(sandbox: Sandbox) -> None:
    commit = "git commit -q --allow-empty"
    command = f"git init -q . && {commit} -m a && EDITOR=vi {commit} --amend"
    assert stripped_output(sandbox, f"{command} && git log --format=%s") == "a"


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_npm_neither_asks_nor_waits(sandbox: Sandbox) -> None:
    assert sandbox.run("npm init", timeout_s=60).ok
    result = sandbox.run("npm install left-pad", timeout_s=60)
    assert not result.timed_out
    assert "ENOTCACHED" in result.output


def test_pip_reports_in_few_lines_that_there_is_no_network(sandbox: Sandbox) -> None:
    assert sandbox.run("python -m venv v").ok
    result = sandbox.run("v/bin/pip install six", timeout_s=60)
    assert not result.ok
    assert "no-network-in-this-sandbox" in result.output
    assert len(result.output.splitlines()) <= 4


def test_builds_with_network_have_no_offline_settings() -> None:
    with make_sandbox(python=default_interpreter(), network=True) as sandbox:
        assert "no-network" not in stripped_output(sandbox, "env")
