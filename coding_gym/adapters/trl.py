"""TRL's ``GRPOTrainer(environment_factory=…)``: every rollout repairs code in a sandbox of its own.

    tokenizer = AutoTokenizer.from_pretrained(model)
    trainer = GRPOTrainer(
        model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(prompt_rows(split="train")),
        environment_factory=environment_factory(processing_class=tokenizer),
    )

TRL makes a tool of every public method of an environment's class but ``reset`` and ``get_reward``;
hence the class made here, which has one method per tool and nothing else. It plays the Gymnasium
environment and has no rules of its own. TRL itself is not imported.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

from coding_gym.adapters.session import Session
from coding_gym.adapters.trl_rollout import FORMAT, Rollout, rollout_class
from coding_gym.arguments import unknown_name
from coding_gym.episode.config import GRADINGS
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.tasks import load_tasks
from coding_gym.text import CONTROL_TOKENS, control_tokens
from coding_gym.tools import get_toolset

INSTRUCTION = (
    "Repair the problem that this report describes. A reply without a tool call ends the work.\n\n"
)


def environment_factory(
    *,
    processing_class: Any = None,
    wrappers: Sequence[Mapping[str, Any]] = (),
    **env_kwargs: Any,
) -> Callable[[], Rollout]:
    """Returns a value for ``GRPOTrainer(environment_factory=…)``; it pickles.

    Args:
        processing_class: The trainer's tokenizer or processor, whose control tokens are broken in
            texts from the sandbox; without it, `CONTROL_TOKENS` are.
        wrappers: Wrappers of the environment, innermost first, as
            ``{"name": "ShapedReward", "kwargs": {…}}``; a name is one of `coding_gym.wrappers`
            or ``"module:Class"``.
        **env_kwargs: Arguments of ``CodingRepair-v0``, except ``tool_format``.

    Raises:
        UnknownNameError: There is no such toolset.
        InvalidArgumentError: ``tool_format`` is given, ``processing_class`` is a name, or a tool
            cannot be a method.
    """
    if "tool_format" in env_kwargs:
        raise InvalidArgumentError("TRL reads the calls of its policy itself; omit tool_format")
    if isinstance(processing_class, str):
        raise InvalidArgumentError(
            f"processing_class must be the tokenizer, got its name {processing_class!r}; give "
            "AutoTokenizer.from_pretrained(...)"
        )
    toolset = get_toolset(env_kwargs.get("toolset", "nano"))
    rollout_class(toolset.name)
    tokens = CONTROL_TOKENS if processing_class is None else control_tokens(processing_class)
    return partial(_make, toolset.name, tokens, deepcopy(list(wrappers)), deepcopy(env_kwargs))


def reward_part(name: str) -> Callable[..., list[float | None]]:
    """Returns a reward function for ``GRPOTrainer(reward_funcs=…)``: one part of the reward.

    TRL logs it as ``rewards/NAME/mean``. The environment's own reward contains the part already, so
    give it a weight of 0 in ``reward_weights``, or another one to count it more.

    Args:
        name: A key of ``info["reward_parts"]``, such as ``"resolved"`` or ``"patch_similarity"``.
    """

    def part(*, environments: Sequence[Rollout], **_: Any) -> list[float | None]:
        return [environment._part(name) for environment in environments]

    part.__name__ = name
    return part


def prompt_rows(
    tasks: str | Path | Sequence[Any] = "bundled",
    *,
    task_ids: str | Sequence[str] | None = None,
    split: str | None = None,
    toolset: str = "nano",
    sandbox: str | Mapping[str, Any] = "auto",
    grading: str = "hidden",
) -> list[dict[str, Any]]:
    """Returns the rows of a ``train_dataset``: a chat ``prompt`` and a ``task_id`` per task.

    The report itself is not in the row: TRL appends what ``reset`` returns to the last message.

    Args:
        tasks: As for ``CodingRepair-v0``; give the same to `environment_factory`.
        task_ids: Only these tasks.
        split: Only tasks of this split.
        toolset: The toolset whose system prompt is the first message.
        sandbox: As for ``CodingRepair-v0``; the system prompt depends on its ``shell``.
        grading: As for ``CodingRepair-v0``; with ``"none"`` tasks need no tests.

    Raises:
        UnknownTaskError, InvalidTaskError, UnknownNameError: As `load_tasks` and `get_toolset` do.
    """
    keeps_shell = SandboxOptions.parse(sandbox).keeps_shell
    prompt = [
        {"role": "system", "content": get_toolset(toolset).prompt(keeps_shell=keeps_shell)},
        {"role": "user", "content": INSTRUCTION},
    ]
    if grading not in GRADINGS:
        raise unknown_name("grading", grading, GRADINGS)
    needs_tests = grading != "none"
    chosen = load_tasks(tasks, task_ids=task_ids, split=split, needs_tests=needs_tests)
    return [{"prompt": deepcopy(prompt), "task_id": task.task_id} for task in chosen]


def _make(
    toolset: str,
    tokens: Sequence[str],
    wrappers: Sequence[Mapping[str, Any]],
    env_kwargs: Mapping[str, Any],
) -> Rollout:
    session = Session(
        wrappers=wrappers, control_tokens=tokens, **{**env_kwargs, "tool_format": FORMAT}
    )
    return rollout_class(toolset)(session)
