"""What a project tells pytest about its tests, and what is overruled."""

import configparser
import tomllib
from collections.abc import Mapping
from typing import Any

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
# Overrules a project's own options: all tests run, in this process, once and in order. Options that
# this pytest and its plug-ins do not have are ignored.
NEUTRAL_OPTIONS: Mapping[str, object] = {
    "markexpr": "",
    "keyword": "",
    "deselect": None,
    "collectonly": False,
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
    "tbstyle": "line",
    "showlocals": False,
    "no_cov": True,
}
_DEFAULT_PATTERNS = ("test_*.py", "*_test.py")


def collection_patterns(configs: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the patterns of test files, by the runner's configuration as far as it can be read.

    Patterns of all files, such as ``*.py``, are skipped.

    Args:
        configs: Text of the files among `CONFIG_FILES` that the tree has, by name.
    """
    tables = (
        table.get("ini_options", table)
        for name in CONFIG_FILES
        for table in _tables(name, configs.get(name, ""))
    )
    value = next((t["python_files"] for t in tables if "python_files" in t), "")
    found = map(str, value) if isinstance(value, list) else str(value).split()
    return (*_DEFAULT_PATTERNS, *(p for p in found if "test" in p and p not in _DEFAULT_PATTERNS))


def _tables(path: str, text: str) -> list[Mapping[str, Any]]:
    """Returns the tables of pytest in a configuration file; none if it cannot be read."""
    tables: Mapping[str, Any]
    try:
        if path.endswith(".toml"):
            data = tomllib.loads(text)
            tables = {**data, **data.get("tool", {})}
        else:
            parser = configparser.RawConfigParser(strict=False)
            parser.read_string(text)
            tables = parser
    except (ValueError, TypeError, configparser.Error):
        return []
    return [t for name, t in tables.items() if "pytest" in name and isinstance(t, Mapping)]
