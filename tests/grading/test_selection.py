from collections.abc import Iterable
from dataclasses import replace

import pytest
from grading_fixtures import TASK

from coding_gym.grading.runners import RUNNER_NAMES, get_runner
from coding_gym.grading.runners.patterns import named_patterns, started_patterns
from coding_gym.grading.selection import Selection, path_matcher, select_graded
from coding_gym.patch import Patch
from coding_gym.task import Task

COMMAND_TASK = replace(
    TASK, runner="command", test_command="", fail_to_pass=(), pass_to_pass=(), gold_patch=""
)


def selection_of(task: Task, patch: Patch, patterns: tuple[str, ...] = ()) -> Selection:
    runner = get_runner("pytest")
    patterns = patterns or runner.patterns(task)
    return select_graded(task, patch, test_files=runner.files(task), patterns=patterns)


def dropped(*paths: str, task: Task = TASK, patterns: tuple[str, ...] = ()) -> list[str]:
    patch = Patch.between({}, dict.fromkeys(paths, "x = 1\n"))
    return list(selection_of(task, patch, patterns).dropped_paths)


def test_changes_of_tests_and_configuration_are_dropped() -> None:
    files = (
        *("tests/test_discounts.py", "tests/test_new.py", "tests/deep/data.json"),
        *(".pytest.ini", "pytest.toml", ".coveragerc", "./conftest.py", "tests/conftest.py"),
        *("sitecustomize.py", "lib/usercustomize/__init__.py", "cheat.pth", "x.egg-link"),
        *("cheat.egg-info/entry_points.txt", "cheat-1.0.dist-info/METADATA"),
        *("cheat-1.0.DIST-INFO/entry_points.txt", "__pycache__/cart.cpython-311.pyc"),
    )
    for path in files:
        assert dropped("cart.py", path) == [path], path


def test_changes_of_the_program_are_graded() -> None:
    files = ("cart.py", "contest.py", "lib/testing/cart.py", "docs/tests.md", "setup.py")
    files += ("test_new.py", "lib/conftest.py", "lib/setup.cfg", "check_test.py")
    assert dropped(*files) == []


def test_rename_into_or_out_of_tests_is_dropped() -> None:
    text = (
        "diff --git a/tests/pricing.py b/pricing.py\n"
        "similarity index 100%\n"
        "rename from tests/pricing.py\n"
        "rename to pricing.py\n"
    )
    selection = selection_of(TASK, Patch(text))
    assert selection.patch.is_empty
    assert selection.dropped_paths == ("pricing.py", "tests/pricing.py")


@pytest.mark.parametrize("is_challenged", [True, False])
def test_gold_change_of_a_test_file_is_dropped_only_if_challenged(is_challenged: bool) -> None:
    gold = Patch.between({"check.py": "x = 1\n"}, {"check.py": "x = 2\n"})
    task = replace(TASK, gold_patch=gold.text, test_patch="", fail_to_pass=("check.py::a",))
    selection = select_graded(
        task, gold, test_files=["check.py"], patterns=(), is_challenged=is_challenged
    )
    assert selection.dropped_paths == (("check.py",) if is_challenged else ())


def test_an_expected_test_at_the_root_protects_only_its_file() -> None:
    task = replace(TASK, test_patch="", fail_to_pass=("test_x.py::test_a",), pass_to_pass=())
    assert dropped("cart.py", "tests/helper.py", "test_x.py", task=task) == ["test_x.py"]


JVM = (
    *("CTest.java", "org/junit/Assert.java", "src/test/java/a/Helper.java", "pom.xml", "a/C.class"),
    *("CartIT.java", "Http2IT.java", "src/it/java/a/Helper.java", "src/it/resources/a.txt"),
)
GO = ("clamp_test.go", "testdata/wanted.txt", "go.mod")
RUST = (".cargo/config.toml", "Cargo.toml", "build.rs", "tests.rs")
JAVASCRIPT = (
    "clamp.test.js",
    "test-clamp.mjs",
    "__tests__/clamp.js",
    "package.json",
    ".mocharc.json",
)
PYTHON = ("test_clamp.py", "clamp_test.py", "conftest.py", "pytest.ini", "pyproject.toml")
C = ("Makefile", "mk/rules.mk", "test_clamp.c", "CMakeLists.txt", "clamp_test.cc")
FOLDERS = ("tests/data.json", "test/helper.sh")
ANY = (*JVM, *GO, *RUST, *JAVASCRIPT, *PYTHON, *C, "spec/clamp_spec.rb", "x.bats")
DROPPED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(["pytest", "harbor"], ()),
    "cargo": (*RUST, *FOLDERS),
    "go": GO,
    "tap": (*ANY, *FOLDERS),
    "junit": (*ANY, *FOLDERS),
    "command": (*ANY, *FOLDERS),
    "swebench": ANY,
}
SOURCES = (
    *("clamp.c", "src/clamp.c", "src/main/java/a/C.java", "clamp.go", "cmd/clamp/main.go"),
    *("src/lib.rs", "src/main.rs", "index.js", "lib/clamp.ts", "testing/clamp.py", "latest.py"),
    *("README", "src/EDIT.java", "src/it/messages.js", "locale/src/it/index.json"),
    *("org/junit.java", "cargo/config.toml", "src/contest/clamp.go", "protest.c", "index.html"),
)


