"""Install commands run once; their results are a read-only layer that tasks share."""

import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from workspace_scene import make_repository, make_task

from coding_gym.errors import SandboxUnavailableError, TemplateError
from coding_gym.patch import Patch
from coding_gym.sandbox import Sandbox, find_interpreter, open_sandbox
from coding_gym.task import FilesTree, FolderTree, GitTree
from coding_gym.workspace import Template, TemplateStore, diff
from coding_gym.workspace.pytest_layer import pytest_distributions

pytestmark = pytest.mark.slow

INSTALL = (
    "test \"$(python -c 'import sys; print(sys.prefix)')\" = /opt/env",
    "python -m pip --version",
    "mkdir 'program 1.egg-info' && echo Name: program > 'program 1.egg-info/PKG-INFO'",
    "echo 'VERSION = 1' > pkg/_version.py; ln -s _version.py pkg/link.py",
    "mkdir pkg/__pycache__ && echo x > pkg/__pycache__/core.pyc",
    'echo "ANSWER = 42" > "$(python -c "import site; print(site.getsitepackages()[0])")/answer.py"',
    "echo '# an edit of a tracked file is not kept' >> pkg/core.py",
    "echo '#!/bin/sh' > /opt/env/bin/tool; echo echo made >> /opt/env/bin/tool; "
    "chmod +x /opt/env/bin/tool",
)


@pytest.fixture(scope="module")
def built(store: TemplateStore) -> Template:
    return store.get(make_task(install_commands=INSTALL, repo="o/program", version="1"))


@pytest.fixture
def installed(built: Template) -> Iterator[Sandbox]:
    with open_sandbox(built.spec) as sandbox:
        yield sandbox


def test_results_of_install_commands_are_visible(installed: Sandbox) -> None:
    code = "import answer, pkg._version, pkg.link; print(answer.ANSWER)"
    assert installed.run(f"python -c '{code}'").output == "42\n"
    assert installed.run("tool").output == "made\n"
    assert installed.run("cat 'program 1.egg-info/PKG-INFO'").output == "Name: program\n"
    assert not installed.run("ls pkg/__pycache__").ok
    assert "an edit" not in installed.run("cat pkg/core.py").output


def test_results_of_install_commands_are_read_only(installed: Sandbox, built: Template) -> None:
    assert "Read-only" in installed.run("echo > /opt/env/bin/python").output
    assert installed.run("git status --short").output == ""
    assert diff(installed, built).is_empty
    installed.run("echo more >> pkg/_version.py; rm -r program*; echo > new.py")
    assert diff(installed, built).paths == {"new.py"}
    installed.run("rm new.py")
    assert diff(installed, built).is_empty


@pytest.mark.usefixtures("without_pip")
def test_tasks_share_environments(store: TemplateStore, store_folder: Path, tmp_path: Path) -> None:
    before = set((store_folder / "environments").glob("*/"))
    (tmp_path / "code.py").write_text("RIGHT = True\n")
    fields = {"repo": "o/program", "environment_setup_commit": "1.0"}
    commands = ("cp code.py /opt/env; echo made | tee _version.py other.py",)
    for value in ("False", "None"):
        base = {"code.py": f"RIGHT = {value}\n", "_version.py": "tracked\n"}
        reverse_patch = Patch.between(base, {"code.py": "RIGHT = True\n"}).text
        tree = FolderTree(str(tmp_path), reverse_patch)
        template = store.get(make_task(tree=tree, install_commands=commands, **fields))
        with open_sandbox(template.spec) as sandbox:
            output = sandbox.run("cat code.py /opt/env/code.py _version.py other.py").output
            assert output == f"RIGHT = {value}\nRIGHT = True\ntracked\nmade\n"
            assert sandbox.run("git status --short").output == ""
            sandbox.run("echo > _version.py; echo > x.py")
            assert diff(sandbox, template).paths == {"_version.py", "x.py"}
    assert len(set((store_folder / "environments").glob("*/")) - before) == 1


