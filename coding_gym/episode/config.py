"""The settings of an episode, created from JSON values, and written to snapshots and records."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from inspect import signature
from pathlib import PurePath
from typing import Any, Self

from coding_gym.arguments import check_arguments, positive_seconds, unknown_name
from coding_gym.episode.limits import MAX_TURNS, Limits
from coding_gym.errors import InvalidArgumentError
from coding_gym.grading import CHALLENGES
from coding_gym.sandbox import Sandbox, SandboxSpec, Snapshot, open_sandbox
from coding_gym.sandbox.options import SandboxOptions
from coding_gym.sandbox.protocol import DEFAULT_TIMEOUT_S
from coding_gym.task import Task
from coding_gym.tasks import load_tasks
from coding_gym.text.chat import get_chat
from coding_gym.text.tokenizers import DEFAULT_TOKENIZER, get_tokenizer
from coding_gym.tools import get_toolset
from coding_gym.tools.formats import check_format, system_prompt
from coding_gym.workspace import Template, TemplateStore, missing_programs

GRADINGS = ("hidden", "cached", "none")
"""The values of ``grading``, which `EpisodeConfig.from_config` documents."""

_template_store = cache(TemplateStore)  # one per backend and process


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeConfig:
    """The settings of episodes, and their tasks; `from_config` reads JSON values.

    Attributes:
        tasks: The tasks; an `Episode` can have another task.
        source: The name of the source of the tasks, for records; "" if the tasks are rows.
        toolset: Name of the toolset.
        tokenizer: Name of the tokenizer, which counts tokens and encodes plain replies.
        tool_format: The format of tool calls.
        limits: The upper bounds of an episode.
        sandbox: The options of the sandbox.
        command_timeout_s: Time limit of one command in seconds.
        grading: One of `GRADINGS`.
        challenge: One of `CHALLENGES`: whether grading stops at the first wrong result, or runs
            all tests; see `coding_gym.grading.grade`.

    Raises:
        InvalidArgumentError: A limit counts tokens, and the tokenizer has no chat template.
    """

    tasks: tuple[Task, ...] = field(default=(), repr=False)
    source: str = ""
    toolset: str = "nano"
    tokenizer: str = DEFAULT_TOKENIZER
    tool_format: str = "auto"
    limits: Limits = field(default_factory=Limits)
    sandbox: SandboxOptions = field(default_factory=SandboxOptions)
    command_timeout_s: float = DEFAULT_TIMEOUT_S
    grading: str = "hidden"
    challenge: str = "resolved"

    def __post_init__(self) -> None:
        """Raises InvalidArgumentError for limits that the tokenizer cannot count."""
        if self.limits.counts_tokens:
            schemas = get_toolset(self.toolset).schemas
            get_chat(get_tokenizer(self.tokenizer), schemas, self.tool_format)

    @classmethod
    def from_config(
        cls,
        *,
        tasks: str | Sequence[Any] = "bundled",
        task_ids: str | Sequence[str] | None = None,
        split: str | Sequence[str] | None = None,
        toolset: str = "nano",
        tool_format: str = "auto",
        tokenizer: str = DEFAULT_TOKENIZER,
        max_turns: int | None = MAX_TURNS,
        limits: Mapping[str, Any] | None = None,
        sandbox: str | Mapping[str, Any] = "auto",
        command_timeout_s: float = DEFAULT_TIMEOUT_S,
        grading: str = "hidden",
        challenge: str = "resolved",
        **unknown: Any,
    ) -> Self:
        """Returns a config from JSON values.

        The source of the tasks is read once per process and shared by all configs.

        Args:
            tasks: ``"bundled"``, another source of `load_tasks`, or a list of rows.
            task_ids: The ids of the tasks to use; all tasks by default.
            split: The splits of the tasks to use, such as ``"train"``; all splits by default.
            toolset: The name of the toolset, such as ``"nano"``.
            tool_format: The format of calls, one of `coding_gym.tools.formats.TOOL_FORMATS`:
                ``"auto"`` detects the format. The system prompt explains all formats except
                ``"auto"``, ``"openai"`` and ``"template"``.
            tokenizer: A tokenizer's name; see `coding_gym.text.tokenizers.get_tokenizer`.
            max_turns: Maximum number of actions per episode, the same as
                ``limits={"max_turns": ...}``; None for no limit.
            limits: Upper bounds of an episode: fields of `coding_gym.episode.Limits` by name, such
                as ``{"max_tool_calls": 30, "max_seconds": 600}``.
            sandbox: ``"auto"``, a backend's name, or a mapping with any of ``name``, ``shell``
                (``"fresh"`` or ``"persistent"``), ``image``, and ``limits`` (fields of
                `coding_gym.sandbox.SandboxLimits` by name).
            command_timeout_s: Time limit of one command in seconds.
            grading: ``"hidden"``: the hidden tests grade every episode. ``"cached"``: they grade
                each patch of a task once per process; later episodes with this patch have the same
                grade. This value is for policies that choose among few patches (`MenuActions`); a
                policy that writes code could repeat a patch that was resolved by luck. ``"none"``:
                no tests run, the reward is 0 except for parts of wrappers; tasks need no tests.
            challenge: The tests run in two versions; see `coding_gym.grading.grade`.
                ``"resolved"``: grading stops after the first version with a wrong result, and the
                grade omits tests whose result depends on the random draw. ``"passed"``: the grade
                has every test, as rewards of single tests in `ShapedReward` require.
            **unknown: Any other argument; raises an error that suggests the closest name.

        Raises:
            InvalidArgumentError, UnknownNameError, UnknownTaskError, InvalidTaskError: An argument
                cannot be used.
        """
        check_arguments("episode", unknown, argument_names())
        policy_tokenizer = get_tokenizer(tokenizer)
        check_format(tool_format, get_toolset(toolset).schemas, policy_tokenizer)
        if grading not in GRADINGS:
            raise unknown_name("grading", grading, GRADINGS)
        if challenge not in CHALLENGES:
            raise unknown_name("challenge", challenge, CHALLENGES)
        return cls(
            toolset=toolset,
            tool_format=tool_format,
            tokenizer=policy_tokenizer.name,
            limits=Limits.parse(limits, max_turns),
            tasks=load_tasks(tasks, task_ids=task_ids, split=split, needs_tests=grading != "none"),
            source=tasks if isinstance(tasks, str) else "",
            sandbox=SandboxOptions.parse(sandbox),
            command_timeout_s=positive_seconds("command_timeout_s", command_timeout_s),
            grading=grading,
            challenge=challenge,
        )

    def task_of(self, row: Task | Mapping[str, Any]) -> Task:
        """Returns the task of a row, with the same checks as for the tasks of the source.

        Raises:
            InvalidTaskError: The row is malformed, or its patches cannot be graded.
        """
        return load_tasks([row], needs_tests=self.is_graded)[0]

    def open(
        self,
        task: Task,
        change: Callable[[SandboxSpec], SandboxSpec] = lambda spec: spec,
        files: Snapshot | None = None,
    ) -> tuple[Sandbox, Template]:
        """Opens a sandbox with a task's base tree; the first call builds the template.

        Args:
            task: The task.
            change: Converts the template's spec to the spec of this sandbox; graders' sandboxes use
                the template's spec.
            files: The changed files to restore, from the snapshot of another episode.

        Returns:
            The open sandbox, and the task's template, whose spec has the options of ``sandbox``.

        Raises:
            InvalidArgumentError: The image in ``sandbox`` lacks a required program.
        """
        template = self.template(task)
        backend = files.backend if files else self.sandbox.name  # a snapshot fits one backend
        sandbox = open_sandbox(change(template.spec), backend=backend, snapshot=files)
        try:
            if self.sandbox.image and not files and (problem := missing_programs(sandbox)):
                raise InvalidArgumentError(f"the image {self.sandbox.image!r} {problem}")
        except BaseException:
            sandbox.close()
            raise
        return sandbox, template

    def template(self, task: Task) -> Template:
        """Returns a task's template with the options of ``sandbox``; the first call builds it."""
        return _template_store(self.sandbox.name).get(task).with_options(self.sandbox)

    @property
    def is_graded(self) -> bool:
        """Whether the hidden tests run at the end of an episode."""
        return self.grading != "none"

    @property
    def system_prompt(self) -> str:
        """The first message of an episode's chat."""
        toolset, keeps_shell = get_toolset(self.toolset), self.sandbox.keeps_shell
        return system_prompt(toolset, self.tool_format, keeps_shell=keeps_shell)

    def settings(self, task: Task) -> dict[str, Any]:
        """Returns the settings of an episode for its record, as JSON values.

        Toolset and tokenizer are not included, because they are fields of the trajectory.
        """
        return {
            "tasks": self.source,
            "task_digest": task_digest(task),
            "tool_format": self.tool_format,
            "limits": asdict(self.limits),
            "sandbox": asdict(self.sandbox),
            "command_timeout_s": self.command_timeout_s,
            **({} if self.grading == "hidden" else {"grading": self.grading}),
            **({} if self.challenge == "resolved" else {"challenge": self.challenge}),
        }


def argument_names() -> list[str]:
    """Returns the names of the arguments of `EpisodeConfig.from_config`."""
    return sorted(signature(EpisodeConfig.from_config).parameters.keys() - {"unknown"})


def task_digest(task: Task) -> str:
    """Returns a digest of a task's problem, patches, tests and environment.

    The digest uses only the file name of an image, so copies in other folders have equal digests.
    """
    parts: list[Any] = [
        task.base_commit,
        task.problem_statement,
        task.gold_patch,
        task.test_patch,
        [*task.fail_to_pass, "", *task.pass_to_pass],
    ]
    is_path = task.image.startswith(("/", "~", "."))
    image = PurePath(task.image).name if is_path else task.image
    environment = [task.interpreter, image, task.image_path, *task.install_commands]
    if environment != ["base", "", ""]:  # digests in older records lack the default environment
        parts.append(environment)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
