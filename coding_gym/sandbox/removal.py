"""Removal of folders whose content resists it: no permissions, or nested too deep.

The work is done by a module of the zygote, which must remove such folders too and can import
nothing but its own; this is the door for everyone else.
"""

from pathlib import Path

from coding_gym.sandbox.zygote import scratch


def remove_folder(folder: Path) -> None:
    """Removes a folder and all in it, as far as possible; fine where there is none.

    Folders without permissions, and folders nested deeper than a path can name, go too.
    """
    scratch.remove(str(folder))
