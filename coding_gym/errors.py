"""The exceptions of this package.

    CodingGymError
    ├── InvalidTaskError        ValueError    a task row or folder that cannot be used as written
    ├── UnknownTaskError        LookupError   a task id or task source that does not exist
    ├── UnknownNameError        LookupError   an unknown name of a toolset, tokenizer, sandbox, …
    ├── InvalidArgumentError    ValueError    an invalid argument of the caller
    ├── EpisodeError            ResetNeeded   a call in the wrong order, such as step before reset
    ├── MissingDependencyError  ImportError   an extra or a program that is not installed
    ├── PatchError              ValueError    a patch that cannot be read or does not apply
    ├── TokenizerError          ValueError    a vocabulary that cannot be loaded
    └── InfrastructureError     RuntimeError  a failure that the policy did not cause
        ├── SandboxError                      a sandbox could not be opened, or died
        │   └── SandboxUnavailableError       this machine cannot run the backend; has a remedy
        ├── TemplateError                     a base tree or environment could not be built
        └── GradingError                      the grader failed

`coding_gym.agents` adds RuntimeErrors: ``HarnessError``, ``ModelError``, and the subclasses of
ModelError, ``RequestRefusedError`` and ``PromptTooLongError``. `coding_gym.vector.ray_nodes` adds a
SandboxError for a lost node of a cluster: ``LostNodeError``.

Each exception has one argument, the message, so Gymnasium can raise a copy in another process.
"""

from gymnasium.error import ResetNeeded


class CodingGymError(Exception):
    """Base class of the exceptions of this package."""


class InvalidTaskError(CodingGymError, ValueError):
    """A task row or folder cannot be used as written; the message names row, field and value."""


class UnknownTaskError(CodingGymError, LookupError):
    """No task has this id, or no task source has this name."""


class UnknownNameError(CodingGymError, LookupError):
    """No toolset, tokenizer, agent or other registered object has this name."""


class InvalidArgumentError(CodingGymError, ValueError):
    """The caller passed an invalid argument."""


class EpisodeError(CodingGymError, ResetNeeded):
    """A call in the wrong order, such as ``step`` before ``reset`` or after ``close``."""


class MissingDependencyError(CodingGymError, ImportError):
    """An optional package or a program is not installed; the message says how to install it."""


class PatchError(CodingGymError, ValueError):
    """A patch cannot be read, or does not apply."""


class InfrastructureError(CodingGymError, RuntimeError):
    """A failure not caused by the policy; it truncates the episode and sets ``mask_sample``."""


class SandboxError(InfrastructureError):
    """A sandbox could not be opened, or died."""


class SandboxUnavailableError(SandboxError):
    """This machine cannot run the requested sandbox; the message ends with the remedy, if any.

    Attributes:
        problem: The message without the remedy.
        remedy: The remedy; "" if unknown.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}; {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy


class TemplateError(InfrastructureError):
    """A task's base tree or environment could not be built."""


class GradingError(InfrastructureError):
    """The grader failed, so there is no verdict on the patch."""


class TokenizerError(CodingGymError, ValueError):
    """A tokenizer's vocabulary cannot be loaded, usually because it needs a download."""
