"""The zygote of the ``namespace`` backend, which consists of two processes.

The first process leaves the host's namespaces, and ends when the owner ends. Its child, the server,
opens sandboxes on request. The server is pid 1 of the new pid namespace, so all sandboxes end with
the server.
"""

import errno
import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from coding_gym.sandbox.inside import (
    host_folders,
    lockdown,
    mounts,
    owner,
    packing,
    preloaded,
    wire,
)
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.commands import Start
from coding_gym.sandbox.inside.host_folders import MountedFolders
from coding_gym.sandbox.inside.mounts import MountNames
from coding_gym.sandbox.inside.packing import Changes
from coding_gym.sandbox.inside.preloaded import Forked
from coding_gym.sandbox.inside.request import Preload, SandboxRequest
from coding_gym.sandbox.inside.roots import HostRoot, ImageRoot
from coding_gym.sandbox.inside.serving import Commands, serve
from coding_gym.sandbox.inside.syscalls import SetupError, step

# Lower than the score of sandboxes, which are killed first, higher than that of other processes.
# A score that root writes is a lower bound for all descendants, so commands cannot lower theirs.
_OOM_SCORE = 800
_LOOPBACK = "127.0.0.1"
_NAMESPACES = sc.NAMESPACES & ~(sc.NEW_CGROUP | sc.NEW_NET)  # of the server
_SECBIT_NO_SETUID_FIXUP = 1 << 2


def main() -> None:
    """Reads the configuration, starts the server, waits for the owner's or the server's end."""
    control, config = owner.connect()
    try:
        owner_pidfd = owner.watch(config["owner"])
        _leave_host(config["uid"], config["gid"])
        with step("start the server"):
            pid = os.fork()
        if pid == 0:
            _serve(control, owner_pidfd, config)
    except SetupError as error:
        owner.report(control, error)
        os._exit(1)
    control.close()
    select.select([owner_pidfd, os.pidfd_open(pid)], [], [])
    # All sandboxes end with the server, which is pid 1 of their namespace. If this process is
    # killed, the kernel kills the server (PR_SET_PDEATHSIG).
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os._exit(0)


def _leave_host(uid: int, gid: int) -> None:
    """Enters new namespaces that map ``uid``, and also uid 0 if this process has another uid."""
    if os.getuid() == uid:
        with step("create a user namespace", "namespaces"):
            sc.unshare(_NAMESPACES)
        with step("map the user"):
            sc.write_text("/proc/self/setgroups", "deny")
            sc.write_text("/proc/self/uid_map", f"{uid} {uid} 1")
            sc.write_text("/proc/self/gid_map", f"{gid} {gid} 1")
        return
    _leave_host_as_root(uid, gid)


def _leave_host_as_root(uid: int, gid: int) -> None:
    """Enters new namespaces like `_leave_host`, with two lines in each map.

    Only a process in the parent namespace may write more than one line, so a helper, forked
    earlier, writes them; it needs only CAP_SETUID and CAP_SETGID.
    """
    process = f"/proc/{os.getpid()}"
    with step("set the out-of-memory score"):
        sc.raise_oom_score(_OOM_SCORE)
    with step("start a process that maps the users"):
        go_read, go_write = os.pipe()
        helper = os.fork()
    if helper == 0:
        os.close(go_write)
        if os.read(go_read, 1):
            sc.write_text(f"{process}/uid_map", f"0 0 1\n{uid} {uid} 1\n")
            sc.write_text(f"{process}/gid_map", f"0 0 1\n{gid} {gid} 1\n")
        os._exit(0)
    os.close(go_read)
    with step("create a user namespace", "namespaces"):
        sc.unshare(_NAMESPACES)
    os.write(go_write, b"x")
    os.close(go_write)
    with step("map the users", "users"):
        _, status = os.waitpid(helper, 0)
        if status:
            raise OSError(errno.EPERM, f"uid 0 and {uid} could not be mapped")


