"""Checks the documentation: Python code runs; named options, files and tests exist.

Blocks of ``python`` run alone. Blocks of ``py`` run with the entry of their section in `NEEDS`.
"""

import ast
import doctest
import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from model_server import Answer, ChatServer, message
from typer.main import get_command

from coding_gym.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
MODULES = (path for path in (ROOT / "coding_gym").rglob("*.py") if "bundled" not in path.parts)
DOCTESTS = sorted(path for path in MODULES if re.search(r"(?m)^ +>>> ", path.read_text("utf-8")))
MODEL = "http://127.0.0.1:8000/v1"

_NEW_TASK = """import subprocess, sys
subprocess.run(["coding-gym", "tasks", "new", "my-task"], check=True)
"""
_FIXED_TASK = f"""{_NEW_TASK}
subprocess.run(["git", "apply", "--directory", "my-task/tree", "my-task/gold.patch"], check=True)
sys.path.insert(0, "my-task/tree")
"""
_CHAT = f"""import gymnasium, openai
from coding_gym import chat_request
env = gymnasium.make("coding_gym:CodingRepair-v0")
env.reset(seed=0)
client = openai.OpenAI(base_url="{MODEL}", api_key="none")
"""
_SERVE = """import re, socket, subprocess
with socket.create_server(("127.0.0.1", 0)) as free:
    command = ["coding-gym", "serve", "--port", str(free.getsockname()[1])]
server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
url = re.search("http://[^ ]*[0-9]", server.stdout.readline())[0]
"""
_CPU = "num_generations=8, use_cpu=True, bf16=False, report_to='none'"
_NO_TRAINING = "from trl import GRPOTrainer; GRPOTrainer.train = print"  # takes hours
_TRAIN = ("GRPOConfig(", f"GRPOConfig({_CPU}, ")
_ONE = ('split="train"', 'task_ids=["ledgerline-month-overlap"]')
_HARNESS = """
from coding_gym.agents.harness import Harness
code = '''import sys, urllib.request
body = b'{"messages": [{"role": "user", "content": "Repair it."}]}'
headers = {"Authorization": "Bearer " + sys.argv[2]}
urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, headers))
'''
command = "python3 ~/a.py {base_url}/chat/completions {api_key} {problem}"
harness = Harness(name="own", command=command, files={"a.py": code})
train = print
"""
_OWN = "HarnessPlayer(harness, ChatAgent(client, 'my-model')), tasks=load_tasks(limit=1)"
_FEW = ("player, tasks=tasks", _OWN)
_TRAINED = "assert model.num_timesteps >= 8; env.close()"
# By section: the required package, code to run before, a (text, replacement), code to run after.
NEEDS = {
    "README Train": ("trl", _NO_TRAINING, _TRAIN, ""),
    "your-own-tasks 3.": ("", _FIXED_TASK, None, "test_half_a_cent_is_rounded_up()"),
    "your-own-tasks 7.": ("", _NEW_TASK, None, "assert 'discount' in info['text']"),
    "rollouts Requests": ("openai", _CHAT, None, "env.close()"),
    "rollouts Any": ("openai", _HARNESS, _FEW, "assert sample['completion_ids'] == [3]"),
    "serve Serve": ("openenv", _SERVE, ('"http://127.0.0.1:8000"', "url"), "server.terminate()"),
    "trainers verifiers": ("verifiers", "", _ONE, "assert len(traces) == 1"),
    "trainers verl": ("trl", "", None, "assert len(rows) == 29"),
    "trainers NeMo": ("nemo_gym", "", ('__name__ == "__main__"', "False"), ""),
    "scale On": ("ray", "", ('address="auto"', 'address="local"'), ""),
    "trl TRL": ("trl", _NO_TRAINING, ("num_generations=8", _CPU), ""),
    "trl Whole": ("trl", _NO_TRAINING, ("num_generations=8", _CPU), ""),
    "menu-policies Stable-Baselines3": ("sb3_contrib", "", ("5_000", "8"), _TRAINED),
    "menu-policies RLlib": ("ray", "", None, "algorithm.stop()"),
}


def sections(language: str) -> dict[str, str]:
    """Returns the joined code blocks of a language by section, "PAGE FIRST-WORD-OF-HEADING"."""
    blocks: dict[str, str] = {}
    for page in PAGES:
        name = ""
        pattern = rf"(?ms)^#+ (\S+)[^\n]*$|^```{language}\n(.*?)^```"
        for heading, code in re.findall(pattern, page.read_text(encoding="utf-8")):
            name = f"{page.stem} {heading}" if heading else name
            if code:
                blocks[name] = blocks.get(name, "") + code
    return blocks


ALONE, NEEDY = sections("python"), sections("py")


