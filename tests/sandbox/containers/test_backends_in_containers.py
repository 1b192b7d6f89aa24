"""Backends inside containers: ``namespace`` with its remedy's options, ``landlock`` without."""

import json
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from docker_daemon import NAME

import coding_gym
from coding_gym.sandbox.docker_engine import Engine
from coding_gym.sandbox.inside import landlock_rules

pytestmark = pytest.mark.slow

_PROBE = """
import json, sys
from coding_gym.sandbox import get_backend

probe = get_backend(sys.argv[1]).probe()
print(json.dumps([probe.available, probe.detail, probe.remedy]))
"""
_OPTIONS = ("seccomp=unconfined", "systempaths=unconfined")
_USERS = ("0:0", "1002:1002")


def _probe_inside(
    engine: Engine, user: str, options: tuple[str, ...], backend: str = "namespace"
) -> Any:
    """Returns the output of a probe in a container with this package and this Python."""
    package = Path(coding_gym.__file__).parents[1]
    shown = {
        "/usr": "/usr",
        sys.base_prefix: "/opt/python",
        sysconfig.get_path("purelib"): "/opt/site",
        str(package): "/opt/package",
    }
    config = engine.api.create_host_config(
        network_mode="none",
        security_opt=[option for option in options if not option.startswith("systempaths")],
        binds=[f"{source}:{target}:ro" for source, target in shown.items()],
    )
    if "systempaths=unconfined" in options:  # as the command line prints it
        config |= {"MaskedPaths": [], "ReadonlyPaths": []}
    python = Path(sys.executable).resolve().relative_to(sys.base_prefix)
    container = engine.api.create_container(
        NAME,
        [f"/opt/python/{python}", "-c", _PROBE, backend],
        user=user,
        environment={"PYTHONPATH": "/opt/package:/opt/site", "PYTHONDONTWRITEBYTECODE": "1"},
        host_config=config,
    )["Id"]
    try:
        engine.api.start(container)
        engine.api.wait(container, timeout=60)
        output = engine.api.logs(container).decode()
    finally:
        engine.remove(container)
    assert output.startswith("["), output
    return json.loads(output)


@pytest.mark.parametrize("user", _USERS)
def test_namespace_works_with_the_documented_options(engine: Engine, user: str) -> None:
    available, detail, _ = _probe_inside(engine, user, _OPTIONS)
    assert available, detail


@pytest.mark.parametrize("user", _USERS)
@pytest.mark.parametrize("options", [(), _OPTIONS[:1], _OPTIONS[1:]])
def test_the_remedy_names_the_options(engine: Engine, user: str, options: tuple[str, ...]) -> None:
    available, detail, remedy = _probe_inside(engine, user, options)
    assert not available, detail
    for option in _OPTIONS:
        assert f"--security-opt {option}" in remedy


@pytest.mark.skipif(landlock_rules.abi() < 2, reason="needs Landlock of Linux 5.19")
def test_landlock_works_as_root_without_options(engine: Engine) -> None:
    available, detail, _ = _probe_inside(engine, "0:0", (), "landlock")
    assert available, detail