def dropped_by(name: str, paths: Iterable[str], task: Task) -> set[str]:
    runner = get_runner(name)
    patch = Patch.between({}, dict.fromkeys(paths, "x\n"))
    selection = select_graded(task, patch, test_files=(), patterns=runner.patterns(task))
    return set(selection.dropped_paths)


@pytest.mark.parametrize("folder", ["", "deep/er/"], ids=["root", "nested"])
@pytest.mark.parametrize("name", RUNNER_NAMES)
def test_each_runner_drops_its_tests_and_configuration(name: str, folder: str) -> None:
    task = replace(TASK, test_patch="", gold_patch="", test_command="")
    paths = {folder + path for path in DROPPED[name]}
    sources = {folder + path for path in SOURCES}
    assert dropped_by(name, paths | sources, task) == paths
    gold = Patch.between({}, dict.fromkeys(paths, "")).text
    assert dropped_by(name, paths, replace(task, gold_patch=gold)) == set()


def test_only_a_pattern_with_a_slash_matches_folders() -> None:
    patterns = ("/.cargo/*", "a[1].c", "b.?", "test_*.py")
    paths = (".cargo/x", "x/.cargo/y/z", "x.cargo/y", "a1.c", "b.c", "b.cc", "ab.c", "a[1].c")
    paths += ("test_tools/core.py",)  # the name of a folder
    assert dropped(*paths, patterns=patterns) == sorted([".cargo/x", "x/.cargo/y/z", "a1.c", "b.c"])


DATA = [
    ('open("data/rows.json")', "data/rows.json", True),
    ('open("data/rows.json")', "data/deep/rows.txt", False),
    ('open("data/a.in")', "data/a.out", True),  # with_suffix
    ('open(f"lib/data/{name}.txt")', "lib/data/deep/more.txt", True),
    ('open(f"lib/data/{name}.txt")', "lib/names.txt", False),
    ('Path("cases").rglob("*.json")', "cases/small/a.json", True),
    ('Path("lib", "cases").rglob("*")', "lib/cases/small/a.json", True),
    ('load(HERE / "cases" / name)', "testing/cases/small/a.json", True),
    ('load(HERE.parent / "cases" / "a.json")', "cases/a.json", True),
    ('load("../cases/" + name)', "cases/a.json", True),
    ('load(Path("..") / "cases" / "a.json")', "cases/a.json", True),
    ('check("it\'s", "cases/a.json")', "cases/a.json", True),
    ('Path("golden/out.py").read_text()', "golden/out.py", True),
    ('(ROOT / "golden" / "x" / "out.c").read_text()', "golden/x/out.c", True),
    ('for path in Path("golden").rglob("*.rs"): pass', "golden/x/out.rs", True),
    ('open(os.path.join(HERE, "golden", "out.py"))', "golden/out.py", True),
    ('GOLDEN = Path(HERE, "golden", "out.py")\nGOLDEN.read_text()', "golden/out.py", True),
    ('load(resources.files("lib.data") / "a.json")', "lib/data/a.json", True),
    ('check("""a\nb""", "golden/out.txt")', "golden/out.txt", True),
    ('open(f"{HERE}/golden/out.txt")', "golden/out.txt", True),
    ('not Python: "golden/out.txt"', "golden/out.txt", True),
    # Names of folders of the tree, and words that are no paths.
    ('assert total("en") == 1', "locale/en/m.json", False),
    ('(tmp_path / "m.json").touch()', "locale/en/m.json", False),
    ('assert kind == "utils"', "utils/names.py", False),
    # Programs: imported, started, or in a folder that the gold patch changes.
    ('import lib.names\nlog = getLogger("lib")', "lib/names.json", False),
    ('import lib.names\nlog = ROOT / "lib"', "src/lib/names.py", False),
    ('log = getLogger("shop")', "shop/data/rows.json", False),
    ('log = load(HERE / "../shop")', "shop/data/rows.json", False),
    ('open("shop/data/rows.json")', "shop/data/rows.json", True),
    ('run(ROOT / "shop" / "cli.py")', "shop/cli.py", False),
    ('sys.path.insert(0, str(ROOT / "lib"))', "lib/names.py", False),
    ('client.get("/blog/")', "blog/names.txt", False),
    ('CLI = Path(__file__).parent / "tools" / "cli.py"\nrun([str(CLI)])', "tools/cli.py", False),
    ('LIB = Path(__file__).parents[1] / "lib"\nsys.path.insert(0, str(LIB))', "lib/a.py", False),
    ('spec_from_file_location("cli", "tools/cli.py")', "tools/cli.py", False),
]


