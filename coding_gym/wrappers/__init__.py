"""Gymnasium wrappers for ``CodingRepair-v0``.

| wrapper | does |
|---|---|
| `TokenBudget` | ends an episode when its tokens are spent, with nano-agent's warnings |
| `ShapedReward` | adds parts to the reward: at the end, and for visible tests at every turn |
| `TranscriptObservation` | replaces the ids of the observation by those of the whole chat |
| `MenuActions` | replaces text actions by a menu of repair steps |
| `RecordTrajectory` | writes every finished episode to a folder |

Limits of turns, time and cost are the env's argument ``limits``. The text of an observation is
``info["text"]``.
"""

from coding_gym.wrappers.menu_actions import MenuActions
from coding_gym.wrappers.record_trajectory import RecordTrajectory
from coding_gym.wrappers.shaped_reward import ShapedReward
from coding_gym.wrappers.token_budget import TokenBudget
from coding_gym.wrappers.transcript_observation import TranscriptObservation

__all__ = [
    "MenuActions",
    "RecordTrajectory",
    "ShapedReward",
    "TokenBudget",
    "TranscriptObservation",
]
