"""Agent, rewards and dataset for AReno, all in one file.

    areno train --algo grpo --ckpt Qwen/Qwen3-0.6B --dataset-path bundled#train \
        --dataset-loader-fn examples/areno_agent.py --agent-fn examples/areno_agent.py \
        --reward-fn-path examples/areno_agent.py --world-size 1 --tp-size 1 --batch-size 4 \
        --n-samples 8 --max-prompt-tokens 4096 --max-context-len 16384 --max-new-tokens 2048

Needs a GPU, and AReno as docs/areno.md installs it.
"""

from typing import Any

from coding_gym.adapters import areno

play = areno.agent_function(max_turns=30)


# AReno reads the source for these names before it imports the file.
async def run_agent(ctx: Any, batch: Any) -> Any:
    """Plays an episode for each sample of a batch."""
    return await play(ctx, batch)


def reward_fn(record: Any) -> float:
    """Returns the reward of a sample's episode."""
    return areno.reward_fn(record)


def load_training_dataset(path: str, **_: Any) -> Any:
    """Returns the dataset of a source of tasks."""
    return areno.load_training_dataset(path)