def _serve(control: socket.socket, owner_pidfd: int, config: dict[str, Any]) -> None:
    """Prepares the allow-list, then serves until the owner ends; raises `Forked` in forks."""
    sc.prctl(sc.PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        mounted_folders = _prepare()
        _switch_user(config["uid"], config["gid"])
        preload: Preload | None = config["preload"]
        if preload:
            preloaded.import_modules(preload, mounted_folders)
    except SetupError as error:
        owner.report(control, error)
        os._exit(1)
    # Now the kernel reaps the first processes of sandboxes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # All modules are loaded, and a policy could write modules to the folders of this path.
    sys.path.clear()
    on_tmpfs = mounts.overlay_works_on_tmpfs()
    for cached_function in (host_folders.allowed_folders, mounts.lists_newest_first):
        cached_function()
    lockdown.num_capabilities()
    gc.collect()
    gc.freeze()
    gc.disable()
    null = os.open(f"{host_folders.ALLOW_LIST}/dev/null", os.O_RDWR)
    control.sendall(wire.pack({"overlay_works_on_tmpfs": on_tmpfs}))
    os.dup2(null, 2)
    os.close(null)
    fork = partial(preloaded.fork, preload.folder) if preload else None
    try:
        owner.serve(control, owner_pidfd, partial(_open, control, mounted_folders, fork))
    except Forked:
        raise
    except BaseException:  # noqa: BLE001 - no exception may reach the code of the parent process
        os._exit(1)
    os._exit(0)


def _prepare() -> MountedFolders:
    """Builds the server's root, which has only the allow-list and /proc."""
    host_mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    with step("create a mount namespace"):
        sc.unshare(sc.NEW_MOUNT)
        server_mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        sc.make_slaves()
    with step("change the root"):
        sc.mount("tmpfs", "/tmp", sc.NOSUID | sc.NODEV, "mode=0755,size=64m")  # noqa: S108
        os.mkdir("/tmp/host")  # noqa: S108
        sc.pivot("/tmp", "host")  # noqa: S108
    host_folders.prepare_allow_list("/host")
    with step("mount /proc"):
        os.mkdir("/proc")
        sc.mount("proc", "/proc", sc.NOSUID | sc.NODEV | sc.NOEXEC)
    with step("detach the host's root"):
        sc.unmount("/host")
        os.rmdir("/host")
    os.mkdir(mounts.EPISODE)
    return MountedFolders(host_mounts, server_mounts)


def _switch_user(uid: int, gid: int) -> None:
    """Switches to the uid that sandboxes map; keeps capabilities in this user namespace.

    The capabilities let `MountedFolders` enter private folders of the user who runs the owner.
    """
    if os.getuid() == uid:
        return
    with step("change the user"):
        sc.prctl(sc.PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP)
        sc.set_user(uid, gid)  # dumpable: children must be able to write their uid_map
        # The change of the user clears this setting.
        sc.prctl(sc.PR_SET_PDEATHSIG, signal.SIGKILL)


def _open(
    control: socket.socket,
    mounted_folders: MountedFolders,
    fork: Start | None,
    request: SandboxRequest,
) -> int:
    """Clones a sandbox's first process and returns the owner's end of its channel."""
    mounted_folders.trim()
    mount_names = {source: mounted_folders.name(source) for source in request.sources()}
    user = os.getuid(), os.getgid()
    with step("create a sandbox's namespaces"):
        owners_end, channel = socket.socketpair()
        with channel:
            if sc.clone(sc.NAMESPACES & ~(sc.NEW_NET if request.network else 0)) == 0:
                owners_end.detach()
                os.dup2(channel.detach(), control.fileno(), inheritable=False)
                set_up = partial(_set_up, request, mount_names, user)
                _run_init(control, request, set_up, fork)
    return owners_end.detach()


def _run_init(
    channel: socket.socket,
    request: SandboxRequest,
    set_up: Callable[[socket.socket], Changes],
    fork: Start | None,
) -> NoReturn:
    """Sets the sandbox up and serves its owner; never returns, and raises `Forked` in forks."""
    try:
        changes = set_up(channel)
        channel.sendall(wire.pack({}))
        for port in request.ports:
            _listen(port, channel)
        lockdown.limit_descriptors(request.limits)
        commands = Commands(request.env, request.limits["memory_bytes"], channel, fork=fork)
        serve(channel, commands, {"snapshot": partial(packing.send, changes)})
    except Forked:
        raise
    except BaseException as error:  # noqa: BLE001 - no exception may reach the server's code in this process
        owner.report(channel, error)
    # No other process of the sandbox runs now, and the mounts end with this process.
    os._exit(0)


def _set_up(
    request: SandboxRequest, mount_names: MountNames, user: tuple[int, int], channel: socket.socket
) -> Changes:
    """Makes this newly cloned process the first of a sandbox; returns the folders of changes."""
    image = request.image
    root = HostRoot() if image is None else ImageRoot(request, image, mount_names)
    _drop_server_state(channel)
    mounts.map_user(user, image)
    with step("mount the sandbox's tmpfs"):
        folders = mounts.make_tmpfs(request, mount_names) | root.make_changes()
        changes = packing.open_folders(folders, newest_first=mounts.lists_newest_first())
    if request.restores:  # before anything is mounted on these folders
        message, _ = wire.receive_request(channel)
        packing.restore(changes.folders, message["file"])
    times = root.mount()
    mounts.enter_root()
    with step("fill the sandbox's root"):
        root.fill(times)
    mounts.mount_private_folders(request, mount_names)
    with step("write the sandbox's files", "request"):
        mounts.make_links(request.links)
    mounts.mount_sources(request, mount_names, times)  # host files are out of reach from here on
    mounts.limit_restored(request)
    mounts.limit_counts()
    lockdown.set_network(shared=request.network)
    root.finish(times)
    lockdown.drop_privileges(request.limits)
    return changes


def _drop_server_state(channel: socket.socket) -> None:
    with step("close the server's descriptors"):
        sc.call("close_range", channel.fileno() + 1, 0x7FFFFFFF, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _listen(port: int, channel: socket.socket) -> None:
    """Listens at a port of the sandbox and sends the listening socket to the owner.

    The call must precede `limit_descriptors`: the kernel compares this limit to the descriptors in
    transit of all processes of the user, so other sandboxes could make the call fail.
    """
    with socket.create_server((_LOOPBACK, port)) as listener:
        socket.send_fds(channel, [b"+"], [listener.fileno()])
