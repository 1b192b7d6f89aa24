"""What tests are called, and what configures them, language by language.

A runner that knows its language takes the names of that one. A runner of commands cannot know what
these will read, and takes all.
"""

from coding_gym.grading.pytest_config import collection_patterns
from coding_gym.grading.runners.django_runner import DjangoRunner
from coding_gym.grading.runners.pytest_runner import PytestRunner
from coding_gym.grading.runners.unittest_suite import PATTERNS

MAKEFILES = frozenset({"Makefile", "makefile", "GNUmakefile"})
# Where projects keep tests and what these need. A pattern with a slash is one of paths.
TEST_FOLDERS = ("/tests/*", "/test/*")

_NODE_NAMES = ("*.test.{}", "*-test.{}", "*_test.{}", "test-*.{}", "test.{}", "*.spec.{}")
# Those of Node's own runner.
NODE_PATTERNS = tuple(
    name.format(suffix) for name in _NODE_NAMES for suffix in ("js", "mjs", "cjs")
)
NODE_CONFIGS = frozenset({"node.config.json"})
_JAVASCRIPT_PATTERNS = (
    *NODE_PATTERNS,
    *(f"*.{kind}.{suffix}" for kind in ("test", "spec") for suffix in ("jsx", "ts", "tsx", "mts")),
    *("/__tests__/*", "/__mocks__/*", "/__snapshots__/*", "/node_modules/*"),
    *(f"{tool}.config.*" for tool in ("jest", "vitest", "vite", "babel", "playwright", "cypress")),
    *("karma.conf.*", ".mocharc*", ".babelrc*", ".swcrc", "tsconfig*.json", ".npmrc", ".yarnrc*"),
)
_JAVASCRIPT_CONFIGS = NODE_CONFIGS | {"package.json", "package-lock.json", "yarn.lock"}

# Those that Maven's surefire takes for tests, and some.
JUNIT_NAMES = ("Test*.java", "*Test.java", "*Tests.java", "*TestCase.java", "*_TEST.java")
# What a compiler or a class loader would take for JUnit, or for what was compiled already.
JUNIT_CLASSES = ("*.class", "*.jar", "/org/junit/*", "/junit/framework/*", "/org/hamcrest/*")
_JVM_PATTERNS = (
    *JUNIT_NAMES,
    *JUNIT_CLASSES,
    "*IT.java",
    *(f"*{name}.{suffix}" for name in ("Test", "Spec") for suffix in ("kt", "groovy", "scala")),
    *(
        f"/src/{name}/*"
        for name in ("test", "it", "androidTest", "integrationTest", "testFixtures")
    ),
    *("*.gradle", "*.gradle.kts", "*.sbt", "/gradle/*", "/buildSrc/*", "/.mvn/*"),
)
_JVM_CONFIGS = frozenset(
    {
        *("pom.xml", "build.xml", "gradle.properties", "gradlew", "mvnw"),
        *("junit-platform.properties", "module-info.java"),
    }
)

GO_PATTERNS = ("*_test.go", "/testdata/*")
GO_CONFIGS = frozenset({"go.mod", "go.sum", "go.work", "go.work.sum"})

CARGO_PATTERNS = ("/.cargo/*", "tests.rs", "test_*.rs", "*_test.rs", "*_tests.rs")
CARGO_CONFIGS = frozenset(
    {"Cargo.toml", "Cargo.lock", "build.rs", "rust-toolchain", "rust-toolchain.toml"}
)

_C_PATTERNS = (
    *(
        name + suffix
        for suffix in (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp")
        for name in ("test_*", "*_test", "test-*", "*-test", "*_unittest")
    ),
    *("*.t", "*.mk", "*.mak", "*.cmake"),
)
_C_CONFIGS = MAKEFILES | {
    *("CMakeLists.txt", "CMakePresets.json", "Makefile.am", "Makefile.in", "configure"),
    *("configure.ac", "meson.build", "SConstruct", "BUILD", "BUILD.bazel", "MODULE.bazel"),
    *("WORKSPACE", ".bazelrc"),
}

_OTHER_PATTERNS = ("*_spec.rb", "test_*.rb", "*_test.rb", "*Test.php", "*.bats")
_OTHER_CONFIGS = frozenset(
    {
        *("Rakefile", "Gemfile", "Gemfile.lock", ".rspec", "spec_helper.rb", "phpunit.xml"),
        *("phpunit.xml.dist", "composer.json", "justfile", "Justfile", "Taskfile.yml"),
        "noxfile.py",
    }
)

ANY_PATTERNS = (
    *collection_patterns({}),
    *PATTERNS,
    *_JAVASCRIPT_PATTERNS,
    *_JVM_PATTERNS,
    *GO_PATTERNS,
    *CARGO_PATTERNS,
    *_C_PATTERNS,
    *_OTHER_PATTERNS,
)
ANY_CONFIGS = (
    PytestRunner.config_names
    | DjangoRunner.config_names
    | _JAVASCRIPT_CONFIGS
    | _JVM_CONFIGS
    | GO_CONFIGS
    | CARGO_CONFIGS
    | _C_CONFIGS
    | _OTHER_CONFIGS
)
