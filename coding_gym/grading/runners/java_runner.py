"""Java: javac and JUnit 4, with a listener of ours in the virtual machine that runs the tests.

The contract for tasks with ``runner = "java"``:

- Expected tests are ``package.Class::method``, ``package.Class::method[parameters]`` for JUnit's
  ``Parameterized``. Classes may be of JUnit 4 or 3. Whole classes run, in order of their names.
- ``test_command`` is one line of options, all of them optional::

      ROOT… FILE.java… -cp lib/*:build.jar -encoding ISO-8859-1 --release 8 -J-Xmx1g -J-Dname=value

  A *ROOT* is a source folder, such as ``src`` or ``src/test/java``; it is on the class path too,
  for resources. Without any, those that exist of ``src/main/java``, ``src/test/java``,
  ``src/main/resources``, ``src/test/resources``, ``src/java``, ``src/test``, ``src``, ``tests`` and
  ``test`` are. Compiled are the files of the expected classes and whatever these mention; classes
  that are only loaded by name have to be given as *FILE.java*. ``-J`` goes to the virtual machine
  that runs the tests, what else begins with ``-`` to javac. Annotations are never processed.
- ``test_report`` has no meaning.

JUnit and Hamcrest are those of the machine (Debian: ``apt-get install junit4``) and come first on
the class path; without them ``-cp`` must have them. What a patch changes in ``*.jar`` and in
``*.class`` is left out.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from coding_gym.errors import GradingError
from coding_gym.grading.formats.outcomes import Outcomes
from coding_gym.grading.report import RunReport
from coding_gym.grading.runners.commands import place_programs, run_command, run_reporter
from coding_gym.grading.runners.patterns import JUNIT_CLASSES
from coding_gym.sandbox.protocol import Sandbox
from coding_gym.task import Task

_BUILD_TIMEOUT_S = 300.0
_NO_JDK, _NO_JUNIT = 120, 121
# Options of javac whose value is the next word.
_WITH_VALUE = {
    *("-encoding", "-source", "--source", "-target", "--target", "--release"),
    *("--add-modules", "--add-exports", "--add-reads", "--limit-modules"),
}
_CLASS_PATH = {"-cp", "-classpath", "--class-path"}
# They would run programs of the tree inside the compiler, or put its output elsewhere.
_REFUSED = {
    *("-d", "-s", "-h", "-processor", "-processorpath", "--processor-path", "-sourcepath"),
    *("--source-path", "--module-path", "-p", "-proc:only", "-proc:full"),
}
_ROOTS = (
    *("src/main/java", "src/test/java", "src/main/resources", "src/test/resources"),
    *("src/java", "src/test", "src", "tests", "test"),
)
SYSTEM_JARS = tuple(
    f"/usr/share/java/{name}.jar"
    for name in ("junit4", "junit", "hamcrest-core", "hamcrest", "hamcrest/hamcrest-core")
)
# Short runs are worth no second compiler, and nobody may attach to the machine from outside.
_JVM = (
    "java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -XX:+DisableAttachMechanism "
    "-Djava.awt.headless=true -ea"
)
_BUILD = """
command -v javac >/dev/null && command -v java >/dev/null || exit {no_jdk}
roots= files=() jars=
for root in {roots}; do [ ! -d "$root" ] || roots="$roots:$root"; done
for file in {files}; do [ ! -f "$file" ] || files+=("$file"); done
for jar in {jars}; do [ ! -f "$jar" ] || jars="$jars:$jar"; done
[ -n "$jars" ] || [ -n {class_path} ] || exit {no_junit}
mkdir -p {folder}/classes
printf %s "${{jars#:}}:{folder}/classes:"{class_path}"$roots" >{folder}/class-path
exec javac -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -encoding UTF-8 {options} -proc:none \\
  -nowarn -Xmaxerrs 5 -cp "$jars:"{class_path} -sourcepath "$roots" -d {folder}/classes \\
  {folder}/RunTests.java "${{files[@]}}"
