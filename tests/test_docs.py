"""What the documentation shows is true: its Python runs, its files exist."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from checks.debug import restored_registries
from command_line import run
from model_server import Answer, ChatServer, message
from pages import PAGES, PY_PAGES, ROOT, TRAINERS, blocks, run_page
from typer.main import get_command

from coding_gym import chat_request
from coding_gym.cli.app import app
from coding_gym.sandbox.select import get_backend

README = ROOT / "README.md"


def alone(*pages: Path) -> list[Any]:
    """Returns the code of every Python block that stands alone; its id is page and number."""
    return [
        pytest.param(code, id=f"{page.name} {number}")
        for page in pages
        for number, code in enumerate(blocks(page, "python"), 1)
        if "prepared.jsonl" not in code  # made by the commands above it, from the network
    ]


def assert_runs(code: str) -> dict[str, object]:
    namespace: dict[str, object] = {}
    with restored_registries():
        exec(compile(code, "a block of the page", "exec"), namespace)  # noqa: S102 - our own
    assert {"env", "task", "tasks"} & namespace.keys()
    return namespace


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("code", alone(README))
def test_the_readme_solves_a_task(code: str) -> None:
    assert assert_runs(code)["reward"] == 1.0


@pytest.mark.slow
@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("code", alone(*PAGES))
def test_python_in_the_pages_runs(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert_runs(code)
    assert "could not be loaded" not in capsys.readouterr().out


@pytest.mark.usefixtures("elsewhere")
def test_the_first_task_is_the_one_of_its_page() -> None:
    run("tasks", "new", "my-task")
    hidden = Path("my-task/hidden/tests/test_discounts.py").read_text(encoding="utf-8")
    shown, _ = PY_PAGES["your-own-tasks.md"]
    assert shown.partition("\n")[2].strip() in hidden
    sys.path.insert(0, "my-task/tree")
    try:
        page = run_page("your-own-tasks.md", {})
    finally:
        sys.path.remove("my-task/tree")
    assert "discount" in page["info"]["text"]
    page["env"].close()


@pytest.mark.usefixtures("elsewhere")
def test_a_harbor_folder_plays_as_its_page_says() -> None:
    run("tasks", "export", "--format", "harbor", "--num-tasks", "1", "--out", "FOLDER")
    env = run_page("harbor.md", {"gym": gymnasium})["env"]
    env.reset(seed=0)
    env.close()


def test_an_env_of_a_server_plays_as_its_page_says() -> None:
    pytest.importorskip("prometheus_client", reason="needs the extra `serve`")
    from serving import command

    with command() as (_, url, token), pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODING_GYM_TOKEN", token)
        page = run_page("serve.md", {}, {"http://127.0.0.1:7576": url})
    assert page["terminated"]


def test_requests_to_a_chat_model_are_as_their_page_says() -> None:
    openai = pytest.importorskip("openai")
    env = gymnasium.make("coding_gym:CodingRepair-v0")
    env.reset(seed=0)
    reply = message(calls={"submit": {}})
    with ChatServer(lambda _: Answer(reply)) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="none")
        run_page("rollouts.md", {"client": client, "env": env, "chat_request": chat_request})
    assert env.unwrapped.episode.ended
    env.close()


def test_a_backend_is_checked_as_its_page_says() -> None:
    page = run_page("reference/sandboxes.md", {"MyBackend": get_backend})
    (mark,) = page["test_my_backend_conforms"].pytestmark
    page["test_my_backend_conforms"](mark.args[1][0])


def test_a_daemon_elsewhere_is_named_as_its_page_says() -> None:
    assert run_page("docker.md", {})["backend"].name == "docker"


def test_every_block_of_the_pages_has_a_test() -> None:
    here = {"your-own-tasks.md", "harbor.md", "serve.md", "rollouts.md", "docker.md"}
    assert here | {"reference/sandboxes.md"} | TRAINERS == PY_PAGES.keys()


def test_figures_of_speed_are_what_the_benchmarks_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import summary

    texts = {page.name: page.read_text(encoding="utf-8") for page in summary.pages()}
    old = [name for name, text in texts.items() if summary.filled(text) != text]
    assert old == [], "run: python benchmarks/summary.py --write"
    commits = {name: summary.newest(name)["machine"]["commit"] for name in summary.BENCHMARKS}
    assert len(set(commits.values())) == 1, f"measure all five at one commit, got {commits}"


def test_linked_files_exist() -> None:
    missing = [
        f"{page.name}: {target}"
        for page in (README, *PAGES)
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert missing == []


def command_lines(page: Path) -> list[str]:
    """Returns the calls of ``coding-gym`` in a page, without their comments."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(r"(?m)^(?: {4}|\$ )(?:\$ )?(coding-gym [^#\n]*)", text)


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_options_on_command_lines_exist(page: Path) -> None:
    unknown = []
    for line in command_lines(page):
        _, *words = shlex.split(line)
        command: Any = get_command(app)
        while hasattr(command, "commands") and words:
            command = command.commands[words.pop(0)]
        options = {name for option in command.params for name in (*option.opts, "--help")}
        named = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        unknown += [f"{line}: {name}" for name in sorted(named - options)]
    assert unknown == []


def test_the_readme_says_how_many_bundled_tasks_there_are() -> None:
    from coding_gym import load_tasks

    readme = README.read_text(encoding="utf-8")
    assert f"{len(load_tasks('bundled'))} bundled tasks" in readme
    assert f"{len(load_tasks('polyglot'))} more" in readme
