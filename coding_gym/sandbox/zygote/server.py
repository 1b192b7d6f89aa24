"""The zygote's second process, pid 1 of its namespaces: opens sandboxes on request."""

import gc
import os
import resource
import select
import signal
import socket
import sys
from typing import Any

from coding_gym.sandbox.zygote import init, parts, probe, room, wire
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.shelf import Shelf
from coding_gym.sandbox.zygote.steps import SetupError, step

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECUREBITS = 1, 4, 28
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_NAMESPACES = sc.NEW_USER | sc.NEW_MOUNT | sc.NEW_PID | sc.NEW_IPC | sc.NEW_UTS | sc.NEW_CGROUP


def main(control: socket.socket, owner: int, config: dict[str, Any]) -> None:
    """Prepares the parts, says so, and serves until the owner ends; never returns."""
    sc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        prepared, shelf = _prepare(config)
        _become(config["uid"], config["gid"])
    except SetupError as error:
        control.sendall(wire.pack(error.to_json()))
        os._exit(1)
    # The kernel reaps the ended sandboxes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Parked descriptors are counted per uid: our own limit must be above that of the sandboxes.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # Everything is loaded, and the folders that modules came from may, in a sandbox, be those of
    # whoever runs there.
    sys.path.clear()
    gc.collect()
    gc.freeze()
    gc.disable()
    null = os.open(f"{parts.PARTS}/dev/null", os.O_RDWR)
    control.sendall(wire.pack({"overlay_works_on_tmpfs": probe.overlay_works_on_tmpfs()}))
    os.dup2(null, 2)
    os.close(null)
    try:
        _serve(control, owner, prepared, shelf)
    finally:
        os._exit(0)


def _prepare(config: dict[str, Any]) -> tuple[parts.Parts, Shelf]:
    """Builds the server's own root: the parts, an empty shelf, /proc, and nothing else."""
    host_mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    with step("create a mount namespace"):
        sc.unshare(sc.NEW_MOUNT)
        own_mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        sc.receive_host_mounts_only()
    with step("change the root"):
        sc.mount("tmpfs", "/tmp", sc.NOSUID | sc.NODEV, "mode=0755,size=64m")  # noqa: S108
        os.mkdir("/tmp/host")  # noqa: S108
        sc.pivot("/tmp", "host")  # noqa: S108
    prepared = parts.prepare("/host", config["hidden"])
    with step("mount /proc"):
        os.mkdir("/proc")
        sc.mount("proc", "/proc", sc.NOSUID | sc.NODEV | sc.NOEXEC)
    with step("detach the host's root"):
        sc.unmount("/host")
        os.rmdir("/host")
    os.mkdir(room.EPISODE)
    return prepared, Shelf(host_mounts, own_mounts, config["hidden"])


def _become(uid: int, gid: int) -> None:
    """Takes the uid that sandboxes map, keeping capabilities in this user namespace.

    They are what lets `Shelf` pass the private folders of the user who owns the zygote.
    """
    if os.getuid() == uid:
        return
    with step("change the user"):
        sc.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP)
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        # Both are cleared by the change; children must be able to write their own uid_map.
        sc.prctl(_PR_SET_DUMPABLE, 1)
        sc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(control: socket.socket, owner: int, prepared: parts.Parts, shelf: Shelf) -> None:
    poller = select.poll()
    poller.register(owner, select.POLLIN)
    poller.register(control, select.POLLIN)
    while True:
        if any(descriptor == owner for descriptor, _ in poller.poll()):
            return
        try:
            request, _ = wire.receive(control, max_body_bytes=0)
        except EOFError:
            return
        try:
            theirs = _open(request, prepared, shelf)
        except SetupError as error:
            control.sendall(b"-" + wire.pack(error.to_json()))
            continue
        socket.send_fds(control, [b"+"], [theirs.fileno()])
        theirs.close()


def _open(request: dict[str, Any], prepared: parts.Parts, shelf: Shelf) -> socket.socket:
    """Clones a sandbox's init and returns the owner's end of its channel."""
    request["names"] = [shelf.place(item) for item in request["show"]]
    with step("create a sandbox's namespaces"):
        theirs, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        uid, gid = os.getuid(), os.getgid()
        pid = sc.clone(_NAMESPACES | (0 if request["network"] else sc.NEW_NET))
    if pid == 0:
        _become_init(its, request, prepared, (uid, gid))
    its.close()
    with step("tidy the shelf"):
        shelf.trim()
    return theirs


def _become_init(
    channel: socket.socket, request: dict[str, Any], prepared: parts.Parts, ids: tuple[int, int]
) -> None:
    """Runs `init` in the cloned process; never returns."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(channel.fileno(), 3, inheritable=False)
        channel.detach()
        sc.close_from(4)
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, 3)
        init.main(channel, request, prepared, ids)
    except BaseException as error:  # noqa: BLE001 - nothing may unwind into the server's code in this process
        failure = SetupError("serve the sandbox", 0, repr(error))
        os.write(3, wire.pack(failure.to_json()))
    finally:
        os._exit(1)