def run(code: str, folder: Path) -> str:
    """Runs code in a new Python process in a folder; returns its output."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {"PATH": path, "PYTHONPATH": str(ROOT / "examples"), "OPENAI_API_KEY": "none"}
    quiet = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}
    command, env = [sys.executable, "-c", code], os.environ | variables | quiet
    process = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=280
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_the_readme_solves_a_task(tmp_path: Path) -> None:
    assert "\n1.0 all 43 expected tests passed\n" in run(ALONE["README coding_gym"], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted({name.split()[0] for name in ALONE} - {"README"}))
def test_blocks_of_a_page_run_alone(page: str, tmp_path: Path) -> None:
    blocks = {name: code for name, code in ALONE.items() if name.split()[0] == page}
    globals_ = '{"__name__": "__main__"}'  # a new dict for each block
    lines = [f"exec(compile({code!r}, {n!r}, 'exec'), {globals_})" for n, code in blocks.items()]
    run("\n".join(lines), tmp_path)


def _marked(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.trainer if NEEDS[name][0] else pytest.mark.slow)


@pytest.mark.parametrize("name", [_marked(name) for name in NEEDY])
def test_blocks_run_with_their_needs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, before, replacement, after = NEEDS[name]
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"{name} needs {package}")
    code = NEEDY[name]
    if replacement:
        assert replacement[0] in code
        code = code.replace(*replacement)
    if package == "trl":
        monkeypatch.syspath_prepend(str(ROOT / "tests/extras"))
        from tiny_qwen import build_model, train_tokenizer

        tokenizer = train_tokenizer(["any text"])
        tokenizer.save_pretrained(tmp_path / "tiny")
        build_model(tokenizer).save_pretrained(tmp_path / "tiny")
        code = code.replace("Qwen/Qwen3-0.6B", "tiny")
    with ChatServer(lambda _: Answer(message("Done.", ids=([1, 2], [3])))) as server:
        run(f"{before}\n{code}\n{after}".replace(MODEL, server.base_url), tmp_path)


def test_commands_of_the_first_task_page_record_every_change(tmp_path: Path) -> None:
    page = (ROOT / "docs/your-own-tasks.md").read_text(encoding="utf-8")
    block = page.partition("## 4.")[2].partition("```console\n")[2].partition("```")[0]
    listing = re.findall(r"(?m)^ +`(\(cd .*--collect-only.*\))` lists", page)[0]
    tree = tmp_path / "my-task/tree"
    run(_NEW_TASK, tmp_path)
    (tree / "old.py").write_text("OLD = 1\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise SystemExit(3)\n")

    def shell(script: str) -> str:
        path = f"PATH={Path(sys.executable).parent}:$PATH"
        command = ["bash", "-ec", f"{path}\n{script}"]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=100
        ).stdout

    shell(re.sub(r"(?m)^\$ ", "", block).replace("$EDITOR", "touch new.py; rm old.py; touch"))
    patch = (tmp_path / "my-task/gold.patch").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^(\w+) file mode", patch) == ["new", "deleted"]
    assert (tree / "old.py").exists()
    names = shell(listing).split()
    assert names[0] == "tests/test_discounts.py::test_half_a_cent_is_rounded_up"


def unknown_options(text: str) -> list[str]:
    """Returns the options of commands in a text that `coding-gym` does not have."""
    unknown = []
    for line in re.findall(r"(?m)(?:^\$ |`|^ +)(coding-gym [^#`\n]*)", text):
        _, *words = shlex.split(line)
        command: Any = get_command(app)
        while hasattr(command, "commands") and words:
            command = command.commands[words.pop(0)]
        options = {name for option in command.params for name in (*option.opts, "--help")}
        used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        unknown += [f"{line}: {name}" for name in sorted(used - options)]
    return unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_options_of_commands_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name, anchor in re.findall(r"\]\(([^)#:]+)(?:#([\w-]+))?\)", text):
        target = page.parent / name
        assert target.exists(), name
        headings = re.findall(r"(?m)^#+ (.+)$", target.read_text("utf-8") if anchor else "")
        slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in slugs, (name, anchor)
    assert unknown_options(text.replace("\\\n", " ")) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_options_of_commands_in_examples_exist(example: Path) -> None:
    assert unknown_options(example.read_text(encoding="utf-8").replace("\\\n", " ")) == []


@pytest.mark.parametrize("path", DOCTESTS, ids=lambda path: path.stem)
def test_examples_of_docstrings_are_true(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    result = doctest.testmod(importlib.import_module(module))
    assert (result.failed, result.attempted > 0) == (0, True)


def test_paths_of_the_architecture_page_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"`([\w-]+/[\w/]*(?:\.py)?|\w+\.py)`", text)
    roots = (ROOT / "coding_gym", ROOT)
    assert len(paths) > 40
    assert [path for path in paths if not any((root / path).exists() for root in roots)] == []


def test_tests_of_promises_exist() -> None:
    missing = []
    for page in (ROOT / "docs/threat-model.md", ROOT / "CONTRIBUTING.md"):
        for path, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text("utf-8")):
            tree = ast.parse((ROOT / path).read_text("utf-8") if (ROOT / path).exists() else "")
            if name not in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]:
                missing.append(f"{page.name}: {path}::{name}")
    assert missing == []
