"""Removes what overlays left on a disk."""

import os
import shutil


def remove(folder: str) -> None:
    """Removes a folder and all in it, as far as possible; does nothing where there is none.

    An overlay's work folder has no permissions at all, and a policy may have taken those of its
    own folders, so each gets them back on the way down.
    """
    for path, folders, _ in os.walk(folder):
        for name in folders:
            inner = os.path.join(path, name)
            if not os.path.islink(inner):
                os.chmod(inner, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
