"""Settings of the trainers' packages, one thread for torch, and the examples."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.append(str(EXAMPLES))  # for menu_policy
sys.path.append(str(Path(__file__).parents[1] / "evaluation"))  # for made_runs

if importlib.util.find_spec("trl"):
    # Read when the packages are imported: nothing is looked up on a network, nothing is announced.
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Tests share the machine with sandboxes; these networks are too small for more threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
