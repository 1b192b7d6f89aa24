"""Where things are while a sandbox is set up, and what its commands may write to."""

from coding_gym.sandbox.zygote import syscalls as sc

EPISODE = "/episode"
# The zygote's root, in the sandbox's own, until that is closed.
OLD = "/.old"
QUIET = sc.NOSUID | sc.NODEV
# A folder of the sandbox's own tmpfs, its path inside, its mode.
WRITABLE = (("tmp", "/tmp", 0o1777), ("home", "/home/agent", 0o755), ("shm", "/dev/shm", 0o1777))  # noqa: S108
_PLACES = ("/workspace", *(inside for _, inside, _ in WRITABLE))


def is_writable(path: str) -> bool:
    """Whether a path is within the workspace or another folder that commands may write to."""
    return any(f"{path}/".startswith(f"{place}/") for place in _PLACES)


def overlay_options(lower: str, upper: str, work: str, *, is_on_disk: bool) -> str:
    """Returns the options of an overlay.

    Args:
        lower: The layers, the topmost first, separated by colons.
        upper: The folder for the changes.
        work: The folder that the kernel works in, beside it.
        is_on_disk: Whether these two are on a disk. They are thrown away with the sandbox, so
            nothing has to wait until they are written out; without ``volatile`` its end does, and
            for everything else that is dirty on that disk.
    """
    options = f"lowerdir={lower},upperdir={upper},workdir={work},userxattr"
    return f"{options},volatile" if is_on_disk else options
