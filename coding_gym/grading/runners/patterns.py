"""Glob patterns of protected files: tests by name, and files that test commands name or start.

A command that collects tests may read every file with a test name of its language. A runner that
does not know the language protects the test names of all languages.
"""

import glob
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

from coding_gym.grading.pytest_config import CONFIG_FILES
from coding_gym.grading.selection import TEST_FOLDER_NAMES

# Folders of tests and of test data.
TEST_FOLDERS = tuple(f"/{name}/*" for name in sorted(TEST_FOLDER_NAMES))

# Files that pytest collects by default.
COLLECTED = ("test_*.py", "*_test.py")
PYTHON = (*COLLECTED, "test.py", "tests.py", "*_tests.py")
_PYTHON_CONFIGS = (*CONFIG_FILES, "conftest.py", ".coveragerc", "runtests.py", "manage.py")

_NODE_NAMES = ("*.test.{}", "*-test.{}", "*_test.{}", "test-*.{}", "test.{}", "*.spec.{}")
_JAVASCRIPT = (
    *(name.format(suffix) for name in _NODE_NAMES for suffix in ("js", "mjs", "cjs")),
    *(f"*.{kind}.{suffix}" for kind in ("test", "spec") for suffix in ("jsx", "ts", "tsx", "mts")),
    *("/__tests__/*", "/__mocks__/*", "/__snapshots__/*", "/node_modules/*"),
    *(f"{tool}.config.*" for tool in ("jest", "vitest", "vite", "babel", "playwright", "cypress")),
    *("karma.conf.*", ".mocharc*", ".babelrc*", ".swcrc", "tsconfig*.json", ".npmrc", ".yarnrc*"),
    *("node.config.json", "package.json", "package-lock.json", "yarn.lock"),
)

_JVM = (
    # Files that a compiler or a class loader may use instead of JUnit or source files.
    *("*.class", "*.jar", "/org/junit/*", "/junit/framework/*", "/org/hamcrest/*"),
    *("module-info.java", "junit-platform.properties"),
    *("Test*.java", "*Test.java", "*Tests.java", "*TestCase.java", "*_TEST.java"),
    *(f"*{name}.{suffix}" for name in ("Test", "Spec") for suffix in ("kt", "groovy", "scala")),
    *(f"/src/{name}/*" for name in ("test", "androidTest", "integrationTest", "testFixtures")),
    # Integration tests of Maven. `src/it` can be a folder of Italian translations, so only these
    # suffixes count; `*[a-z0-9]IT.java` does not match EDIT.java.
    *(f"/src/it/{name}" for name in ("*.java", "*.groovy", "*.kt", "*.scala", "*.bsh")),
    *("/src/it/*.properties", "/src/it/*.xml", "/src/it/resources/*"),
    *("*[a-z0-9]IT.java", "*_IT.java"),
    *("*.gradle", "*.gradle.kts", "*.sbt", "/gradle/*", "/buildSrc/*", "/.mvn/*"),
    *("pom.xml", "build.xml", "gradle.properties", "gradlew", "mvnw"),
)

GO = ("*_test.go", "/testdata/*", "go.mod", "go.sum", "go.work", "go.work.sum")

CARGO = (
    *("/.cargo/*", "tests.rs", "test_*.rs", "*_test.rs", "*_tests.rs", "Cargo.toml"),
    *("Cargo.lock", "build.rs", "rust-toolchain", "rust-toolchain.toml"),
)

