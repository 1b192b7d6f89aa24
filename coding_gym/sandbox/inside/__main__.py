"""Starts a zygote, with its channel as standard input: ``python .../inside/__main__.py KIND``.

KIND is the name of a backend.

Empty modules with the packages' search paths replace the packages around this folder. So the
modules here can import each other by full names, and neither ``coding_gym/__init__.py`` nor the
dependencies of the package are loaded.
"""

import sys
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).resolve().parent


def _add_empty_package(name: str, folder: Path) -> None:
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module


if __name__ == "__main__":
    # Without ``-I`` the first entry is the folder of this file.
    sys.path[:] = [path for path in sys.path if path != str(_FOLDER)]
    _BASE = sys.path[:]
    _add_empty_package("coding_gym", _FOLDER.parents[1])
    _add_empty_package("coding_gym.sandbox", _FOLDER.parent)
    if sys.argv[1] == "landlock":
        from coding_gym.sandbox.inside.landlock_server import main

        main()
    from coding_gym.sandbox.inside import preloaded, server

    try:
        server.main()
    except preloaded.Forked as error:
        _FORKED = error
    preloaded.run(_FORKED, _BASE)
