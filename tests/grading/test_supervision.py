import ast
from collections.abc import Iterator
from importlib import resources

import pytest

from coding_gym.errors import GradingError
from coding_gym.grading.supervision import run_tests
from coding_gym.sandbox import default_interpreter, open_sandbox
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.sandbox.spec import SandboxSpec


@pytest.mark.parametrize(
    "name", ["bootstrap.py", "pytest_program.py", "supervisor.py", "unittest_program.py"]
)
def test_inside_programs_parse_as_python_3_6(name: str) -> None:
    text = resources.files("coding_gym.grading").joinpath(name).read_text(encoding="utf-8")
    assert ast.parse(text, feature_version=(3, 6)).body
    assert "coding_gym" not in text


@pytest.fixture
def bare() -> Iterator[Sandbox]:
    """A sandbox with Python, a test, and no pytest."""
    with open_sandbox(SandboxSpec(python=default_interpreter())) as sandbox:
        sandbox.write_file("test_x.py", b"def test_x():\n    pass\n")
        yield sandbox


def test_an_environment_without_python_is_our_fault_in_one_line() -> None:
    with (
        open_sandbox(SandboxSpec()) as sandbox,
        pytest.raises(GradingError, match=r"^[^\n]+$"),
    ):
        run_tests(sandbox, ["test_x.py"], timeout_s=60, has_own_pytest=False)


def test_an_environment_without_pytest_is_our_fault_in_one_line(bare: Sandbox) -> None:
    with pytest.raises(GradingError, match=r"^[^\n]*'pytest'[^\n]*$"):
        run_tests(bare, ["test_x.py"], timeout_s=60, has_own_pytest=False)


def test_install_commands_that_bring_no_pytest_are_told_so(bare: Sandbox) -> None:
    with pytest.raises(GradingError, match="install_commands"):
        run_tests(bare, ["test_x.py"], timeout_s=60, has_own_pytest=True)
