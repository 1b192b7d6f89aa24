"""The zygote's first process: leaves the host's namespaces and dies with the owner.

It never serves anything. Its child, the server, is pid 1 of the new pid namespace, so the end of
the server is the end of every sandbox, whatever state they are in.
"""

import os
import signal

from coding_gym.sandbox.zygote import owner, scratch, server, wire
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.steps import SetupError, step

# Below that of sandboxes, which die first, and above all else. What root of the machine writes here
# is a floor for whatever descends from this process: no command can take its own mark off.
_OOM_SCORE = 800
_NAMESPACES = sc.NEW_USER | sc.NEW_MOUNT | sc.NEW_PID | sc.NEW_IPC | sc.NEW_UTS


def main() -> None:
    """Reads the configuration, starts the server, waits for the owner's or the server's end."""
    control, config = owner.connect()
    try:
        watched = owner.watch(config["owner"])
        _leave_host(config["uid"], config["gid"])
        pid = os.fork()
        if pid == 0:
            server.main(control, watched, config)
    except SetupError as error:
        control.sendall(wire.pack(error.to_json()))
        os._exit(1)
    control.close()
    owner.wait_for_either(watched, os.pidfd_open(pid))
    # The end of the server, pid 1 of its namespace, is the end of every sandbox. Should this
    # process be killed instead, the parent-death signal that the server armed does the same.
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    # An owner that lives removes its sandboxes' folders itself, and may have begun others.
    if owner.has_ended(watched) and os.path.isdir(config["scratch"]):
        scratch.remove(config["scratch"])
    os._exit(0)


def _leave_host(uid: int, gid: int) -> None:
    """Enters new namespaces in which ``uid`` is mapped, and root too if root asks."""
    if os.getuid() == uid:
        with step("create a user namespace"):
            sc.unshare(_NAMESPACES)
        with step("map the user"):
            sc.write_text("/proc/self/setgroups", "deny")
            sc.write_text("/proc/self/uid_map", f"{uid} {uid} 1")
            sc.write_text("/proc/self/gid_map", f"{gid} {gid} 1")
        return
    _leave_host_as_root(uid, gid)


def _leave_host_as_root(uid: int, gid: int) -> None:
    """As `_leave_host`, with two lines in each map.

    Only a process in the parent namespace may write more than one line, so a helper forked
    beforehand does; CAP_SETUID and CAP_SETGID are all it needs.
    """
    this = f"/proc/{os.getpid()}"
    with step("set the out-of-memory score"):
        sc.raise_oom_score(_OOM_SCORE)
    go_read, go_write = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(go_write)
        if os.read(go_read, 1):
            sc.write_text(f"{this}/uid_map", f"0 0 1\n{uid} {uid} 1\n")
            sc.write_text(f"{this}/gid_map", f"0 0 1\n{gid} {gid} 1\n")
        os._exit(0)
    os.close(go_read)
    with step("create a user namespace"):
        sc.unshare(_NAMESPACES)
    os.write(go_write, b"x")
    os.close(go_write)
    with step("map the users"):
        _, status = os.waitpid(helper, 0)
        if status:
            raise OSError(1, f"uid 0 and {uid} could not be mapped")
