"""examples/train_real_model.py: its gradient, its demonstrations and its stages."""

import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "examples")]
import train_real_model as recipe  # noqa: E402
from sandbox_fixtures import write_files, write_rows  # noqa: E402
from tiny_qwen import build_model, train_tokenizer  # noqa: E402

from coding_gym.adapters.samples import training_example  # noqa: E402
from coding_gym.agents.scripted import ActionsPlayer  # noqa: E402
from coding_gym.evaluation import evaluate  # noqa: E402
from coding_gym.patch import Patch  # noqa: E402
from coding_gym.run_folder import RunFolder  # noqa: E402
from coding_gym.tasks import load_tasks  # noqa: E402

pytestmark = pytest.mark.trainer
BROKEN = "def area(a, b):\n    return a + b\n\n\ndef half(a):\n    return a // 2\n"
FIXED = BROKEN.replace("a + b", "a * b")
TEST = "from shapes import area\n\n\ndef test_area():\n    assert area(3, 4) == 12\n"


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model in the folder where the script looks for the real model."""
    folder = tmp_path_factory.mktemp("cache") / "coding_gym" / "models" / "SmolLM2-135M-Instruct"
    tokenizer = train_tokenizer([FIXED, TEST], vocab_size=512)
    build_model(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Three programs, each with a bug in one line."""
    folder, rows = tmp_path / "bench", []
    gold = Patch.between({"shapes.py": BROKEN}, {"shapes.py": FIXED}).text
    for name in ("one", "two", "three"):
        write_files(folder / "trees" / name, {"shapes.py": FIXED, "test_shapes.py": TEST})
        row = {"instance_id": f"{name}__a", "repo": name, "folder": f"trees/{name}"}
        row |= {"reverse_patch": gold, "patch": gold, "problem_statement": "The area is wrong.\n"}
        rows.append(row | {"FAIL_TO_PASS": ["test_shapes.py::test_area"], "PASS_TO_PASS": []})
    write_rows(folder / "train.jsonl", *rows)
    write_rows(folder / "test.jsonl")
    return folder


def run(monkeypatch: pytest.MonkeyPatch, cache: Path, *arguments: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parents[2]))
    monkeypatch.setattr(sys, "argv", ["train_real_model.py", *arguments])
    recipe.main()


def table(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """Returns the cells of the report that was printed."""
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines[2:]]


def test_shared_prompt_gives_the_gradient_of_each_episode_alone(model_folder: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    examples = [
        {"prompt_ids": [5, 6, 7, 8], "completion_ids": [9, 10, 11], "env_mask": [1, 0, 1]},
        {"prompt_ids": [5, 6, 12], "completion_ids": [9, 13], "env_mask": [1, 1]},
    ]
    weights = [1.0, -0.5]
    loss = recipe.learn(model, examples, weights)
    gradient = model.model.layers[0].self_attn.k_proj.weight.grad.clone()
    model.zero_grad()
    total: Any = 0.0
    for example, weight in zip(examples, weights, strict=True):
        prompt, completion, mask = example.values()
        logits = model(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
        logprobs = logits.log_softmax(-1).gather(1, torch.tensor(completion)[:, None])[:, 0]
        total = total - weight * (logprobs * torch.tensor(mask)).sum() / 4
    total.backward()
    expected = model.model.layers[0].self_attn.k_proj.weight.grad
    assert loss == pytest.approx(total.item(), rel=0.02)
    assert float((gradient - expected).norm() / expected.norm()) < 0.1  # bfloat16


def test_stages_make_two_models_and_a_comparison(
    model_folder: Path,
    bench: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    work = tmp_path / "work"
    steps = ("--sft-steps", "1", "--grpo-steps", "1", "--attempts", "1")
    monkeypatch.setattr(recipe, "BATCH", 2)
    monkeypatch.setattr(recipe, "GROUPS", 1)
    monkeypatch.setattr(recipe, "ATTEMPTS", 2)
    run(monkeypatch, model_folder, "--bench", str(bench), "--work", str(work), *steps)
    assert {path.name for path in work.iterdir()} >= {"demos.jsonl", "sft", "grpo"}
    rows = ["downloaded", "sft", "sft - downloaded", "grpo", "grpo - sft"]
    assert [name for name, *_ in table(capsys)] == rows
    splits = [load_tasks(str(work / f"{name}.jsonl")) for name in ("grpo", "test")]
    assert [len(tasks) for tasks in splits] == [2, 1]
    assert sorted(task.repo for tasks in splits for task in tasks) == ["one", "three", "two"]


def test_report_counts_only_patches_that_pass_the_hidden_tests(
    model_folder: Path,
    bench: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def play(model: str, *_: Any, **__: Any) -> ActionsPlayer:
        new = "*" if model.endswith("grpo") else "-"
        reply = f"[edit(path='shapes.py', line=2, old='+', new='{new}')]"
        player = ActionsPlayer("demonstration", lambda *_: iter([reply]))
        player.tokenizer = f"hf:{model_folder}"  # type: ignore[attr-defined]
        return player

    monkeypatch.setattr(recipe, "HuggingFaceAgent", play)
    monkeypatch.setattr(recipe, "load", lambda *_: None)
    recipe.write_tasks(bench, tmp_path)
    for _ in range(2):  # the second report reads the grades
        run(monkeypatch, model_folder, "report", "--work", str(tmp_path))
        assert [row[:2] for row in table(capsys)] == [
            ["downloaded", "0.0 %"],
            ["sft", "0.0 %"],
            ["sft - downloaded", "0.0 %"],
            ["grpo", "100.0 %"],
            ["grpo - sft", "100.0 %"],
        ]
        runs = [RunFolder.open(tmp_path / f"eval-{name}") for name in ("downloaded", "sft", "grpo")]
        recorded = [[record.resolved for record in folder.trajectories()] for folder in runs]
        assert recorded == [[False], [False, False], [True, True]]
        monkeypatch.setattr(recipe, "grade", None)


def test_demonstration_has_the_ids_of_a_played_episode(
    model_folder: Path, bench: Path, tmp_path: Path
) -> None:
    recipe.write_tasks(bench, tmp_path)
    task, *_ = load_tasks(str(tmp_path / "grpo.jsonl"))
    assert "1 def area(a, b):\n2     return a + b\n" in task.problem_statement
    reply = "[edit(path='shapes.py', line=2, old='+', new='*')]"
    player = ActionsPlayer("demonstration", lambda *_: iter([reply]))
    tokenizer = f"hf:{model_folder}"
    episode = {"toolset": "compact", "tool_format": "pythonic", "tokenizer": tokenizer}
    run = evaluate(tmp_path / "run", player, tasks=[task], episode={**episode, "max_turns": 1})
    (record,) = run.trajectories()
    assert record.resolved
    example = recipe.demonstration(task.problem_statement, reply, tokenizer)
    assert example == training_example(record, include_inexact=True)
