"""Glob patterns of protected files: tests by name, and files that test commands name.

A command that collects tests may read every file with a test name of its language. A runner that
does not know the language protects the test names of all languages.
"""

import glob
import posixpath
import re
import shlex
from collections.abc import Iterable
from contextlib import suppress

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

# Suffixes of scripts, which an interpreter reads, and of sources, which a compiler reads.
SCRIPTS = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".tcl")
COMPILED = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".go", ".rs", ".java", ".kt", ".scala")

_VARIABLE = re.compile(r"\$\{\w+\}|\$\w+")
_WORD = re.compile(r"[\w.+@%,~/-]+")
_PART = re.compile(r"[^,@~]+")  # of a list or a response file, as in `javac @sources.txt`
_SHORT_OPTION = re.compile(r"^-\w")
_MODULE = re.compile(r"\s-\w*m\s*([\w.]+)")


def named_paths(commands: Iterable[str]) -> set[str]:
    """Returns the paths of all files that shell commands may name, perhaps without folders.

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
    words += [part for word in words for part in _PART.findall(word)]
    words = [_SHORT_OPTION.sub("", word) for word in words]
    paths = {posixpath.normpath(word) for word in words if word and not word.startswith("-")}
    outside_paths = {path for path in paths if path.startswith(("/", ".."))}
    names = {path.rpartition("/")[2] for path in outside_paths - {"/"}}
    return (paths - outside_paths - {"."}) | names


def path_patterns(paths: Iterable[str]) -> tuple[str, ...]:
    """Returns patterns of the paths in any folder."""
    return tuple(sorted(glob.escape(f"/{path}") for path in paths))
