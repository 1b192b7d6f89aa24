"""A wrapper whose actions are numbers of repair steps in a menu."""

from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from coding_gym.action import Completion, Stop
from coding_gym.arguments import at_least_one, is_integer
from coding_gym.envs.coding_repair import closes_on_error
from coding_gym.envs.snapshot import core_env, snapshot_in
from coding_gym.envs.spaces import dict_space
from coding_gym.episode.episode import Episode
from coding_gym.errors import EpisodeError, InvalidArgumentError
from coding_gym.repair.menu import FIRST_CANDIDATE, Menu
from coding_gym.repair.menu_features import CANDIDATE_FEATURES, MENU_FEATURES
from coding_gym.repair.program import CandidateProgram

__all__ = ["CANDIDATE_FEATURES", "MENU_FEATURES", "MenuActions"]

Observation = dict[str, Any]


class MenuActions(
    gym.Wrapper[Observation, Any, Observation, str],
    gym.utils.RecordConstructorArgs,
):
    """Replaces text actions by numbers of menu entries.

    *Action*: ``Discrete(2 + K)`` with K = ``num_candidates``:

    ====== ==========================================================================
    0      run_tests: run the visible tests
    1      submit
    2 + k  restore the tree and apply repair candidate k
    ====== ==========================================================================

    Each action runs ordinary tool calls: it takes one turn, and its calls count against all
    limits. A masked action takes one turn and changes nothing.

    *Observation*: the env's observation, and three arrays with values from 0 to 1:

    - ``action_mask``, int8, shape (2 + K,): 1 for each action that has an effect now;
    - ``candidates``, float32, shape (K, F): `CANDIDATE_FEATURES` of each candidate; rows without
      a candidate are 0;
    - ``menu``, float32, shape (M,): `MENU_FEATURES`.

    The candidates come from repair templates at the lines that failing visible tests execute. The
    first ``reset`` to a task finds these candidates, and the first ``run_tests`` of a candidate
    tests this candidate, in separate sandboxes. The process caches the results, so all episodes of
    the task in this process have the same candidates. Hidden tests are not used.

    A `coding_gym.Stop` is also an action. The wrapper needs the toolset ``nano`` and Python tasks.

    Args:
        env: A ``CodingRepair-v0`` env, wrapped or not.
        num_candidates: K, the maximum number of candidates.

    Raises:
        InvalidArgumentError: ``num_candidates`` is invalid, or ``env`` cannot be wrapped.
    """

    def __init__(self, env: gym.Env[Observation, str], num_candidates: int = 48) -> None:
        self._core = core_env("MenuActions", env)
        if self._core.toolset.name != "nano":
            raise InvalidArgumentError(
                f"MenuActions needs toolset='nano', got {self._core.toolset.name!r}"
            )
        inner_space = dict_space("MenuActions", env)
        num_candidates = at_least_one("num_candidates", num_candidates)
        gym.utils.RecordConstructorArgs.__init__(self, num_candidates=num_candidates)
        gym.Wrapper.__init__(self, env)
        self._num_candidates = num_candidates
        self._menu: Menu | None = None
        num_actions = FIRST_CANDIDATE + num_candidates
        self.action_space = spaces.Discrete(num_actions)
        self.observation_space = spaces.Dict(
            {
                **inner_space.spaces,
                "action_mask": spaces.Box(0, 1, (num_actions,), np.int8),
                "candidates": spaces.Box(
                    0, 1, (num_candidates, len(CANDIDATE_FEATURES)), np.float32
                ),
                "menu": spaces.Box(0, 1, (len(MENU_FEATURES),), np.float32),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; see `CodingRepairEnv.reset`.

        Raises:
            InvalidArgumentError: The task is not in Python, or the snapshot has another menu.
        """
        state = self._menu_state(options)
        observation, info = self.env.reset(seed=seed, options=options)
        with closes_on_error(self._core):
            program = self._program(self._core.episode)
            menu = Menu(program, self._num_candidates, None if state is None else state["menu"])
            self._menu = menu
            return self._observe(menu, observation, info), info

    def step(self, action: Any) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Plays one action of the menu.

        Raises:
            EpisodeError: There is no running episode.
            InvalidArgumentError: The action is neither a number of the menu nor a `Stop`.
        """
        menu = self._running_menu
        inner_action = action if isinstance(action, Stop) else self._completion(menu, action)
        observation, reward, terminated, truncated, info = self.env.step(inner_action)
        if not isinstance(action, Stop):
            menu.note([m["content"] for m in info["messages"] if m["role"] == "tool"])
        return self._observe(menu, observation, info), reward, terminated, truncated, info

    def snapshot_state(self) -> dict[str, Any]:
        """Returns the state of the menu, for snapshots."""
        return {"num_candidates": self._num_candidates, "menu": self._running_menu.state()}

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the mask of the actions that have an effect now, shape (2 + K,); never all 0.

        Raises:
            EpisodeError: `reset` was not called yet.
        """
        return self._running_menu.mask()

    def _program(self, episode: Episode) -> CandidateProgram:
        if episode.task.language != "python":
            raise InvalidArgumentError(
                f"MenuActions needs tasks in Python, got {episode.task.task_id} in "
                f"{episode.task.language!r}; select Python tasks with task_ids"
            )
        return CandidateProgram(
            episode.task,
            episode.template,
            episode.config.sandbox.name,
            self._num_candidates,
            episode.discard_sandbox,
        )

    @property
    def _running_menu(self) -> Menu:
        if self._menu is None:
            raise EpisodeError("there is no episode yet; call reset first")
        return self._menu

    def _menu_state(self, options: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Returns the menu's state in the snapshot of the options; None without a snapshot."""
        snapshot = snapshot_in(options)
        if snapshot is None:
            return None
        state: Mapping[str, Any] | None = snapshot.state_of(self)
        if state is None or state["num_candidates"] != self._num_candidates:
            content = "no menu" if state is None else f"num_candidates={state['num_candidates']}"
            raise InvalidArgumentError(
                f"the snapshot must have num_candidates={self._num_candidates}, got {content}; "
                "take the snapshot of an env with the same MenuActions"
            )
        return state

    def _completion(self, menu: Menu, action: Any) -> Completion:
        # Stable-Baselines3 passes 0-dimensional arrays.
        number = action[()] if isinstance(action, np.ndarray) else action
        max_action = FIRST_CANDIDATE + self._num_candidates - 1
        if not is_integer(number) or not 0 <= number <= max_action:
            raise InvalidArgumentError(
                f"action must be an integer from 0 to {max_action} or a Stop, got {action!r}"
            )
        return Completion("", calls=menu.calls(int(number)))

    def _observe(
        self, menu: Menu, observation: Observation, info: Mapping[str, Any]
    ) -> Observation:
        turns, max_turns = info["budget"]["turns"], self._core.episode.bounds.max_turns
        turns_left = 1.0 if turns is None or max_turns is None else turns / max_turns
        return {
            **observation,
            "action_mask": menu.mask().astype(np.int8),
            "candidates": menu.candidate_features(),
            "menu": menu.features(turns_left),
        }
