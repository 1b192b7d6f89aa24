"""Gymnasium wrappers; those that only set limits are in `limits`.

| wrapper | does |
|---|---|
| `TokenBudget`, `ToolCallBudget` | bound an episode, with nano-agent's warnings |
| `TimeBudget`, `CostBudget` | bound its time, and what its tokens cost |
| `CollapseDetector`, `FormatErrorLimit` | end one that goes round in circles, or cannot be read |
| `PatchSimilarityReward`, `TestPassReward` | add a shaped part to the reward |
| `CompositeReward` | adds several, by name and weight |
| `VisibleTestShaping` | rewards each turn for the visible tests, and takes it back at the end |
| `TranscriptObservation` | observes the whole chat, not only what is new |
| `TextObservation` | observes text, not token ids |
| `MenuActions`, `TokenActions` | replace text actions by a menu of repairs, or by token ids |
| `RecordTrajectory` | writes every finished episode to a file |
"""

from coding_gym.wrappers.composite_reward import (
    CompositeReward,
    PatchSimilarityReward,
    TestPassReward,
)
from coding_gym.wrappers.limits import (
    CollapseDetector,
    CostBudget,
    FormatErrorLimit,
    TimeBudget,
    TokenBudget,
    ToolCallBudget,
)
from coding_gym.wrappers.menu_actions import MenuActions
from coding_gym.wrappers.record_trajectory import RecordTrajectory
from coding_gym.wrappers.text_observation import TextObservation
from coding_gym.wrappers.token_actions import TokenActions
from coding_gym.wrappers.transcript_observation import TranscriptObservation
from coding_gym.wrappers.visible_test_shaping import VisibleTestShaping

__all__ = [
    "CollapseDetector",
    "CompositeReward",
    "CostBudget",
    "FormatErrorLimit",
    "MenuActions",
    "PatchSimilarityReward",
    "RecordTrajectory",
    "TestPassReward",
    "TextObservation",
    "TimeBudget",
    "TokenActions",
    "TokenBudget",
    "ToolCallBudget",
    "TranscriptObservation",
    "VisibleTestShaping",
]
