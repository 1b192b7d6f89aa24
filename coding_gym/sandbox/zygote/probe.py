"""Whether this kernel's overlay works whole with its changes on a tmpfs."""

import os

from coding_gym.sandbox.zygote import syscalls as sc

_PLACE = "/probe"


def overlay_works_on_tmpfs() -> bool:
    """Replaces a folder of a lower layer, which takes user extended attributes on the upper one.

    Tried and not concluded from the version: distributions carry the change into older kernels.
    """
    os.mkdir(_PLACE)
    sc.mount("tmpfs", _PLACE, sc.NOSUID | sc.NODEV, "mode=0700,size=1m")
    try:
        for name in ("lower/folder", "upper", "work", "all"):
            os.makedirs(f"{_PLACE}/{name}")
        folders = (f"{key}dir={_PLACE}/{key}" for key in ("lower", "upper", "work"))
        sc.mount("overlay", f"{_PLACE}/all", sc.NOSUID, ",".join((*folders, "userxattr")))
        os.rmdir(f"{_PLACE}/all/folder")
        os.mkdir(f"{_PLACE}/all/folder")
    except OSError:
        return False
    finally:
        sc.unmount(_PLACE)
        os.rmdir(_PLACE)
    return True
