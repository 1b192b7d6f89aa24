"""Descriptors: those that are parked in sockets, and those that an owner lets through."""

import contextlib
import os
import resource
import threading

from arena import Arena

from coding_gym.errors import SandboxError
from coding_gym.sandbox import Sandbox, SandboxSpec
from coding_gym.testing import debug

_PARK = """
import os, socket
here, go = (os.open(f"/opt/gate/{name}", os.O_RDWR) for name in ("here", "go"))
end, _ = socket.socketpair()
kept = []
while True:
    try:
        kept.append(socket.socketpair())
        kept[-1][0].setblocking(False)
        while True:
            socket.send_fds(kept[-1][0], [b"x"], [end.fileno()] * 200)
    except BlockingIOError:
        continue
    except OSError:
        break
os.write(here, b"x")
os.read(go, 1)
"""


def test_parked_descriptors_do_not_keep_others_from_opening(arena: Arena) -> None:
    def run(attacker: Sandbox) -> None:
        with contextlib.suppress(SandboxError):
            attacker.run("python park.py")

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with arena.backend.open(arena.spec) as attacker:
        attacker.write_file("park.py", _PARK.encode())
        thread = threading.Thread(target=run, args=(attacker,))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
        thread.start()
        try:
            arena.wait_for_attack()
            for _ in range(5):
                with arena.backend.open(SandboxSpec()) as other:
                    assert other.run("echo open").output == "open\n"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            os.write(arena.host.go, b"x")
            attacker.close()
            thread.join()


def test_inheritable_descriptors_do_not_reach_a_sandbox(arena: Arena) -> None:
    with arena.host.secret.open("rb") as secret:
        os.set_inheritable(secret.fileno(), True)
        for number in (secret.fileno(), 40, 63):
            os.dup2(secret.fileno(), number, inheritable=True)
        try:
            with debug.without() as backend, backend.open(arena.spec) as attacker:
                listed = attacker.run("ls -l /proc/self/fd; cat <&40; cat <&63").output
                assert arena.host.marker not in listed
                assert "secrets" not in listed
                assert listed.count("Bad file descriptor") == 2
        finally:
            os.close(40)
            os.close(63)
