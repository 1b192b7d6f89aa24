"""Releases that broke many older projects, with their dates; pip has no option for a date."""

import re
import shlex
from collections.abc import Iterable

# The first excluded release of each package, with the day of its upload.
_BREAKING = (
    ("docutils", "0.18", "2021-10-26"),
    ("markupsafe", "2.1", "2022-02-17"),
    ("jinja2", "3.1", "2022-03-24"),
    ("click", "8.1", "2022-03-28"),
    ("importlib-metadata", "5", "2022-10-01"),
    ("sqlalchemy", "2", "2023-01-26"),
    ("pandas", "2", "2023-04-03"),
    ("urllib3", "2", "2023-04-26"),
    ("pydantic", "2", "2023-06-30"),
    ("pytest", "8", "2024-01-27"),
    ("setuptools", "70", "2024-05-21"),
    ("numpy", "2", "2024-06-16"),
    ("pip", "24.1", "2024-06-21"),
)
# Later releases lack pkg_resources, which tests of any age import.
_ALWAYS = ("setuptools", "81", "9999")
_PINNED = re.compile(r"([\w.-]+)(?:\[.*?\])?\s*(?:==|~=|<)")
_SETTINGS = r"[global]\nconstraint = %s\nbuild-constraint = %s\n"
CONSTRAINTS = '"$VIRTUAL_ENV/constraints.txt"'


def constrain(requirements: Iterable[str]) -> str:
    """Returns a shell command that writes constraints for all later calls of pip.

    They exclude the releases that are newer than the commit in the current folder and known to
    break old projects. Without a commit they exclude only releases that break every project.

    Args:
        requirements: The requirements that will be installed, in pip's syntax. Packages that they
            pin, or bound from above, have no constraint.
    """
    pinned = {_normal(match[1]) for match in map(_PINNED.match, requirements) if match}
    lines = " ".join(
        shlex.quote(f"{day} {name}<{release}")
        for name, release, day in (*_BREAKING, _ALWAYS)
        if name not in pinned
    )
    day = "day=$(git log -1 --format=%cs || echo 9000)"
    chosen = f'for line in {lines}; do [[ ${{line%% *}} < $day ]] || echo "${{line#* }}"; done'
    settings = f'printf "{_SETTINGS}" {CONSTRAINTS} {CONSTRAINTS} > "$VIRTUAL_ENV/pip.conf"'
    return f"{day}; {chosen} > {CONSTRAINTS}; {settings}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
