import pytest

from coding_gym.sandbox import SandboxBackend, backend_names, get_backend
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.testing import SandboxCheck, sandbox_checks

pytestmark = pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning")


# What old kernels get without being asked, tried on this one too.
BACKENDS = {name: get_backend(name) for name in backend_names()}
BACKENDS["namespace-on-disk"] = NamespaceBackend(changes="disk")


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize("check", sandbox_checks(), ids=lambda check: check.__name__)
def test_backend_keeps_the_contract(backend: SandboxBackend, check: SandboxCheck) -> None:
    check(backend)


def test_there_are_enough_checks_and_each_is_a_claim() -> None:
    names = [check.__name__ for check in sandbox_checks()]
    assert len(names) >= 25
    assert len(set(names)) == len(names)
