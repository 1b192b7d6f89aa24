r"""Converts a checkout of Defects4J (github.com/rjust/defects4j), bugs of Java projects, to rows.

    git clone https://github.com/rjust/defects4j && (cd defects4j && ./init.sh)
    python examples/defects4j.py defects4j --out rows.jsonl
    coding-gym validate rows.jsonl --exclude unreliable.jsonl
    coding-gym eval --tasks rows.jsonl --environments unreliable.jsonl --out runs/defects4j …

The script reads the checkout's metadata and the clones in ``project_repos``; projects without a
clone are skipped. As in Defects4J, the sources are the fixed commit's sources with the minimised
patch of the bug applied; all other files come from the buggy commit, and the hidden tests are the
changes of the fixed commit to the tests. Tests run with the machine's JDK and JUnit 4, and with
Debian's commons-io, commons-lang, commons-lang3 and Mockito. Test classes that import other
libraries are skipped; `coding-gym validate` names the tests that a newer JDK breaks.
"""

import argparse
import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from coding_gym.patch import Patch

MAX_FILE_BYTES = 200_000  # larger files are benchmark data that no test needs
MAX_FAILURES, MAX_FRAMES = 3, 8
JARS = (
    *("commons-io", "commons-lang", "commons-lang3"),
    *("mockito-core", "byte-buddy", "byte-buddy-agent", "objenesis"),
)
CLASS_PATH = ":".join(f"/usr/share/java/{jar}.jar" for jar in ("junit4", "hamcrest-core", *JARS))
# Compiles the test classes and their dependencies, runs them with JUnit, and prints TAP.
TEST_COMMAND = r"""set -e
mkdir -p /tmp/classes
cat >/tmp/Tap.java <<'END'
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

public class Tap extends RunListener {
    int number;
    boolean failed;
    public void testStarted(Description test) { failed = false; }
    public void testFailure(Failure failure) { failed = true; }
    public void testFinished(Description test) {
        System.out.printf("%n%sok %d - %s::%s%n", failed ? "not " : "", ++number,
            test.getClassName(), test.getMethodName());
    }
    public static void main(String[] names) throws Exception {
        Tap tap = new Tap();
        JUnitCore core = new JUnitCore();
        core.addListener(tap);
        for (String name : names) core.run(Class.forName(name));
        System.out.printf("%n1..%d%n", tap.number);
        System.exit(0);
    }
}
END
javac -nowarn -proc:none OPTIONS -sourcepath ROOTS -d /tmp/classes /tmp/Tap.java FILES
java -cp /tmp/classes:ROOTS:CLASS_PATH Tap CLASSES
"""
# Packages of the JDK, of JUnit and of `JARS`.
PROVIDED = (
    *("java.", "javax.", "org.w3c.", "org.xml.", "org.junit.", "junit.", "org.hamcrest."),
    *("org.apache.commons.io.", "org.apache.commons.lang.", "org.apache.commons.lang3."),
    "org.mockito.",
)
REPOSITORY = re.compile(r"""\$name\s*=\s*["']([\w.-]+)["']""")
FAILURE = re.compile(r"^---\s+([\w.$]+)(?:::(\w+))?")
# Stack frames of the JVM and the test runner.
MACHINERY = re.compile(r"^\s*at (?:sun\.|java\.|jdk\.|junit\.|org\.junit\.|org\.apache\.tools\.)")
IMPORT = re.compile(r"^\s*import\s+(?:static\s+)?([\w.]+)", re.MULTILINE)
PARENT = re.compile(r"\bclass\s+\w+(?:<[^{]*?>)?\s+extends\s+(?:\w+\.)*(\w+)")
# Test methods: JUnit 4 marks them by an annotation, JUnit 3 by the name.
METHOD = re.compile(
    r"(?P<marks>(?:@[\w.]+(?:\s*\([^()]*\))?\s*)*)public\s+(?:final\s+)?void\s+(?P<name>\w+)\s*\(\s*\)"
)
TOKENS = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)

Files = Mapping[str, str]


class Clone:
    """Reads commits of one repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Returns the output of a git command."""
        argv = ["git", "-C", str(self.folder), *arguments]
        return subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, check=True).stdout

    def date(self, commit: str) -> str:
        """Returns the date of a commit in ISO 8601."""
        return self.git("show", "--no-patch", "--format=%cI", commit).decode().strip()

    def files(self, commit: str) -> dict[str, str]:
        """Returns the texts of a commit by path; bytes that are not UTF-8 are surrogate escapes."""
        blobs: dict[str, str] = {}
        for entry in self.git("ls-tree", "-rzl", commit).decode().split("\0")[:-1]:
            columns, path = entry.split("\t", 1)
            mode, _, blob, size = columns.split()
            if mode.startswith("100") and int(size) <= MAX_FILE_BYTES:
                blobs[path] = blob
        data = self.git("cat-file", "--batch", stdin="\n".join(blobs.values()).encode())
        texts, offset = {}, 0
        for path in blobs:
            start = data.index(b"\n", offset) + 1
            offset = start + int(data[offset:start].split()[2]) + 1
            if b"\0" not in (content := data[start : offset - 1]):
                texts[path] = content.decode("utf-8", "surrogateescape")
        return texts


