"""How an inner server starts processes, which ones are its sandbox's, and how it opens files."""

from dataclasses import dataclass

from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.files import Opener
from coding_gym.sandbox.zygote.process_table import Processes, all_but_first
from coding_gym.sandbox.zygote.spawn import Launcher, Spawner


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosure:
    """The strategies of one kind of sandbox.

    Attributes:
        launcher: Starts bash.
        processes: Lists and signals all that runs in the sandbox.
        open_file: Opens files for the owner.
        owns_network: Whether the sandbox may have a network of its own.
    """

    launcher: Launcher
    processes: Processes
    open_file: Opener
    owns_network: bool


# In a pid namespace of its own, whose first process the inner server is.
NAMESPACE = Enclosure(
    launcher=Spawner(),
    processes=Processes(all_but_first, has_own_signals=True),
    open_file=sc.open_without_magic,
    owns_network=True,
)
