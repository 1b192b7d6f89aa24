"""The zygote of the ``namespace`` engine: two processes.

The first one leaves the host's namespaces, and dies with the owner. It never serves anything. Its
child, the server, is pid 1 of the new pid namespace, so the end of the server is the end of every
sandbox, whatever state they are in. It opens sandboxes on request.
"""

import gc
import os
import signal
import socket
import sys
from functools import partial
from typing import Any, NoReturn

from coding_gym.sandbox.inside import host_folders, mounts, owner, packing, scratch, serving, wire
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.host_folders import MountedFolders
from coding_gym.sandbox.inside.plan import CHANNEL, PlanCache, PlannedSandbox
from coding_gym.sandbox.inside.preloaders import Preloaders
from coding_gym.sandbox.inside.syscalls import SetupError, step

# Below that of sandboxes, which die first, and above all else. What root of the machine writes here
# is a floor for whatever descends from this process: no command can take its own mark off.
_OOM_SCORE = 800
_NAMESPACES = sc.NEW_USER | sc.NEW_MOUNT | sc.NEW_PID | sc.NEW_IPC | sc.NEW_UTS
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECUREBITS = 1, 4, 28
_SECBIT_NO_SETUID_FIXUP = 1 << 2


def main() -> None:
    """Reads the configuration, starts the server, waits for the owner's or the server's end."""
    control, config = owner.connect()
    try:
        watched = owner.watch(config["owner"])
        _leave_host(config["uid"], config["gid"])
        pid = os.fork()
        if pid == 0:
            _serve(control, watched, config)
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


def _serve(control: socket.socket, watched: int, config: dict[str, Any]) -> None:
    """Prepares the allow-list, says so, and serves until the owner ends; never returns."""
    sc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    serving.warm_up()
    try:
        mounted = _prepare(config)
        packing.warm_up("/warm-up")
        _switch_user(config["uid"], config["gid"])
    except SetupError as error:
        control.sendall(wire.pack(error.to_json()))
        os._exit(1)
    # The kernel reaps the ended sandboxes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    plans, preloaders = PlanCache(mounted, control), Preloaders()
    # Everything is loaded, and the folders that modules came from may, in a sandbox, be those of
    # whoever runs there.
    sys.path.clear()
    gc.collect()
    gc.freeze()
    gc.disable()
    null = os.open(f"{host_folders.ALLOWED}/dev/null", os.O_RDWR)
    control.sendall(wire.pack({"overlay_works_on_tmpfs": mounts.overlay_works_on_tmpfs()}))
    os.dup2(null, 2)
    os.close(null)
    try:
        owner.serve(control, watched, partial(_open, control, plans, preloaders))
    finally:
        os._exit(0)


def _prepare(config: dict[str, Any]) -> MountedFolders:
    """Builds the server's own root: the allow-list, /proc, and nothing else."""
    host_mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    with step("create a mount namespace"):
        sc.unshare(sc.NEW_MOUNT)
        own_mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        sc.receive_host_mounts_only()
    with step("change the root"):
        sc.mount("tmpfs", "/tmp", sc.NOSUID | sc.NODEV, "mode=0755,size=64m")  # noqa: S108
        os.mkdir("/tmp/host")  # noqa: S108
        sc.pivot("/tmp", "host")  # noqa: S108
    host_folders.prepare_allow_list("/host", config["hidden"])
    with step("mount /proc"):
        os.mkdir("/proc")
        sc.mount("proc", "/proc", sc.NOSUID | sc.NODEV | sc.NOEXEC)
    with step("detach the host's root"):
        sc.unmount("/host")
        os.rmdir("/host")
    os.mkdir(mounts.EPISODE)
    return MountedFolders(host_mounts, own_mounts, config["hidden"])


def _switch_user(uid: int, gid: int) -> None:
    """Takes the uid that sandboxes map, keeping capabilities in this user namespace.

    They let `MountedFolders` pass the private folders of the user who owns the zygote.
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


def _open(
    control: socket.socket,
    plans: PlanCache,
    preloaders: Preloaders,
    text: bytes,
) -> tuple[int]:
    """Clones a sandbox's init and returns the owner's end of its channel."""
    planned = plans.get(text)
    preloader = None
    theirs = its = -1
    try:
        if planned.preload is not None:
            preloader = preloaders.connect(planned.preload)
        theirs, its = sc.socket_pair()
        if sc.clone(planned.namespaces) == 0:
            _run_init(its, control, planned, preloader)
        plans.tidy()
    except (OSError, SetupError) as error:
        if theirs >= 0:
            os.close(theirs)
        if isinstance(error, SetupError):
            raise
        raise SetupError("create a sandbox's namespaces", error.errno or 0, str(error)) from error
    finally:
        if its >= 0:
            os.close(its)
        for descriptor in preloader or ():
            os.close(descriptor)
    return (theirs,)


def _run_init(
    its: int,
    control: socket.socket,
    planned: PlannedSandbox,
    preloader: tuple[int, int] | None,
) -> NoReturn:
    """Runs the cloned process, where ``control`` becomes its own; never returns."""
    try:
        os.dup2(its, CHANNEL, inheritable=False)
        serving.main(control, planned, preloader)
    except BaseException as error:  # noqa: BLE001 - nothing may unwind into the server's code in this process
        failure = SetupError("serve the sandbox", 0, repr(error))
        os.write(CHANNEL, wire.pack(failure.to_json()))
    finally:
        os._exit(1)
