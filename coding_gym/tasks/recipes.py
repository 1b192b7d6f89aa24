"""Recorded installations of projects as commands that need only pip.

A specification is one entry of the tables of SWE-bench's harness: a Python version, conda packages,
packages of pip, commands before and for the installation, and a test command. The harness runs them
in conda environments of images; here they become a virtual environment, as far as pip can. What it
cannot do — the system's package manager, conda's own packages — is dropped and named.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coding_gym.errors import InvalidArgumentError
from coding_gym.tasks.recipe_dates import CONSTRAINTS, constrain

# What would change the machine, which a sandbox has no right to.
_SYSTEM = re.compile(r"\b(apt|apt-get|locale-gen|yum|apk|conda|sudo)\b|/etc/|/usr/|^\w+=\S*$")
_NOT_OF_PIP = frozenset({"python", "pip", "nodejs", "git", "make", "compilers"})
_FILES = ("requirements.txt", "environment.yml")
_KEPT, _ONE = "coding-gym-kept.txt", "coding-gym-one.txt"
_SPEC_KEYS = ("python", "packages", "pip_packages", "pre_install", "install", "test_cmd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How to make the environment of a row.

    Attributes:
        interpreter: The Python version.
        install_commands: Shell commands, as a task has them.
        test_command: What runs the tests, without the files; "" where the source does not say.
        excluded: Commands of the source that cannot run in a sandbox.
    """

    interpreter: str
    install_commands: tuple[str, ...]
    test_command: str = ""
    excluded: tuple[str, ...] = ()

    def to_entry(self) -> dict[str, Any]:
        """Returns it as an entry of what `load_tasks` takes as ``environments``."""
        entry: dict[str, Any] = {
            "interpreter": self.interpreter,
            "install_commands": list(self.install_commands),
        }
        return entry | ({"visible_test_command": self.test_command} if self.test_command else {})


def make_recipe(
    spec: Mapping[str, Any],
    *,
    requirements: Sequence[str] = (),
    environments: Sequence[str] = (),
    where: str = "the specification",
) -> Recipe:
    """Returns the recipe that a specification stands for.

    Releases that came after the commit and are known to break older projects are ruled out, which
    the harness got by having been run in its time; but for packages that the specification pins.

    Args:
        spec: May hold ``python``, ``packages``, ``pip_packages``, ``pre_install``, ``install`` and
            ``test_cmd``.
        requirements: Where the project's requirements file may lie, where ``packages`` says so.
        environments: The same of its conda environment file.
        where: Names the specification in errors.

    Raises:
        InvalidArgumentError: A part of it is not what it must be.
    """
    part = _Parts(spec, where)
    packages, pip_packages = part.text("packages"), part.texts("pip_packages")
    before, test_command = part.texts("pre_install"), part.text("test_cmd")
    excluded = tuple(command for command in before if _SYSTEM.search(command))
    names = [] if packages in _FILES else [_from_conda(word) for word in shlex.split(packages)]
    from_pip = shlex.split(" ".join(pip_packages))
    commands = [constrain(names + from_pip)]
    # In two steps: the pip that old Pythons bring picks releases that they cannot use.
    commands.append("python -m pip install --upgrade pip")
    commands.append("python -m pip install --upgrade setuptools wheel")
    if packages == "requirements.txt":
        commands.append(_install_listed(requirements, _PLAIN, where))
    elif packages == "environment.yml":
        commands.append(_install_listed(environments, _FROM_CONDA, where))
    commands += _install(name for name in names if name not in _NOT_OF_PIP)
    commands += _install(from_pip)
    commands += [command for command in before if command not in excluded]
    commands += [install] if (install := part.text("install")) else []
    if "pytest" in test_command:  # there already, most often, and then this does nothing
        commands.append("python -m pip install 'pytest<9'")
    return Recipe(
        interpreter=part.text("python") or "base",
        install_commands=tuple(commands),
        test_command=test_command,
        excluded=excluded,
    )


class _Parts:
    """Reads the parts of a specification, which others wrote."""

    def __init__(self, spec: Mapping[str, Any], where: str) -> None:
        self._spec = spec
        self._where = where

    def text(self, key: str) -> str:
        value = self._spec.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._wrong(key, "text", value)
        return value.strip()

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._spec.get(key) or ()
        if isinstance(value, str) or not all(isinstance(one, str) for one in value):
            raise self._wrong(key, "a list of texts", value)
        return tuple(value)

    def _wrong(self, key: str, wanted: str, value: object) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{self._where}: {key!r} must be {wanted}, got {repr(value)[:80]}"
        )


def _install(names: Iterable[str]) -> list[str]:
    words = list(names)
    return [f"python -m pip install {shlex.join(words)}"] if words else []


def _from_conda(word: str) -> str:
    """Returns a conda requirement as pip spells it: ``a=1.2=build`` means ``a==1.2.*``."""
    match = re.fullmatch(r"([\w.-]+)=([^=<>!~]+)(?:=.*)?", word)
    return f"{match[1]}=={match[2].rstrip('.*')}.*" if match else word


# Lines of a requirements file, but for the project itself and a package that is gone.
_PLAIN = (
    r"sed -E '/^[[:space:]]*(-e \.|\.\[test|#)/d; "
    r"s/^types-pkg_resources.*/types-setuptools/' "
    r'"$listed"'
)
# The dependencies of a conda environment, those for pip among them, as pip spells them.
_FROM_CONDA = (
    r"""sed -n '/^dependencies:/,$p' "$listed" | sed -nE """
    r"""'s/^ *- *"?([A-Za-z0-9_.-]+) *([=<>!~][^"#]*)?"?[[:space:]]*(#.*)?$/\1\2/p' | """
    r"""sed -E '/^(python|pip|nodejs|compilers)($|[=<>!~ ])/d; """
    r"""s/^([^=<>!~]+)=([0-9][^=<>!~*]*)(\.\*)?(=.*)?$/\1==\2.*/'"""
)


# A constraint of a package whose version the file limits itself goes.
_OWN_LIMITS = (
    rf"sed -nE 's/^([A-Za-z0-9._-]+)(\[[^]]*\])? *(==|~=|<).*/\1/p' {_KEPT} | "
    f'while read -r name; do sed -i -E "/^${{name//[-_.]/[-_.]}}</Id" {CONSTRAINTS}; done'
)


def _install_listed(paths: Sequence[str], lines: str, where: str) -> str:
    """Returns a command that installs what a file of the tree lists.

    All of it at once, so that versions fit together; where that fails, line by line, and what
    cannot be had is named in the log: the harness had conda and an older index.
    """
    if not paths:
        raise InvalidArgumentError(f"{where}: names a file of requirements, but not where it is")
    names = shlex.join(paths)
    return (
        f'listed=; for place in {names}; do if [ -f "$place" ]; then listed=$place; break; fi; '
        f'done; if [ -z "$listed" ]; then echo "ERROR: none of {names} is in the tree"; exit 1; fi;'
        f' cd -- "$(dirname -- "$listed")"; listed=$(basename -- "$listed"); '
        f"{lines} > {_KEPT}; {_OWN_LIMITS}; "
        f"python -m pip install -r {_KEPT} || while IFS= read -r line; do "
        f"printf '%s\\n' \"$line\" > {_ONE}; python -m pip install -r {_ONE} </dev/null || "
        f'echo "excluded: $line"; done < {_KEPT}; rm -f {_KEPT} {_ONE}'
    )