class Bug:
    """One line of a project's ``active-bugs.csv``."""

    def __init__(self, project: Path, line: Mapping[str, str]) -> None:
        self.project = project
        self.number, self.report = line["bug.id"], line["report.id"]
        self.buggy, self.fixed = line["revision.id.buggy"], line["revision.id.fixed"]
        self.url = line["report.url"]
        layouts = {commit: roots for commit, *roots in csv.reader(lines(project, "dir-layout.csv"))}
        self.source_root, self.test_root = (root.strip("/") for root in layouts[self.fixed])

    def row(self, clone: Clone, repo: str) -> dict[str, Any] | None:
        """Returns the bug as a row of SWE-bench's schema; None if its tests cannot run."""
        before, after = clone.files(self.buggy), clone.files(self.fixed)
        bug = Patch("\n".join(lines(self.project, f"patches/{self.number}.src.patch")) + "\n")
        patched = {path: after[path] for path in bug.paths & after.keys()}
        sources = below(after, self.source_root) | patched
        changed_files = {file.path: file.apply(sources.get(file.path, "")) for file in bug.files}
        deleted_paths = {file.path for file in bug.files if file.new_path is None}
        texts = sources | changed_files
        buggy_files = {path: text for path, text in texts.items() if path not in deleted_paths}
        tests, new_tests = below(before, self.test_root), below(after, self.test_root)
        old_sources = below(before, self.source_root)
        tree = {path: text for path, text in before.items() if path not in old_sources | sources}
        tree |= buggy_files
        failures = self.failures()
        classes = [name for name, _, _ in failures]
        java = Java(buggy_files | new_tests, self.test_root)
        if not all(java.compiles(name) for name in classes):
            return None
        fail_to_pass = list(dict.fromkeys(f"{name}::{method}" for name, method, _ in failures))
        suite = dict.fromkeys([*classes, *lines(self.project, f"relevant_tests/{self.number}")])
        passing_tests = [
            f"{name}::{method}"
            for name in suite
            if java.compiles(name)
            for method in java.tests(name)
        ]
        excluded_tests = self.excluded_tests()
        roots = [
            root
            for root in (self.source_root, self.test_root, *map(resources, self.roots))
            if below(tree | new_tests, root)
        ]
        test_classes = sorted({test.partition("::")[0] for test in [*fail_to_pass, *passing_tests]})
        options = f"-cp {CLASS_PATH} --release 8 -encoding {encoding(buggy_files | new_tests)}"
        return {
            "instance_id": f"{self.project.name}-{self.number}",
            "repo": repo,
            "files": dict(sorted(tree.items())),
            "problem_statement": self.statement(repo, failures),
            "patch": Patch.between(buggy_files, sources).text,
            "test_patch": Patch.between(tests, new_tests).text,
            "FAIL_TO_PASS": fail_to_pass,
            "PASS_TO_PASS": [
                test
                for test in passing_tests
                if test not in fail_to_pass and not {test, test.partition("::")[0]} & excluded_tests
            ],
            "created_at": clone.date(self.buggy),
            "language": "java",
            "runner": "tap",
            "test_command": filled(
                TEST_COMMAND,
                OPTIONS=options,
                ROOTS=":".join(dict.fromkeys(roots)),
                FILES=" ".join(dict.fromkeys(map(java.path, test_classes))),
                CLASS_PATH=CLASS_PATH,
                CLASSES=" ".join(test_classes),
            ),
            "visible_test_command": f"javac -d /tmp/classes {options} -sourcepath "
            f"{self.source_root} $(find {self.source_root} -name '*.java')",
            "grading_timeout_s": 120.0,  # a bug has up to a thousand tests
        }

    @property
    def roots(self) -> tuple[str, str]:
        """The folders of sources and of tests."""
        return self.source_root, self.test_root

    def failures(self) -> list[tuple[str, str, list[str]]]:
        """Returns class, method and trace of each test that the bug breaks."""
        failures: list[tuple[str, str, list[str]]] = []
        for line in lines(self.project, f"trigger_tests/{self.number}"):
            if (header := FAILURE.match(line)) and header[2]:
                failures.append((header[1], header[2], []))
            elif failures and line.strip() and not MACHINERY.match(line):
                failures[-1][2].append(line.strip())
        return failures

    def excluded_tests(self) -> set[str]:
        """Returns the tests and classes that Defects4J excludes from the bug's suite."""
        paths = (f"failing_tests/{self.fixed}", "dependent_tests")
        matches = [
            match
            for path in paths
            if (self.project / path).is_file()
            for line in lines(self.project, path)
            if (match := FAILURE.match(line))
        ]
        return {f"{match[1]}::{match[2]}" if match[2] else match[1] for match in matches}

    def statement(self, repo: str, failures: list[tuple[str, str, list[str]]]) -> str:
        """Returns the exceptions with stack frames of the project, and the link to the report."""
        report = "" if self.report.upper() == "UNKNOWN" else f" ({self.report})"
        first = failures[0][2][0] if failures[0][2] else "wrong behaviour"
        parts = [f"{repo}: {first}{report}"]
        if report and self.url.startswith("http"):
            parts.append(f"Reported as {self.url}.")
        for _, _, trace in failures[:MAX_FAILURES]:
            parts.append("\n".join(f"    {line}" for line in trace[:MAX_FRAMES]))
        if len(failures) > MAX_FAILURES:
            parts.append(f"{len(failures) - MAX_FAILURES} more cases fail.")
        return "\n\n".join(parts) + "\n"


