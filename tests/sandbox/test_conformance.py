import pytest

from coding_gym.sandbox import backend_names, get_backend
from coding_gym.testing import SandboxCheck, sandbox_checks

pytestmark = pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning")


@pytest.mark.parametrize("backend", backend_names())
@pytest.mark.parametrize("check", sandbox_checks(), ids=lambda check: check.__name__)
def test_backend_keeps_the_contract(backend: str, check: SandboxCheck) -> None:
    check(get_backend(backend))


def test_there_are_enough_checks_and_each_is_a_claim() -> None:
    names = [check.__name__ for check in sandbox_checks()]
    assert len(names) >= 25
    assert len(set(names)) == len(names)
