"""Gymnasium wrappers, one per file.

| wrapper | does |
|---|---|
| `TokenBudget`, `ToolCallBudget` | bound an episode, with nano-agent's warnings |
| `PatchSimilarityReward`, `TestPassReward` | add a shaped part to the reward |
| `TranscriptObservation` | observes the whole chat, not only what is new |
| `MenuActions`, `TokenActions` | replace text actions by a menu of repairs, or by token ids |
| `RecordTrajectory` | writes every finished episode to a file |
"""

from coding_gym.wrappers.menu_actions import MenuActions
from coding_gym.wrappers.patch_similarity_reward import PatchSimilarityReward
from coding_gym.wrappers.record_trajectory import RecordTrajectory
from coding_gym.wrappers.test_pass_reward import TestPassReward
from coding_gym.wrappers.token_actions import TokenActions
from coding_gym.wrappers.token_budget import TokenBudget
from coding_gym.wrappers.tool_call_budget import ToolCallBudget
from coding_gym.wrappers.transcript_observation import TranscriptObservation

__all__ = [
    "MenuActions",
    "PatchSimilarityReward",
    "RecordTrajectory",
    "TestPassReward",
    "TokenActions",
    "TokenBudget",
    "ToolCallBudget",
    "TranscriptObservation",
]
