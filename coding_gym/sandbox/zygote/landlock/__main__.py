"""Starts a guardian: ``python -I -S .../zygote/landlock/__main__.py CHANNEL_DESCRIPTOR``."""

import sys
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).resolve().parent


def _stand_in(name: str, folder: Path) -> None:
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module


if __name__ == "__main__":
    _stand_in("coding_gym", _FOLDER.parents[2])
    _stand_in("coding_gym.sandbox", _FOLDER.parents[1])
    _stand_in("coding_gym.sandbox.zygote", _FOLDER.parent)
    from coding_gym.sandbox.zygote.landlock.guardian import main

    main(int(sys.argv[1]))
