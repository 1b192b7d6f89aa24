"""GEM: repair episodes as an environment of ``gem-llm``. Importing this needs the extra ``gem``.

    register()
    env = gem.make("coding_gym:Repair-v0", tasks="bundled", max_turns=30)
    observation, info = env.reset(seed=0)

GEM's environments have no options and no `close`: seeds choose the task, and the sandbox is closed
with the last reference to the environment.
"""

from typing import Any, Self

from coding_gym.adapters.session import Session
from coding_gym.envs.snapshot import snapshot
from coding_gym.optional import missing_extra

try:
    import gem
    from gem.core import Env
    from gem.envs.registration import ENV_REGISTRY
except ImportError as error:
    raise missing_extra("GEM", "gem") from error

ENV_ID = "coding_gym:Repair-v0"
"""The name of the environment for ``gem.make``."""


class RepairEnv(Env):
    """One repair episode after the other, from text to text.

    The observation at reset is the system prompt and the report; later ones are what tools reply.
    ``info`` has the fields of `Session.summary`, ``use_tool`` (whether the observation is a tool's
    reply, for GEM's chat templates) and, at reset, ``messages``.

    Args:
        seed: The seed of the first reset that is given none, as ``gem.make_vec`` sets it.
        **session: Arguments of `coding_gym.adapters.session.Session`: ``wrappers``,
            ``control_tokens``, and those of ``CodingRepair-v0``.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used.
    """

    def __init__(self, seed: int | None = None, **session: Any) -> None:
        super().__init__()
        self._seed, self._settings = seed, session
        self._session = Session(**session)

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode, dropping the last one; a seed chooses its task.

        GEM's own `reset` seeds Python's and NumPy's global generators; this one does not.
        """
        self._session.start(seed=self._seed if seed is None else seed)
        self._seed = None
        messages = self._session.messages
        text = "\n\n".join(message["content"] for message in messages)
        return text, {**self._info(), "messages": messages}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Plays one reply of the policy.

        Returns:
            The new text, the reward (0.0 where our own side failed: GEM has no mask), whether the
            policy ended the episode, whether a limit or our own side did, and the info.

        Raises:
            EpisodeError: There is no running episode.
        """
        session = self._session
        if session.failure is None:  # else it could not be opened
            session.step(action)
        truncated = session.ended and not session.terminated
        return session.text, session.reward or 0.0, session.terminated, truncated, self._info()

    def spawn(self, same_state: bool = False, **kwargs: Any) -> Self:
        """Returns another environment with the same arguments.

        Args:
            same_state: Continue from this one's running episode, in a sandbox of its own.
            **kwargs: Arguments to replace, where the state is not the same.

        Raises:
            EpisodeError: The state is to be the same, and no episode is running.
            InvalidArgumentError: The state is to be the same, and a budget is not.
            SandboxError: The sandbox died.
        """
        other = type(self)(**{"seed": self._seed, **self._settings, **kwargs})
        if same_state:
            other._session.start(snapshot=snapshot(self._session.env))
        return other

    def sample_random_action(self) -> str:
        """Returns a random tool call in the environment's tool format."""
        return str(self._session.env.action_space.sample())

    def _info(self) -> dict[str, Any]:
        messages = self._session.info["messages"]
        is_tool = bool(messages) and messages[-1]["role"] == "tool"
        return {**self._session.summary(), "use_tool": is_tool}


def register() -> None:
    """Makes the environment known to GEM in this process; idempotent."""
    if ENV_ID not in ENV_REGISTRY:
        gem.register(ENV_ID, f"{RepairEnv.__module__}:{RepairEnv.__name__}")
