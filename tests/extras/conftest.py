"""Settings of the trainers' packages, and fixtures for torch and for a Ray cluster."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_NUM_NODES = 2
EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.append(str(EXAMPLES))  # for menu_policy

if importlib.util.find_spec("trl"):
    # The packages read these variables on import: no network access, and no announcements.
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Limits torch to one thread: the networks are small, and sandboxes need the processor."""
    import torch

    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)


@pytest.fixture(scope="module")
def head() -> Iterator[Any]:
    """The head of a cluster, without CPUs, so that nothing runs on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Ray's 15 seconds for the start of a node's agent are too few on a busy machine.
        patch.setenv("RAY_agent_register_timeout_ms", "120000")
        patch.setenv("RAY_health_check_period_ms", "500")
        patch.setenv("RAY_health_check_timeout_ms", "500")
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        yield cluster
        cluster.shutdown()


@pytest.fixture
def cluster(head: Any) -> Any:
    """A cluster of two nodes."""
    while len(head.worker_nodes) < _NUM_NODES:
        head.add_node(num_cpus=2)
    head.wait_for_nodes()
    return head
