"""A small project in an image, as `conftest` makes it, and what tests do with it."""

import sys
from collections.abc import Callable

from image_fixtures import PACKAGES

from coding_gym.task import Task

MakeTask = Callable[..., Task]
SITE = f"opt/python/lib/python{sys.version_info.major}.{sys.version_info.minor}/{PACKAGES}"
PROJECT = {
    ".gitignore": "*.so\n*.egg-info\nconfig.local\n",
    "config.local": "tracked all the same\n",
    "src/shapes.py": "def area(width, height):\n    return width + height\n",
    "tests/test_shapes.py": (
        "from shapes import area\n\n\ndef test_square():\n    assert area(2, 2) == 4\n"
    ),
}
BUILT = {
    "src/native.so": "machine code",
    "shapes.egg-info/PKG-INFO": "Name: shapes\n",
    "notes.txt": "neither tracked nor ignored\n",
}