@pytest.fixture
def repository(tmp_path: Path) -> tuple[str, list[str]]:
    """The path of a repository and its three commits."""
    folder = tmp_path / "repository"
    return str(folder), make_repository(folder, *(f"NUMBER = {number}\n" for number in range(3)))


@pytest.mark.usefixtures("without_pip")
def test_an_environment_is_built_at_its_setup_commit(
    store: TemplateStore, store_folder: Path, repository: tuple[str, list[str]]
) -> None:
    folder, (first, setup, last) = repository
    before = set((store_folder / "environments").glob("*/"))
    fields = {
        "tree": GitTree(folder),
        "repo": "o/numbers",
        "version": "1.2",
        "environment_setup_commit": setup,
        "install_commands": (
            "cp code.py built.py; echo $SETUPTOOLS_SCM_PRETEND_VERSION > version.txt",
        ),
    }
    for commit, number in ((first, 0), (last, 2)):
        template = store.get(make_task(base_commit=commit, **fields))
        with open_sandbox(template.spec) as sandbox:
            output = sandbox.run("cat code.py built.py version.txt; git status -s").output
            assert output == f"NUMBER = {number}\nNUMBER = 1\n1.2\n"
    assert len(set((store_folder / "environments").glob("*/")) - before) == 1


CLAIM = {"repo": "o/claimed", "version": "1"}
EVIL = {"evil.pth": "import evil\n"}


@pytest.mark.usefixtures("without_pip")
@pytest.mark.parametrize("has_setup_commit", [False, True])
def test_rows_with_different_trees_share_no_environment(
    store: TemplateStore, repository: tuple[str, list[str]], tmp_path: Path, has_setup_commit: bool
) -> None:
    source, (_, setup, last) = repository
    for path, text in {"good/code.py": "NUMBER = 2\n", "evil/evil.pth": EVIL["evil.pth"]}.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    commits = {"base_commit": last, "environment_setup_commit": setup if has_setup_commit else ""}
    fields = CLAIM | commits | {"install_commands": ("cp *.* /opt/env",)}
    for evil_tree in (
        FilesTree(EVIL),
        FolderTree(str(tmp_path / "evil")),
        # The reverse patch adds a file to the base.
        GitTree(source, Patch.between(EVIL, {}).text),
    ):
        store.get(make_task(tree=evil_tree, **fields))
    for tree in (FolderTree(str(tmp_path / "good")), GitTree(source)):
        with open_sandbox(store.get(make_task(tree=tree, **fields)).spec) as sandbox:
            assert sandbox.run("ls /opt/env/*.p*").output == "/opt/env/code.py\n"


def test_pytest_runs_as_a_command_and_as_a_module(sandbox: Sandbox) -> None:
    for command in ("pytest -q", "python -m pytest -q", "py.test -q"):
        assert "1 passed" in sandbox.run(command).output
    assert version("pytest") in sandbox.run("pytest --version 2>&1").output


def test_other_packages_of_this_process_are_absent(sandbox: Sandbox) -> None:
    script = (
        "from importlib.metadata import distributions\n"
        "print(*sorted(d.name.lower() for d in distributions()))\n"
        "for name in ('coding_gym', 'numpy', 'gymnasium', 'git', 'docker'):\n"
        "    try: __import__(name)\n"
        "    except ImportError: continue\n"
        "    raise SystemExit(name)\n"
    )
    result = sandbox.run("python -", stdin=script.encode())
    assert result.ok, result.output
    expected = {dist.name.lower() for dist in pytest_distributions().values()}
    assert set(result.output.split()) == expected
    assert "coding_gym" not in sandbox.run("ls /opt; ls $(dirname $(which pytest))").output


_VERSION = "{}.{}".format(*sys.version_info)


@pytest.mark.parametrize("other", [v for v in ("3.11", "3.12", "3.13") if v != _VERSION])
def test_other_interpreters_need_install_commands(store: TemplateStore, other: str) -> None:
    try:
        find_interpreter(other)
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    with pytest.raises(TemplateError, match="add an install command"):
        store.get(make_task(interpreter=other))
