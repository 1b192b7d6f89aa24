"""TRL's ``GRPOTrainer(environment_factory=…)``: each rollout plays an episode in a sandbox.

    tokenizer = AutoTokenizer.from_pretrained(model)
    trainer = GRPOTrainer(
        model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(prompt_rows(split="train")),
        environment_factory=environment_factory(processing_class=tokenizer),
    )

In TRL every public method of an environment's class, except ``reset`` and ``get_reward``, is a tool
of the model. Classes of rollouts therefore have one public method per tool and no others. This
module does not import TRL.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cache, partial
from typing import Any

from coding_gym.action import Completion
from coding_gym.adapters.session import Session, refuse_sampler, task_options
from coding_gym.calls import ToolCall
from coding_gym.episode import EpisodeConfig
from coding_gym.errors import EpisodeError, InvalidArgumentError, SandboxUnavailableError
from coding_gym.text import CONTROL_TOKENS, control_tokens
from coding_gym.tools import get_toolset
from coding_gym.tools.functions import method_from_schema

INSTRUCTION = (
    "Repair the problem that this report describes. A reply without a tool call ends the work.\n\n"
)

_FORMAT = "auto"  # TRL parses the calls, and the model's chat template explains the format


class Rollout:
    """Plays rollouts one after another; TRL reuses the object and never closes it.

    `rollout_class` returns a subclass with one method per tool.

    Args:
        session: Plays the episodes.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._has_opened = False

    @property
    def info(self) -> Mapping[str, Any]:
        """The environment's last info, for reward functions; the final info names hidden tests."""
        return self._session.info

    def reset(self, **row: Any) -> str:
        """Starts an episode and returns the issue; the previous episode is discarded.

        After most infrastructure failures the text is a notice and the rollout has no reward; an
        exception would stop the training.

        Args:
            **row: The columns of the dataset, with ``task_id`` or ``task`` (an object, or JSON
                text).

        Raises:
            InvalidArgumentError: The row has neither or both of the columns, or bad JSON.
            UnknownTaskError, InvalidTaskError: The task is unknown or malformed.
            SandboxUnavailableError: This machine cannot run the sandbox, and no earlier reset
                opened a sandbox.
        """
        self._session.start(**task_options(row))
        failure = self._session.failure
        if isinstance(failure, SandboxUnavailableError) and not self._has_opened:
            raise failure
        self._has_opened = self._has_opened or failure is None
        return self._session.text

    def get_reward(self) -> float | None:
        """Returns the sum of the episode's rewards; a running episode is ended and graded first.

        The reward is None after an infrastructure failure, which leaves no valid reward.

        Raises:
            EpisodeError: No `reset` has started an episode.
        """
        self._session.finish("the trainer ended the rollout")
        return self._session.total_reward

    def _play(self, call: ToolCall) -> str:
        """Runs one tool call and returns its result; TRL displays raised errors to the model."""
        if self._session.ended:
            reason = self._session.info["stop_reason"]
            raise EpisodeError(f"the episode has ended ({reason}); reply without a tool call")
        self._session.step(Completion("", calls=[call]))
        return self._session.text


@cache
def rollout_class(toolset: str) -> type[Rollout]:
    """Returns the rollout class of a toolset, with one method for each tool.

    TRL uses the name of the class, ``CodingRepair_TOOLSET``, for its reward column.

    Raises:
        UnknownNameError: There is no such toolset.
        InvalidArgumentError: The name of a tool is private, or an attribute of `Rollout`.
    """
    methods = {}
    for schema in get_toolset(toolset).schemas:
        name = schema["function"]["name"]
        if hasattr(Rollout, name) or name.startswith("_"):
            raise InvalidArgumentError(
                f"TRL does not accept a tool named {name!r} (toolset {toolset!r}); rename the tool"
            )
        methods[name] = method_from_schema(schema, Rollout._play)
    return type(f"CodingRepair_{toolset}", (Rollout,), methods)


def environment_factory(
    *,
    processing_class: Any = None,
    wrappers: Sequence[Mapping[str, Any]] = (),
    **env_kwargs: Any,
) -> Callable[[], Rollout]:
    """Returns a picklable value for ``GRPOTrainer(environment_factory=…)``.

    Args:
        processing_class: The trainer's tokenizer or processor. Issues and results cannot contain
            the tokenizer's control tokens; for None, these tokens are `CONTROL_TOKENS`.
        wrappers: Wrappers of the environment, innermost first, as
            ``{"name": "ShapedReward", "kwargs": {…}}``; the name is a class of
            `coding_gym.wrappers` or ``"module:Class"``.
        **env_kwargs: Arguments of ``CodingRepair-v0``, except ``tool_format`` and ``sampler``.

    Raises:
        InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
            cannot be used, or a tool cannot be a method.
    """
    refuse_sampler(env_kwargs)
    _refuse_tool_format(env_kwargs)
    tokens = CONTROL_TOKENS if processing_class is None else control_tokens(processing_class)
    make = partial(_make, tokens, deepcopy(list(wrappers)), deepcopy(env_kwargs))
    make()._session.close()  # raises errors now, not in the trainer
    return make


def prompt_rows(tasks: Any = "bundled", **episode: Any) -> list[dict[str, Any]]:
    """Returns the rows of a ``train_dataset``: a chat ``prompt`` and a ``task_id`` per task.

    Rows contain no issue: TRL appends the issue, the result of ``reset``, to the last message.

    Args:
        tasks: As for ``CodingRepair-v0``; pass the same value to `environment_factory`.
        **episode: Further arguments of `EpisodeConfig.from_config`, such as ``split``; ``toolset``
            and ``sandbox`` change the system prompt; `environment_factory` needs the same values.

    Raises:
        InvalidArgumentError, UnknownTaskError, InvalidTaskError, UnknownNameError: An argument
            cannot be used.
    """
    _refuse_tool_format(episode)
    config = EpisodeConfig.from_config(tasks=tasks, tool_format=_FORMAT, **episode)
    system = {"role": "system", "content": config.system_prompt}
    prompt = [system, {"role": "user", "content": INSTRUCTION}]
    return [{"prompt": deepcopy(prompt), "task_id": task.task_id} for task in config.tasks]


def _refuse_tool_format(arguments: Mapping[str, Any]) -> None:
    if "tool_format" in arguments:
        raise InvalidArgumentError("TRL parses the calls of its policy; omit tool_format")


def _make(
    tokens: Sequence[str], wrappers: Sequence[Mapping[str, Any]], env_kwargs: Mapping[str, Any]
) -> Rollout:
    session = Session(
        wrappers=wrappers, control_tokens=tokens, **{**env_kwargs, "tool_format": _FORMAT}
    )
    return rollout_class(session.unwrapped.toolset.name)(session)
