"""The zygote's second process, pid 1 of its namespaces: opens sandboxes on request."""

import gc
import os
import signal
import socket
import sys
from functools import partial
from typing import Any, NoReturn

from coding_gym.sandbox.zygote import host_folders, mounts, packing, serving, wire
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.host_folders import ShownFolders
from coding_gym.sandbox.zygote.owner import serve
from coding_gym.sandbox.zygote.plan import CHANNEL, PlanCache, PlannedSandbox
from coding_gym.sandbox.zygote.preloaders import Preloaders
from coding_gym.sandbox.zygote.steps import SetupError, step

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECUREBITS = 1, 4, 28
_SECBIT_NO_SETUID_FIXUP = 1 << 2


def main(control: socket.socket, owner: int, config: dict[str, Any]) -> None:
    """Prepares the allow-list, says so, and serves until the owner ends; never returns."""
    sc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    serving.warm_up()
    try:
        shown = _prepare(config)
        packing.warm_up("/warm-up")
        _become(config["uid"], config["gid"])
    except SetupError as error:
        control.sendall(wire.pack(error.to_json()))
        os._exit(1)
    # The kernel reaps the ended sandboxes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    plans, preloaders = PlanCache(shown, control), Preloaders()
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
        serve(control, owner, partial(_open, control, plans, preloaders))
    finally:
        os._exit(0)


def _prepare(config: dict[str, Any]) -> ShownFolders:
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
    return ShownFolders(host_mounts, own_mounts, config["hidden"])


def _become(uid: int, gid: int) -> None:
    """Takes the uid that sandboxes map, keeping capabilities in this user namespace.

    They let `ShownFolders` pass the private folders of the user who owns the zygote.
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
    group: int | None,
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
            _become_init(its, control, planned, group, preloader)
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


def _become_init(
    its: int,
    control: socket.socket,
    planned: PlannedSandbox,
    group: int | None,
    preloader: tuple[int, int] | None,
) -> NoReturn:
    """Runs the cloned process, where ``control`` becomes its own; never returns."""
    try:
        os.dup2(its, CHANNEL, inheritable=False)
        serving.main(control, planned, group, preloader)
    except BaseException as error:  # noqa: BLE001 - nothing may unwind into the server's code in this process
        failure = SetupError("serve the sandbox", 0, repr(error))
        os.write(CHANNEL, wire.pack(failure.to_json()))
    finally:
        os._exit(1)
