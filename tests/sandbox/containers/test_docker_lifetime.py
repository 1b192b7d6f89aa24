"""Nothing stays behind: however an owner ends, and however a container does."""

import subprocess
import sys

import pytest
from host_image import NAME, wait_until_removed

from coding_gym.sandbox.containers.docker_engine import OWNER_LABEL, Engine
from coding_gym.sandbox.ownership import identity

pytestmark = pytest.mark.slow

_OWNER = """
import os, sys, time
from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.containers import DockerBackend

name, host = sys.argv[1:]
backend = DockerBackend(name, host=host)
opened = [backend.open(SandboxSpec()) for _ in range(4)]
if os.fork() == 0:
    for sandbox in opened:
        sandbox.close()
    print("open", flush=True)
    sys.stdin.read()
    os._exit(0)
opened[0].run("trap '' HUP TERM; (trap '' HUP TERM; sleep 600) & sleep 600", timeout_s=900)
"""


def test_a_killed_owner_leaves_no_container(engine: Engine) -> None:
    before = {one["Id"] for one in engine.api.containers(all=True)}
    command = [sys.executable, "-c", _OWNER, NAME, engine.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        mine = [one for one in engine.api.containers() if one["Id"] not in before]
        assert len(mine) >= 4
        owner.kill()
        wait_until_removed(engine.api, mine)  # although a fork of it goes on
    assert {one["Id"] for one in engine.api.containers(all=True)} <= before


def test_containers_of_dead_owners_are_removed(engine: Engine) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    place, _, started = (mine := identity()).split("-")
    forgotten = f"{place}-{gone.pid}-{started}"
    elsewhere = f"{'0' * len(place)}-{gone.pid}-{started}"
    made = [
        engine.api.create_container(NAME, ["true"], labels={OWNER_LABEL: owner})["Id"]
        for owner in (forgotten, elsewhere, mine)
    ]
    engine.sweep()
    left = {one["Id"] for one in engine.api.containers(all=True)}
    assert [one in left for one in made] == [False, True, True]
    for one in made:
        engine.remove(one)
