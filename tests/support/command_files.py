"""Files that test commands start or read, by the names of the cheats that change them."""

_EXIT = "import os\n\nos._exit(0)\n"

# Where each expected test is a command; see `test_commands`.
COMMANDED: dict[str, dict[str, str | None]] = {
    "an emptied test": {"test_calc.py": ""},
    "no tests, and a file that ends the run": {"test_calc.py": None, "conftest.py": _EXIT},
    "a conftest that exits": {"conftest.py": _EXIT},
    "an emptied script": {"check.sh": "true\n"},
    "another file that a command names": {"checks/sums.py": "import shutil\n"},
    "the wanted output": {"checks/wanted.txt": "-1\n"},
    "rules that a makefile includes": {"mk/rules.mk": "check:\n\ttrue\n"},
    "another makefile in front": {"GNUmakefile": "check:\n\ttrue\n"},
    "scripts of a package": {"package.json": '{"scripts": {"test": "true"}}\n'},
    "a module in front of the test framework": {"pytest.py": _EXIT},
    "a package in front of the test framework": {
        "pytest/__main__.py": "",
        "pytest/__init__.py": "",
    },
}

# Where a command starts the script `run_tests.sh`.
SCRIPTED: dict[str, dict[str, str | None]] = {
    "an edited script of the tests": {"run_tests.sh": "echo 'ok 1 - adds'; echo 1..1\n"},
    "no script of the tests": {"run_tests.sh": None},
}
