"""A Gymnasium environment for training agents that repair code.

Importing the package registers the environment with Gymnasium:

    import gymnasium as gym
    import coding_gym

    env = gym.make("CodingRepair-v0")
    observation, info = env.reset(seed=0)
    action = '{"name": "shell", "arguments": {"cmd": "ls"}}'
    observation, reward, terminated, truncated, info = env.step(action)
"""

from coding_gym.action import Completion, Stop
from coding_gym.envs import register_envs
from coding_gym.envs.chat_request import chat_request
from coding_gym.envs.replay import resume_from
from coding_gym.envs.snapshot import EnvSnapshot, restore, snapshot
from coding_gym.errors import CodingGymError
from coding_gym.grade import Grade, GradeReason, TestStatus
from coding_gym.patch import Patch
from coding_gym.task import Task
from coding_gym.tasks import load_tasks
from coding_gym.trajectory import StopReason, Trajectory, Turn

__version__ = "0.2.0"

__all__ = [
    "CodingGymError",
    "Completion",
    "EnvSnapshot",
    "Grade",
    "GradeReason",
    "Patch",
    "Stop",
    "StopReason",
    "Task",
    "TestStatus",
    "Trajectory",
    "Turn",
    "chat_request",
    "load_tasks",
    "restore",
    "resume_from",
    "snapshot",
]

register_envs()
