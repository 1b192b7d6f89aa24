import ast
from importlib import resources

import pytest

from coding_gym.errors import GradingError
from coding_gym.grading.supervision import run_tests
from coding_gym.sandbox import open_sandbox
from coding_gym.sandbox.spec import SandboxSpec


@pytest.mark.parametrize("name", ["bootstrap.py", "supervisor.py"])
def test_what_runs_inside_keeps_to_the_grammar_of_python_3_6(name: str) -> None:
    text = resources.files("coding_gym.grading").joinpath(name).read_text(encoding="utf-8")
    assert ast.parse(text, feature_version=(3, 6)).body
    assert "coding_gym" not in text


def test_an_environment_without_pytest_is_our_fault_in_one_line() -> None:
    with open_sandbox(SandboxSpec()) as sandbox:
        sandbox.write_file("test_x.py", b"def test_x():\n    pass\n")
        with pytest.raises(GradingError, match=r"could not be started: \S.*$"):
            run_tests(sandbox, ["test_x.py"], timeout_s=60, load_plugins=False)