class Java:
    """Test classes, their imports and their tests, from the text of Java files.

    This is an approximation: `coding-gym validate` finds the tests that do not run.
    """

    def __init__(self, files: Files, test_root: str) -> None:
        self.test_root = test_root
        self.sources = {
            path: TOKENS.sub('""', text) for path, text in files.items() if path.endswith(".java")
        }
        self.packages = {
            match[1]
            for text in self.sources.values()
            if (match := re.search(r"^\s*package\s+([\w.]+)", text, re.MULTILINE))
        }

    def path(self, name: str) -> str:
        """Returns the path of a test class."""
        return f"{self.test_root}/{name.partition('$')[0].replace('.', '/')}.java"

    def lineage(self, name: str) -> list[str]:
        """Returns the texts of a class and of its parents in the tree."""
        texts: list[str] = []
        path = self.path(name)
        while path in self.sources and self.sources[path] not in texts:
            texts.append(self.sources[path])
            parent = PARENT.search(texts[-1])
            path = str(PurePosixPath(path).parent / f"{parent[1]}.java") if parent else ""
        return texts

    def compiles(self, name: str) -> bool:
        """Returns whether all imports of a class are in the tree or in a known library."""
        imports = [match for text in self.lineage(name) for match in IMPORT.findall(text)]
        return bool(self.lineage(name)) and all(
            path.startswith(PROVIDED) or any(path.startswith(f"{p}.") for p in self.packages)
            for path in imports
        )

    def tests(self, name: str) -> list[str]:
        """Returns the names of the methods that JUnit runs, including inherited methods."""
        texts = self.lineage(name)
        header = texts[0].partition("{")[0]
        if re.search(r"\babstract\s+class|@Ignore|@RunWith", header):
            return []
        is_junit3 = any(re.search(r"extends\s+(\w+\.)*TestCase\b", text) for text in texts)
        methods = {
            match["name"]
            for text in texts
            for match in METHOD.finditer(text)
            if (match["name"].startswith("test") if is_junit3 else "@Test" in match["marks"])
            and "@Ignore" not in match["marks"]
        }
        return sorted(methods)


def filled(text: str, **values: str) -> str:
    """Returns a text in which each name of a value is replaced by the value."""
    return re.sub("|".join(values), lambda match: values[match[0]], text)


def resources(root: str) -> str:
    """Returns the folder of the resources that belong to a source folder in Maven's layout."""
    return str(PurePosixPath(root).parent / "resources")


def below(files: Files, root: str) -> dict[str, str]:
    """Returns the files in a source folder and in its folder of resources."""
    folders = (f"{root}/", f"{resources(root)}/")
    return {path: text for path, text in files.items() if path.startswith(folders)}


def encoding(files: Files) -> str:
    """Returns UTF-8 if all sources are valid UTF-8, else the encoding of old Java sources."""
    try:
        "".join(text for path, text in files.items() if path.endswith(".java")).encode()
    except UnicodeEncodeError:
        return "ISO-8859-1"
    return "UTF-8"


def lines(folder: Path, name: str) -> list[str]:
    """Returns the lines of a file of the checkout."""
    return (folder / name).read_bytes().decode("utf-8", "surrogateescape").splitlines()


def rows(checkout: Path) -> Iterator[dict[str, Any]]:
    """Yields the row of each bug of each project that has a clone, in Defects4J's order."""
    for listing in sorted((checkout / "framework" / "projects").glob("*/active-bugs.csv")):
        project = listing.parent
        module = checkout / "framework" / "core" / "Project" / f"{project.name}.pm"
        match = REPOSITORY.search(module.read_text(encoding="utf-8"))
        name = match[1] if match else project.name.lower()
        paths = [checkout / "project_repos" / f"{name}{end}" for end in (".git", "")]
        clone = next((Clone(path) for path in paths if path.is_dir()), None)
        if clone is None:
            print(f"{project.name}: skipped, no clone {paths[0]}", file=sys.stderr)
            continue
        yield from project_rows(project, clone, name)


def project_rows(project: Path, clone: Clone, repo: str) -> Iterable[dict[str, Any]]:
    """Yields the rows of one project."""
    for line in csv.DictReader(lines(project, "active-bugs.csv")):
        row = Bug(project, line).row(clone, repo)
        if row is not None:
            yield row
        else:
            print(f"{project.name}-{line['bug.id']}: skipped, unknown library", file=sys.stderr)


def main() -> None:
    """Reads the command line and writes the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--out", type=Path, default=Path("rows.jsonl"))
    options = parser.parse_args()
    with options.out.open("w", encoding="utf-8") as file:
        for row in rows(options.checkout):
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
