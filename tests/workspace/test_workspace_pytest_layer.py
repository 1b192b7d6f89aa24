"""Every interpreter gets pytest and what it needs, compiled, and nothing else."""

import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from workspace_scene import make_task

from coding_gym.errors import SandboxUnavailableError, TemplateError
from coding_gym.sandbox import Interpreter, Sandbox, find_interpreter, open_sandbox
from coding_gym.workspace import Template, TemplateStore
from coding_gym.workspace.pytest_layer import pytest_distributions


def test_pytest_runs_as_a_command_and_as_a_module(sandbox: Sandbox) -> None:
    for command in ("pytest -q", "python -m pytest -q", "py.test -q"):
        assert "1 passed" in sandbox.run(command).output
    assert version("pytest") in sandbox.run("pytest --version 2>&1").output


def test_an_import_of_pytest_writes_nothing_and_compiles_nothing(sandbox: Sandbox) -> None:
    output = sandbox.run("env -u PYTHONDONTWRITEBYTECODE python -v -c 'import pytest' 2>&1").output
    compiled = [line for line in output.splitlines() if line.startswith("# code object from")]
    packages = [line for line in compiled if "site-packages" in line or "dist-packages" in line]
    assert packages
    assert all(".pyc" in line for line in packages)


def test_nothing_else_of_this_process_is_there(sandbox: Sandbox) -> None:
    script = (
        "from importlib.metadata import distributions\n"
        "print(*sorted(d.name.lower() for d in distributions()))\n"
        "for name in ('coding_gym', 'numpy', 'gymnasium', 'git', 'docker'):\n"
        "    try: __import__(name)\n"
        "    except ImportError: continue\n"
        "    raise SystemExit(name)\n"
    )
    result = sandbox.run("python -", stdin=script.encode())
    assert result.ok, result.output
    expected = {dist.name.lower() for dist in pytest_distributions("3.11.0")}
    assert set(result.output.split()) == expected
    assert "coding_gym" not in sandbox.run("ls /opt; ls $(dirname $(which pytest))").output


_RUNNING = "{}.{}".format(*sys.version_info)


@pytest.mark.parametrize("wanted", [v for v in ("3.11", "3.12", "3.13") if v != _RUNNING])
def test_another_interpreter_gets_its_own_layer(
    store: TemplateStore, template: Template, wanted: str
) -> None:
    try:
        find_interpreter(wanted)
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    other = store.get(make_task(interpreter=wanted))
    assert other.key != template.key
    with open_sandbox(other.spec) as sandbox:
        assert sandbox.run("python --version").output.startswith(f"Python {wanted}.")
        assert "1 passed" in sandbox.run("pytest -q").output


def test_an_interpreter_that_pytest_does_not_run_on_is_refused(
    store: TemplateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Interpreter(
        executable=Path("/usr/bin/python3.7"),
        prefix=Path("/usr"),
        version="3.7.17",
        site_packages=Path("/usr/lib/python3.7/site-packages"),
    )
    monkeypatch.setattr("coding_gym.workspace.builder.find_interpreter", lambda _: old)
    with pytest.raises(TemplateError, match=r"pytest \S+ does not run on Python 3\.7\.17; give"):
        store.get(make_task(interpreter="3.7"))


@pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning")
def test_the_process_backend_runs_pytest_too(fresh_folder: Path) -> None:
    template = TemplateStore("process", fresh_folder).get(make_task())
    with open_sandbox(template.spec, backend="process") as sandbox:
        assert "1 passed" in sandbox.run("pytest -q").output
        assert sandbox.run("git status -s").output == ""
