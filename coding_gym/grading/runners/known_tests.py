"""What tests are called, and what configures them, language by language: patterns of files.

A command that collects by itself may read all files that are called so. A runner of commands cannot
know the language, and takes those of all.
"""

from coding_gym.grading.pytest_config import CONFIG_FILES

# Where projects keep tests and what these need.
TEST_FOLDERS = ("/tests/*", "/test/*")

PYTHON = ("test_*.py", "*_test.py", "test.py", "tests.py", "*_tests.py")
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

# What a compiler or a class loader would take for JUnit, or for what was compiled already.
JUNIT_CLASSES = (
    *("*.class", "*.jar", "/org/junit/*", "/junit/framework/*", "/org/hamcrest/*"),
    *("module-info.java", "junit-platform.properties"),
)
_JVM = (
    *JUNIT_CLASSES,
    *("Test*.java", "*Test.java", "*Tests.java", "*TestCase.java", "*_TEST.java", "*IT.java"),
    *(f"*{name}.{suffix}" for name in ("Test", "Spec") for suffix in ("kt", "groovy", "scala")),
    *(
        f"/src/{name}/*"
        for name in ("test", "it", "androidTest", "integrationTest", "testFixtures")
    ),
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
