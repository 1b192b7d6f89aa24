import ast
from importlib import resources

import pytest

from coding_gym.errors import GradingError
from coding_gym.grading.supervision import TestRunner
from coding_gym.sandbox import default_interpreter, open_sandbox
from coding_gym.sandbox.spec import SandboxSpec


@pytest.mark.parametrize("name", ["bootstrap.py", "plugin.py", "supervisor.py"])
def test_inside_programs_parse_as_python_3_6(name: str) -> None:
    text = resources.files("coding_gym.grading.inside").joinpath(name).read_text(encoding="utf-8")
    assert ast.parse(text, feature_version=(3, 6)).body
    assert "coding_gym" not in text


@pytest.mark.parametrize(
    ("spec", "has_own_pytest", "named"),
    [
        (SandboxSpec(), False, ""),
        (SandboxSpec(python=default_interpreter()), False, "'pytest'"),
        (SandboxSpec(python=default_interpreter()), True, "install_commands"),
    ],
    ids=["no Python", "no pytest", "install commands that bring no pytest"],
)
def test_an_environment_that_cannot_run_pytest_is_our_fault(
    spec: SandboxSpec, has_own_pytest: bool, named: str
) -> None:
    with open_sandbox(spec) as sandbox:
        sandbox.write_file("test_x.py", b"def test_x():\n    pass\n")
        runner = TestRunner(sandbox, has_own_pytest=has_own_pytest)
        with pytest.raises(GradingError) as caught:
            runner.run(["test_x.py"], timeout_s=60)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)