_C = (
    *(
        name + suffix
        for suffix in (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp")
        for name in ("test_*", "*_test", "test-*", "*-test", "*_unittest")
    ),
    *("*.t", "*.mk", "*.mak", "*.cmake", "Makefile", "makefile", "GNUmakefile", "Makefile.am"),
    *("Makefile.in", "CMakeLists.txt", "CMakePresets.json", "configure", "configure.ac"),
    *("meson.build", "SConstruct", "BUILD", "BUILD.bazel", "MODULE.bazel", "WORKSPACE"),
    ".bazelrc",
)

_OTHERS = (
    *("*_spec.rb", "test_*.rb", "*_test.rb", "Rakefile", "Gemfile", "Gemfile.lock", ".rspec"),
    *("spec_helper.rb", "*Test.php", "phpunit.xml", "phpunit.xml.dist", "composer.json"),
    *("*.bats", "justfile", "Justfile", "Taskfile.yml", "noxfile.py"),
)

ANY = (*PYTHON, *_PYTHON_CONFIGS, *_JAVASCRIPT, *_JVM, *GO, *CARGO, *_C, *_OTHERS)

_VARIABLE = re.compile(r"\$\{\w+\}|\$\w+")
_WORD = re.compile(r"[\w.+@%,~/-]+")
_PARTS = re.compile(r"[;&|()\n]+")
_QUOTES = re.compile(r"[\"'`]")
_ASSIGNMENT = re.compile(r"""\b\w+=(?:'[^']*'|"[^"]*"|\S*)""")
# Options and durations between a starter and its program, as in `timeout 5 make`.
_PREFIX = re.compile(r"-.*|\d+[smh]?", re.DOTALL)
_MODULE = re.compile(r"\s-m\s+([\w.]+)")
# Words that start the program that the next word names.
_STARTER = re.compile(
    r"(?:.*/)?(?:bash|sh|dash|zsh|env|exec|time|timeout|nice|nohup|command|source|\.|xargs|sudo"
    r"|python[\d.]*|node|perl|ruby|php|cat|npx|xvfb-run|if|while|until|then|do|else|!)|-exec(?:dir)?"
)
# Programs whose first argument, such as `run`, precedes the program that they start.
_LAUNCHER = re.compile(r"find|uv|poetry|pipenv|hatch|pdm|rye|coverage")
_RUNS_MODULES = re.compile(r"(?:.*/)?python[\d.]*|coverage")
_IS_PROGRAM_NEXT = re.compile(r"-[a-z]*c")  # the next word is a command
_SCRIPTS = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".pl", ".rb", ".php", ".R", ".jl")


def named_patterns(commands: Iterable[str]) -> tuple[str, ...]:
    """Returns patterns of all files that shell commands may name, in any folder.

    Words in quotes and modules that ``python -m`` starts are included.
    """
    words: list[str] = []
    for command in commands:
        text = _VARIABLE.sub("", command)
        modules = [module.replace(".", "/") for module in _MODULE.findall(text)]
        words += [f"{m}{end}" for m in modules for end in (".py", "/__init__.py", "/__main__.py")]
        words += _WORD.findall(text)
        with suppress(ValueError):  # an unclosed quotation mark, as in a here document
            words += shlex.split(command)
    return _patterns(_paths(words))


def started_patterns(command: str) -> tuple[str, ...]:
    """Returns patterns of the files that a shell command may start, in any folder."""
    return _patterns(started_paths(command))


def started_paths(command: str) -> set[str]:
    """Returns the paths of the files that a shell command may start, in the form of `_paths`."""
    text = _ASSIGNMENT.sub("", _VARIABLE.sub("", command))
    parts = (_QUOTES.sub(" ", part).split() for part in _PARTS.split(text))
    return _paths(program for part in parts for program in _programs(part))


def _programs(words: Sequence[str]) -> Iterator[str]:
    """Yields the words that can name a program: the first word, and words after each starter.

    After an option, a word can be the option's argument or the program. So these words are yielded
    until a word is a script or follows no option.
    """
    expects_program, runs_modules = True, False
    for previous, word in pairwise(("", *words)):
        runs_modules = runs_modules or bool(_RUNS_MODULES.fullmatch(word))
        if _STARTER.fullmatch(word):
            expects_program = True
        elif runs_modules and (previous == "-m" or (word.startswith("-m") and word[2:])):
            module = word.removeprefix("-m").replace(".", "/")
            ends = (".py", "/__init__.py", "/__main__.py") if "/" in module else (".py",)
            yield from (f"{module}{end}" for end in ends)
            expects_program = runs_modules = False  # the other words are arguments of the module
        elif expects_program and not _PREFIX.fullmatch(word):
            yield word
            is_argument = previous.startswith("-") and not _IS_PROGRAM_NEXT.fullmatch(previous)
            is_argument = is_argument or bool(_LAUNCHER.fullmatch(previous))
            expects_program = is_argument and not word.endswith(_SCRIPTS)
        if _LAUNCHER.fullmatch(word):
            expects_program = True


def _paths(words: Iterable[str]) -> set[str]:
    """Returns the paths in ``words``; of a path outside the workspace, only the file name."""
    paths = {posixpath.normpath(word) for word in words if word and not word.startswith("-")}
    outside_paths = {path for path in paths if path.startswith(("/", ".."))}
    names = {path.rpartition("/")[2] for path in outside_paths - {"/"}}
    return (paths - outside_paths - {"."}) | names


def _patterns(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(glob.escape(f"/{path}") for path in paths))
