"""Tests run in a fork with pytest: it has a new interpreter's state and no secrets."""

import json
from dataclasses import replace
from typing import Any

import pytest
from grading_fixtures import TASK
from sandbox_fixtures import BACKEND

from coding_gym.grade import TestStatus
from coding_gym.grading.supervision import run_tests
from coding_gym.grading.tree import TestTree
from coding_gym.sandbox import SandboxSpec
from coding_gym.workspace import TemplateStore

_FACTS = """\
import gc, json, multiprocessing, os, random, signal, subprocess, sys, time

def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True

def test_facts():
    threads = len(os.listdir("/proc/self/task"))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        lengths = pool.map(len, ["ab"])
    facts = dict(
        argv=sys.argv, path=sys.path, executable=sys.executable, prefix=sys.prefix,
        is_plain=not sys.dont_write_bytecode, hash=hash("text"), environment=dict(os.environ),
        folder=os.getcwd(), zone=time.tzname, leads_session=os.getpid() == os.getsid(0),
        main=sorted(vars(sys.modules["__main__"])), started=sys.modules["__main__"].__file__,
        collects=gc.isenabled(), lengths=lengths,
        encodings=[sys.stdout.encoding, sys.getfilesystemencoding()],
        descriptors=[n for n in range(100) if is_open(n)], failed=subprocess.call(["false"]),
        signals=[signal.getsignal(n).name for n in (signal.SIGCHLD, signal.SIGPIPE)],
        threads=threads, limits=open("/proc/self/limits").read(),
        status=[line for line in open("/proc/self/status") if line[:3] in ("Cap", "NoN", "Sec")],
        is_new="here" not in vars(json), warm="_preload_pytest" in sys.modules,
    )
    json.here = True
    with open("facts", "w") as file:
        json.dump(dict(facts, random=random.random()), file)
"""
_SEARCH = """\
import re

def test_memory_holds_no_secret():
    secret = re.compile(b'"fra' + b'me": "[0-9a-f]{32}"')
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
        for line in maps:
            limits, rights = line.split()[:2]
            if rights[0] == "r" and "[v" not in line:
                start, end = (int(text, 16) for text in limits.split("-"))
                memory.seek(start)
                assert not secret.search(memory.read(end - start))
"""


@pytest.fixture(scope="module")
def spec() -> SandboxSpec:
    return TestTree(TASK, TemplateStore().get(TASK), "namespace", 60).spec


def _run(spec: SandboxSpec, test: str, files: dict[str, str]) -> bytes:
    """Runs a test that must pass; returns the content that it wrote to the file ``facts``."""
    with BACKEND.open(spec) as sandbox:
        for path, text in {"facts": "", **files, "test_x.py": test}.items():
            sandbox.write_file(path, text.encode())
        report = run_tests(sandbox, ["test_x.py"], has_own_pytest=False, timeout_s=60)
        assert list(report.statuses.values()) == [TestStatus.PASSED], report.messages
        return sandbox.read_file("facts")


def _facts(spec: SandboxSpec, files: dict[str, str]) -> dict[str, Any]:
    return json.loads(_run(spec, _FACTS, files))


@pytest.mark.slow
def test_fork_has_the_same_state_as_a_new_interpreter(spec: SandboxSpec) -> None:
    fork, fork2, new = _facts(spec, {}), _facts(spec, {}), _facts(replace(spec, preload=()), {})
    assert (fork.pop("warm"), fork2.pop("warm"), new.pop("warm")) == (True, True, False)
    assert len({facts.pop("random") for facts in (fork, fork2, new)}) == 3
    assert fork == fork2 == new
    assert new["started"] == new["argv"][0]
    assert new["started"].endswith("/pytest/__main__.py")


def test_memory_of_tests_holds_no_secret(spec: SandboxSpec) -> None:
    _run(spec, _SEARCH, {})


@pytest.mark.parametrize(
    "change", [{"install_commands": ("pip --version",)}, {"runner": "command"}]
)
def test_only_the_pytest_of_this_package_is_preloaded(change: dict[str, Any]) -> None:
    tree = TestTree(replace(TASK, **change), TemplateStore().get(TASK), "namespace", 60)
    assert tree.spec.preload == ()
