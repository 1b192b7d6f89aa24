"""Python source runs in forks of an interpreter that has already imported modules."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from sandbox_fixtures import BACKEND, write_files

from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox import (
    Mount,
    SandboxSpec,
    find_interpreter,
    namespace,
)
from coding_gym.sandbox.spec import Interpreter
from coding_gym.sandbox.zygotes import Zygote

VERSIONS = ["3.11", "3.12", "3.13"]
_IS_WARM = "import sys; print('ahead' in sys.modules)"


@pytest.fixture
def make_spec(tmp_path: Path) -> Callable[..., SandboxSpec]:
    def make(python: Interpreter | None = None, text: str = "COUNT = [0]\n") -> SandboxSpec:
        site = write_files(tmp_path / f"site{len(list(tmp_path.iterdir()))}", {"ahead.py": text})
        python = python or find_interpreter("3.11")
        target = str(python.site_packages)
        return SandboxSpec(
            python=python,
            mounts=(Mount(source=site, target=target),),
            env={"PYTHONPATH": target},
            preload=("ahead",),
        )

    return make


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_forked_runs_equal_cold_starts_on_every_python(
    version: str, make_spec: Callable[..., SandboxSpec]
) -> None:
    try:
        python = find_interpreter(version)
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    spec = make_spec(python)
    scripts = (
        "import os, sys; sys.path += [os.environ['PYTHONPATH']]; import ahead; print(ahead.COUNT)",
        "import sys; print(sys.path)",
        "import os, sys; print(sys.argv, sys.stdin.read(), sorted(os.environ.items()))",
        "import sys; print('é☂'); sys.exit('words')",
        "print(open('/proc/self/cgroup').read())",
        "import os, threading; print(threading.main_thread().native_id == os.getpid())"
        " if hasattr(threading, 'get_native_id') else None",
        "def f():\n    raise ValueError('x')\nf()",
        "import subprocess as s; print(s.run(['false']).returncode, s.run(['pwd']).returncode)",
        "import os, signal; signal.signal(12, lambda *_: print('heard')); os.kill(os.getpid(), 12)",
        "import os, threading; t = threading.Thread(target=print, args=(1,)); t.start()",
        "import resource as r; print([r.getrlimit(getattr(r, 'RLIMIT_' + n)) for n in "
        "('NOFILE', 'NPROC', 'FSIZE', 'CORE', 'DATA', 'NICE', 'MEMLOCK', 'SIGPENDING')])",
    )
    with BACKEND.open(spec) as warm, BACKEND.open(replace(spec, preload=())) as cold:
        assert warm.run_python(_IS_WARM).output == "True\n"
        for script in scripts:
            first, second = (s.run_python(script, stdin=b"in\n") for s in (cold, warm))
            assert (second.exit_code, second.output) == (first.exit_code, first.output), script


@pytest.mark.parametrize("name", ["ahead.py", "json/__init__.py"])
def test_a_module_with_the_same_name_disables_forked_runs(
    name: str, make_spec: Callable[..., SandboxSpec]
) -> None:
    with BACKEND.open(make_spec()) as sandbox:
        sandbox.write_file(name, b"")
        assert sandbox.run_python(_IS_WARM).output == "False\n"
        sandbox.run("rm -r *")
        assert sandbox.run_python(_IS_WARM).output == "True\n"
    spec = make_spec()
    with BACKEND.open(replace(spec, env={"PYTHONPATH": "/tmp/own"})) as sandbox:
        assert sandbox.run_python(_IS_WARM).output == "True\n"
        sandbox.run("mkdir /tmp/own; touch /tmp/own/ahead.py")
        assert sandbox.run_python(_IS_WARM).output == "False\n"


@pytest.mark.parametrize(
    "text",
    [
        "import os; os._exit(1)",
        "raise ValueError",
        "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()",
    ],
)
def test_a_module_that_cannot_be_imported_disables_forked_runs(
    text: str, make_spec: Callable[..., SandboxSpec]
) -> None:
    with BACKEND.open(make_spec(text=text)) as sandbox:
        for _ in range(2):
            assert sandbox.run_python(_IS_WARM).output == "False\n"


@pytest.mark.parametrize("failure", [TimeoutError("no reply in time"), EOFError("it was killed")])
def test_zygote_that_fails_once_does_not_end_preloading(
    make_spec: Callable[..., SandboxSpec],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    receive = Zygote._receive

    def fail(self: Zygote) -> dict[str, Any]:
        if self.is_preloaded:
            raise failure
        return receive(self)

    spec = make_spec()
    with monkeypatch.context() as patched:
        patched.setattr(Zygote, "_receive", fail)
        with BACKEND.open(spec) as sandbox:
            assert sandbox.run_python(_IS_WARM).output == "False\n"
        with BACKEND.open(spec) as sandbox:  # without another wait
            assert sandbox.run_python(_IS_WARM).output == "False\n"
    assert caplog.text.count("are not preloaded") == 1
    monkeypatch.setattr(namespace, "monotonic", lambda: monotonic() + 301.0)
    with BACKEND.open(spec) as sandbox:
        assert sandbox.run_python(_IS_WARM).output == "True\n"
