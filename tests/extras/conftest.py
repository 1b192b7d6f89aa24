"""What the trainers' packages are told before they are imported, and one thread for torch."""

import importlib.util
import os
from collections.abc import Iterator

import pytest

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