"""


@dataclass(slots=True)
class JavaOptions:
    """How a Java project is compiled and run.

    Attributes:
        roots: Source folders, which are on the class path too, for what is not Java in them.
        sources: More files that javac must read, such as classes that are only loaded by name.
        class_path: Jars and folders, ``lib/*`` for all jars of a folder.
        javac: More options of javac.
        java: Options of the virtual machine that runs the tests.
    """

    roots: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    class_path: list[str] = field(default_factory=list)
    javac: list[str] = field(default_factory=list)
    java: list[str] = field(default_factory=list)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a task's ``test_command``; see `coding_gym.grading.runners.java_runner`.

        Raises:
            ValueError: A word has no meaning here, or lacks its value.
        """
        found = cls()
        words = iter(shlex.split(text))
        for word in words:
            if word in _CLASS_PATH:
                found.class_path += filter(None, _value(word, words).split(":"))
            elif word in _WITH_VALUE:
                found.javac += [word, _value(word, words)]
            elif word.split("=")[0] in _REFUSED or word.startswith("@"):
                raise ValueError(f"option {word!r} cannot be given")
            elif word.startswith("-J"):
                found.java.append(word.removeprefix("-J"))
            elif word.startswith("-"):
                found.javac.append(word)
            else:
                (found.sources if word.endswith(".java") else found.roots).append(word.rstrip("/"))
        found.roots = found.roots or [*_ROOTS]
        return found


class JavaRunner:
    """Compiles the expected classes and what they need with javac, and runs them with JUnit."""

    name = "java"

    def problem(self, task: Task) -> str:
        """Returns the first expected test that is no class and method, or a wrong option."""
        for test in task.expected_tests:
            name, _, method = test.partition("::")
            if not method or not all(map(str.isidentifier, name.replace("$", ".").split("."))):
                return f"expected test {test!r} is not package.Class::method"
        try:
            JavaOptions.parse(task.test_command)
        except ValueError as error:
            return f"field 'test_command' is not options of the java runner: {error}"
        return ""

    def files(self, task: Task) -> tuple[str, ...]:
        """Returns where the expected classes may lie, below each of the source folders."""
        roots = JavaOptions.parse(task.test_command).roots
        names = {name.partition("$")[0].replace(".", "/") for name in _classes(task)}
        return tuple(
            sorted(f"{root}/{name}.java".removeprefix("./") for root in roots for name in names)
        )

    def patterns(self, task: Task) -> tuple[str, ...]:  # noqa: ARG002 — the contract
        """Returns what is compiled already, and JUnit; other tests than the expected do not run."""
        return JUNIT_CLASSES

    def run(
        self, sandbox: Sandbox, task: Task, paths: tuple[str, ...], *, timeout_s: float
    ) -> RunReport | None:
        """Compiles, then runs the classes in one virtual machine.

        Raises:
            GradingError: There is no JDK or no JUnit, or the virtual machine does not start.
        """
        options = JavaOptions.parse(task.test_command)
        folder = place_programs(sandbox, "RunTests.java")
        build = run_command(
            sandbox, _build_command(options, paths, folder), timeout_s=_BUILD_TIMEOUT_S
        )
        if build.timed_out:
            return build.report()
        if build.exit_code in {_NO_JDK, _NO_JUNIT}:
            what = "a JDK" if build.exit_code == _NO_JDK else "JUnit 4"
            raise GradingError(
                f"task {task.task_id}: there is no {what} where its tests run; install it, "
                "for example with `apt-get install default-jdk-headless junit4`"
            )
        if build.exit_code != 0:
            said = _first_error(build.output)
            return build.report(Outcomes(messages=dict.fromkeys(_classes(task), said)))
        failure = (
            f"task {task.task_id}: java could not be started: {{}}; look at the options with "
            "-J in field 'test_command', and at the memory of the sandbox"
        )
        return run_reporter(
            sandbox,
            f'exec {_JVM} {shlex.join(options.java)} -cp "$(cat {folder}/class-path)" RunTests',
            sorted({*_classes(task)}),
            timeout_s=timeout_s,
            failure=failure,
        )


def _classes(task: Task) -> list[str]:
    return [test.partition("::")[0] for test in task.expected_tests]


def _build_command(options: JavaOptions, paths: tuple[str, ...], folder: str) -> str:
    return _BUILD.format(
        no_jdk=_NO_JDK,
        no_junit=_NO_JUNIT,
        roots=shlex.join(options.roots),
        files=shlex.join([*paths, *options.sources]),
        jars=shlex.join(SYSTEM_JARS),
        class_path=shlex.quote(":".join(options.class_path)),
        options=shlex.join(options.javac),
        folder=folder,
    )


def _first_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next(
        (line for line in lines if ": error:" in line), lines[-1] if lines else "javac failed"
    )


def _value(word: str, words: Iterator[str]) -> str:
    found = next(words, None)
    if found is None:
        raise ValueError(f"option {word!r} lacks its value")
    return found
