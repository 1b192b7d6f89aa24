"""What a project tells pytest about its tests, and what is overruled."""

import configparser
import shlex
import tomllib
from collections.abc import Mapping

# Where a project may tell pytest how to run, in pytest's own order of precedence.
CONFIG_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
# Whatever a project's configuration says of these, all tests run, here, once, in order. The name of
# an option that this pytest, or its plug-ins, do not have means nothing.
NEUTRAL_OPTIONS: Mapping[str, object] = {
    "maxfail": 0,
    "continue_on_collection_errors": True,
    "numprocesses": None,
    "dist": "no",
    "tx": [],
    "usepdb": False,
    "trace": False,
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    "stepwise": False,
    "reruns": 0,
    "randomly_reorganize": False,
    "tbstyle": "native",
    "showlocals": False,
    "no_cov": True,
}
_DEFAULT_PATTERNS = ("test_*.py", "*_test.py")


def collection_patterns(configs: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the patterns of test files, by the runner's configuration as far as it can be read.

    Patterns that say nothing of tests, such as ``*.py``, are left out: with them every change
    would be a change of tests.

    Args:
        configs: Text of the files among `CONFIG_FILES` that the tree has, by name.
    """
    found: tuple[str, ...] = ()
    for name in CONFIG_FILES:
        if name in configs and not found:
            found = tuple(_python_files(name, configs[name]))
    return (*_DEFAULT_PATTERNS, *(p for p in found if "test" in p and p not in _DEFAULT_PATTERNS))


def _python_files(name: str, text: str) -> list[str]:
    try:
        if name.endswith(".toml"):
            value = _toml_value(tomllib.loads(text))
        else:
            parser = configparser.RawConfigParser(strict=False)
            parser.read_string(text)
            section = "tool:pytest" if name == "setup.cfg" else "pytest"
            value = parser.get(section, "python_files", fallback="")
        if isinstance(value, list):
            return [str(part) for part in value]
        return shlex.split(str(value))
    except (ValueError, configparser.Error):
        return []  # pytest will say what is wrong with it


def _toml_value(data: Mapping[str, object]) -> object:
    tables: list[object] = [data]
    for keys in (("tool", "pytest", "ini_options"), ("tool", "pytest"), ("pytest",)):
        table: object = data
        for key in keys:
            table = table.get(key) if isinstance(table, Mapping) else None
        tables.append(table)
    values = [t["python_files"] for t in tables if isinstance(t, Mapping) and "python_files" in t]
    return values[0] if values else ""
