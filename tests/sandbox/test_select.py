"""Backends by name, and what `auto` takes."""

import warnings
from typing import Any

import pytest
from machines import NO_LANDLOCK, NO_UNSHARE, NO_USER_NAMESPACES, run_on

from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.sandbox import SandboxSpec, backend_names, get_backend, open_sandbox
from coding_gym.sandbox.process import NoIsolationWarning
from coding_gym.sandbox.zygote.landlock import rights

_CHOOSE = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox import SandboxSpec, get_backend, open_sandbox
try:
    with open_sandbox(SandboxSpec()) as sandbox:
        print(get_backend().name, sandbox.run("echo ran").output, end="")
except SandboxUnavailableError as error:
    print("problem:", error.problem)
    print("remedy:", error.remedy)
"""


def test_automatic_choice_isolates_and_does_not_warn() -> None:
    assert get_backend("auto").name == "namespace"
    assert get_backend().name == "namespace"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with open_sandbox(SandboxSpec()) as sandbox:
            assert sandbox.workdir == "/workspace"


def test_every_backend_has_the_name_it_is_asked_for_by() -> None:
    assert set(backend_names()) == {"apptainer", "docker", "landlock", "namespace", "process"}
    for name in backend_names():
        assert get_backend(name).name == name
        assert get_backend(name) is get_backend(name)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="'lxc'; there are apptainer, auto, docker"):
        get_backend("lxc")


@pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning")
@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("namespace", {"shell": "interactive"}, "shell must be"),
        ("landlock", {"shell": "persistent"}, "no persistent shells"),
        ("landlock", {"image": "x"}, "cannot run the image 'x'; use 'namespace'"),
        ("docker", {"shell": "persistent"}, "persistent"),
        ("apptainer", {"shell": "persistent"}, "no persistent shells"),
        ("process", {"shell": "persistent"}, r"shell='persistent'.*'namespace'"),
        ("process", {"image": "some.tar"}, "cannot run the image"),
    ],
)
def test_what_a_backend_cannot_do_is_refused(name: str, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        get_backend(name).open(SandboxSpec(**fields))


def test_no_isolation_must_be_named_and_warns() -> None:
    with (
        pytest.warns(NoIsolationWarning, match="isolates nothing"),
        open_sandbox(SandboxSpec(), backend="process") as sandbox,
    ):
        assert sandbox.run("echo ran").output == "ran\n"


@pytest.mark.skipif(rights.abi() == 0, reason="the kernel does not enforce Landlock")
@pytest.mark.parametrize("machine", [NO_UNSHARE, NO_USER_NAMESPACES])
def test_where_namespaces_are_forbidden_landlock_is_taken_and_that_is_told(machine: str) -> None:
    ended = run_on(machine, _CHOOSE)
    assert ended.stderr == ""
    told, ran = ended.stdout.splitlines()
    assert told.startswith("WARNING sandboxes are of the 'landlock' backend: could not create a ")
    assert ran == "landlock ran"


def test_where_nothing_isolates_the_error_says_what_would_mend_the_best() -> None:
    ended = run_on(NO_UNSHARE + NO_LANDLOCK, _CHOOSE)
    assert ended.stderr == ""
    problem, remedy = ended.stdout.splitlines()
    assert problem.startswith(
        "problem: no sandbox works on this machine: could not create a user namespace: "
    )
    assert len(remedy) > len("remedy: ")
