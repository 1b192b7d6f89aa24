"""Nothing stays behind: however an owner ends, and however a container does."""

import subprocess
import sys
import time

from host_image import NAME, wait_until_removed

from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.containers import DockerBackend
from coding_gym.sandbox.containers.docker_engine import OWNER_LABEL, Engine
from coding_gym.sandbox.containers.warm_pool import close_pools
from coding_gym.sandbox.ownership import identity
from coding_gym.testing.debug import wait_for_warm_containers

_OWNER = """
import os, sys, time
from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.containers import DockerBackend

name, host = sys.argv[1:]
backend = DockerBackend(name, host=host, num_warm=0)
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


def test_what_a_killed_owner_never_started_is_removed_by_the_next(engine: Engine) -> None:
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


def test_a_pool_serves_what_comes_again_and_closes_what_does_not(engine: Engine) -> None:
    before = {one["Id"] for one in engine.api.containers(all=True)}
    # Its own size, and thereby a pool of its own.
    backend = DockerBackend(NAME, host=engine.url, num_warm=1)
    first, second = SandboxSpec(), SandboxSpec(env={"A": "b"})
    for spec in (first, first):
        with backend.open(spec) as sandbox:
            assert sandbox.run("touch mine; echo $A").output == "\n"
    [warm] = _waiting(engine, before)
    with backend.open(first) as sandbox:
        assert sandbox.run("ls").output == ""
        assert warm in {one["Id"] for one in engine.api.containers()}
    [old] = _waiting(engine, before)
    assert old != warm
    for _ in range(8):  # as many as it remembers
        with backend.open(second) as sandbox:
            assert sandbox.run("echo $A").output == "b\n"
    [new] = _waiting(engine, before)
    assert new != old
    close_pools()


def _waiting(engine: Engine, before: set[str]) -> set[str]:
    """Returns the containers of the pool, once those that were closed are gone."""
    wait_for_warm_containers()
    deadline = time.monotonic() + 30
    while len(found := {one["Id"] for one in engine.api.containers(all=True)} - before) > 1:
        assert time.monotonic() < deadline
    return found