@pytest.mark.parametrize(("text", "path", "is_data"), DATA)
def test_data_of_tests_is_dropped(text: str, path: str, is_data: bool) -> None:
    gold = Patch.between({}, {"shop/deep/cart.py": "x = 1\n"}).text
    hidden = {"testing/test_x.py": f"{text}\n", "testing/rows.json": '"docs"'}
    task = replace(TASK, gold_patch=gold, test_patch=Patch.between({}, hidden).text)
    assert dropped(path, "docs/api.md", task=task) == ([path] if is_data else [])
    gold += Patch.between({}, {path: "x = 2\n"}).text
    assert dropped(path, task=replace(task, gold_patch=gold)) == []


CHANGED_BY_GOLD = [
    ('render("templates")', "templates/page.html", "templates/title.html", False),
    ('render("templates")', "templates/deep/page.html", "templates/title.html", False),
    ('load("docs")', "docs/changes.rst", "docs/expected.txt", True),
    ('check("cases", "cases/a.json")', "cases/a.json", "cases/b.json", True),
    ('Path("golden").glob("*.txt")', "golden/a.txt", "golden/b.txt", True),
    ('load(HERE / "cases" / name)', "testing/cases/a.json", "testing/cases/b.json", True),
    ('check("golden")\nopen("golden/out.py")', "golden/a.txt", "golden/out.py", True),
    ('check("golden")\nopen("golden/out.txt")', "golden/a.txt", "golden/b.txt", True),
]


@pytest.mark.parametrize(("text", "gold", "path", "is_data"), CHANGED_BY_GOLD)
def test_named_folder_that_the_gold_patch_changes_is_graded(
    text: str, gold: str, path: str, is_data: bool
) -> None:
    hidden = Patch.between({}, {"testing/test_x.py": f"{text}\n"}).text
    task = replace(TASK, gold_patch=Patch.between({}, {gold: "x\n"}).text, test_patch=hidden)
    assert dropped(path, task=task) == ([path] if is_data else [])


def test_file_that_a_command_names_is_matched() -> None:
    cases = [
        ("./run all", "run"),
        ("python -m pytest -q lib/test_x.py::test_a", "lib/test_x.py"),
        ("python -m checks.all --fast", "checks/all.py"),
        ("python -m checks", "checks/__main__.py"),
        ("cd sub && ./check.sh", "sub/check.sh"),
        ("make -C sub -f rules.txt", "sub/rules.txt"),
        ("./prog < in.txt | diff - wanted.txt", "wanted.txt"),
        ("bash -c './check.sh all'", "check.sh"),
        ("'my checks/run all.sh'", "my checks/run all.sh"),
        ("$PWD/check.sh", "check.sh"),
        ('"${ROOT}/checks/one.sh"', "checks/one.sh"),
        ("/testbed/checks/one.sh", "checks/one.sh"),
        ("X=checks/one.sh; sh $X", "checks/one.sh"),
        ("pytest --config=conf/x.cfg", "conf/x.cfg"),
        ("cat <<'END'\nit's checks/one.sh\nEND", "checks/one.sh"),
        ("./a/../check.sh", "check.sh"),
        ("./prüfen.sh", "prüfen.sh"),
    ]
    for command, path in cases:
        assert path_matcher(named_patterns([command]))(path), command
        patterns = get_runner("command").patterns(replace(COMMAND_TASK, fail_to_pass=(command,)))
        assert set(named_patterns([command])) <= set(patterns)
    others = named_patterns(["cc -o prog prog.c\n./prog -q ."])
    assert others == ("/cc", "/prog", "/prog.c")


def test_program_that_a_command_starts_is_matched() -> None:
    cases = [
        "./run.sh",
        "./run.sh {file}",
        "bash run.sh",
        "A=1 B='x' env -i timeout -s KILL 60s sh ./run.sh",
        "make && ./run.sh",
        "(./run.sh)",
        "bash -c './run.sh && true'",
        "set -e\ncd .\nrun.sh",
        "if true; then ./run.sh; fi",
        "sh /testbed/run.sh",
        "if ! ./run.sh; then exit 1; fi",
        "/usr/bin/python3.11 -u run.sh",
        "sudo -u me nice -n 5 ./run.sh",
        "perl -I lib run.sh",
        "xargs -I {} ./run.sh {}",
        "find . -name x -exec ./run.sh {} \\;",
        "uv run ./run.sh",
        "npx ./run.sh",
    ]
    for command in cases:
        assert "/run.sh" in started_patterns(command), command
    task = replace(COMMAND_TASK, runner="tap", test_command="sh 'run[1].sh'")
    assert get_runner("tap").files(task) == ("run[1].sh",)
    assert path_matcher(get_runner("tap").patterns(task))("run[1].sh")
    assert started_patterns("cc src/clamp.c -o clamp && ./clamp") == ("/cc", "/clamp")
    assert started_patterns("npx jest src/clamp.js && pytest -m clamp") == ("/jest", "/pytest")
