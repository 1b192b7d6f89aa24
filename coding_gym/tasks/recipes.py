"""Converts recorded installations of projects to commands that need only pip.

A specification is one entry of the tables of SWE-bench's harness: a Python version, conda packages,
pip packages, pre-install and install commands, and a test command. The harness installs the project
into a conda environment of an image; here pip installs it into a virtual environment. Commands of
the system's package manager (the build log names them) and conda's own packages are excluded.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coding_gym.tasks.root_commands import without_root
from coding_gym.tasks.sources.swe_bench import INSTALL_PYTEST

_CONDA_ONLY = frozenset({"python", "pip", "nodejs", "git", "make", "compilers"})
_LISTS = ("requirements.txt", "environment.yml")
_LINES, _LINE = "coding-gym-kept.txt", "coding-gym-one.txt"
# The first release of each package that broke many older projects, with the date of its upload: the
# pip of older Pythons cannot select releases by date.
_BREAKING_RELEASES = (
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
# Later releases lack pkg_resources, which tests of old and new projects import.
_ALWAYS_EXCLUDED = ("setuptools", "81", "9999")
_PINNED = re.compile(r"([\w.-]+)[^;#]*?(?:==|~=|<)")
_SETTINGS = r"[global]\nconstraint = %s\nbuild-constraint = %s\n"
_CONSTRAINTS = '"$VIRTUAL_ENV/constraints.txt"'


def make_recipe(
    spec: Mapping[str, Any],
    *,
    requirements: Sequence[str] = (),
    environments: Sequence[str] = (),
) -> dict[str, Any]:
    """Converts a specification to an entry of the ``environments`` of `load_tasks`.

    Releases that are newer than the commit and are known to break older projects are excluded, as
    the harness ran before these releases existed. Packages that the specification pins stay pinned.

    Args:
        spec: The specification, with any of the keys ``python``, ``packages``, ``pip_packages``,
            ``pre_install``, ``install`` and ``test_cmd``.
        requirements: Possible paths of the project's requirements file, for
            ``packages: requirements.txt``.
        environments: Possible paths of the project's conda environment file.
    """
    packages, test_command = spec.get("packages", ""), spec.get("test_cmd", "")
    words = [] if packages in _LISTS else shlex.split(packages)
    names = [_from_conda(w) for w in words if re.split("[=<>!~]", w)[0] not in _CONDA_ONLY]
    from_pip = shlex.split(" ".join(spec.get("pip_packages", ())))
    commands = [_constrain(names + from_pip)]
    # In two steps, as the old pip of an old Python selects setuptools that this Python cannot use.
    commands.append("python -m pip install --upgrade pip")
    commands.append("python -m pip install --upgrade setuptools wheel")
    if packages == "requirements.txt":
        commands.append(_install_listed(requirements, _PRINT_REQUIREMENTS))
    elif packages == "environment.yml":
        commands.append(_install_listed(environments, _PRINT_CONDA_PACKAGES))
    commands += _install(names)
    commands += _install(from_pip)
    commands += without_root(spec.get("pre_install", ()))
    commands += [spec["install"]] if "install" in spec else []
    if "pytest" in test_command:
        commands.append(INSTALL_PYTEST)  # has no effect if pytest below 9 is installed
    entry = {"interpreter": spec.get("python", "base"), "install_commands": commands}
    return entry | ({"visible_test_command": test_command} if test_command else {})


def _constrain(requirements: Iterable[str]) -> str:
    """Returns a shell command that writes constraints for all later calls of pip.

    The constraints exclude releases that are newer than the commit in the current folder and are
    known to break older projects. Without a commit, they only exclude new releases of setuptools.

    Args:
        requirements: The requirements that will be installed, in pip's syntax. Packages with
            a pinned version or an upper bound get no constraint.
    """
    pinned_names = {_normalised(match[1]) for match in map(_PINNED.match, requirements) if match}
    lines = " ".join(
        shlex.quote(f"{day} {name}<{release}")
        for name, release, day in (*_BREAKING_RELEASES, _ALWAYS_EXCLUDED)
        if name not in pinned_names
    )
    day = "day=$(git log -1 --format=%cs || echo 9000)"
    selection = f'for line in {lines}; do [[ ${{line%% *}} < $day ]] || echo "${{line#* }}"; done'
    settings = f'printf "{_SETTINGS}" {_CONSTRAINTS} {_CONSTRAINTS} > "$VIRTUAL_ENV/pip.conf"'
    return f"{day}; {selection} > {_CONSTRAINTS}; {settings}"


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _install(requirements: Sequence[str]) -> list[str]:
    return [f"python -m pip install {shlex.join(requirements)}"] if requirements else []


def _from_conda(word: str) -> str:
    """Returns a conda requirement in pip's syntax: ``a=1.2=build`` becomes ``a==1.2.*``."""
    match = re.fullmatch(r"([\w.-]+)=([^=<>!~]+)(?:=.*)?", word)
    return f"{match[1]}=={match[2].rstrip('.*')}.*" if match else word


# Prints a requirements file without the project itself, and with the new name of one package.
_PRINT_REQUIREMENTS = (
    r"sed -E '/^[[:space:]]*(-e \.|\.\[test|#)/d; "
    r"s/^types-pkg_resources.*/types-setuptools/' "
    r'"$listed"'
)
# Prints the dependencies of a conda environment, including those for pip, in pip's syntax.
_PRINT_CONDA_PACKAGES = (
    r"""sed -n '/^dependencies:/,$p' "$listed" | sed -nE """
    r"""'s/^ *- *"?([A-Za-z0-9_.-]+) *([=<>!~][^"#]*)?"?[[:space:]]*(#.*)?$/\1\2/p' | """
    r"""sed -E '/^(python|pip|nodejs|compilers)($|[=<>!~ ])/d; """
    r"""s/^([^=<>!~]+)=([0-9][^=<>!~*]*)(\.\*)?(=.*)?$/\1==\2.*/'"""
)


# Removes the constraint of each package that the requirements file itself bounds.
_DROP_BOUNDED = (
    rf"sed -nE 's/^([A-Za-z0-9._-]+)[^;#]*(==|~=|<).*/\1/p' {_LINES} | "
    f'while read -r name; do sed -i -E "/^${{name//[-_.]/[-_.]}}</Id" {_CONSTRAINTS}; done'
)


def _install_listed(paths: Sequence[str], print_lines: str) -> str:
    """Returns a command that installs the packages of a requirements file in the tree.

    The command installs all packages at once, so that versions are compatible. On failure, it
    installs line by line and logs failures: the harness had conda and an older package index.

    Args:
        paths: Possible paths of the file; the command uses the first that exists.
        print_lines: A shell command that prints the requirements in the file ``$listed``.
    """
    names = shlex.join(paths)
    return (
        f'listed=; for place in {names}; do if [ -f "$place" ]; then listed=$place; break; fi; '
        f'done; if [ -z "$listed" ]; then echo "ERROR: none of {names} is in the tree"; exit 1; fi;'
        f' cd -- "$(dirname -- "$listed")"; listed=$(basename -- "$listed"); '
        f"{print_lines} > {_LINES}; {_DROP_BOUNDED}; "
        f"python -m pip install -r {_LINES} || while IFS= read -r line; do "
        f"printf '%s\\n' \"$line\" > {_LINE}; python -m pip install -r {_LINE} </dev/null || "
        f'echo "excluded: $line"; done < {_LINES}; rm -f {_LINES} {_LINE}'
    )
