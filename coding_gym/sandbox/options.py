"""Options of an episode's sandbox, parsed from a backend's name or a mapping."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from coding_gym.arguments import check_arguments, unknown_name
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.select import get_backend
from coding_gym.sandbox.spec import SHELLS, SandboxLimits, SandboxSpec, Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """The differences between an episode's sandbox and its template's.

    Attributes:
        name: A backend's name, or ``"auto"``.
        shell: ``SandboxSpec.shell``; graders always use a fresh shell.
        image: ``SandboxSpec.image``; "" for the template's image.
        limits: Fields of `SandboxLimits` that differ from the template's, by name.

    Raises:
        InvalidArgumentError, UnknownNameError: A value is invalid; the message names it.
    """

    name: str = "auto"
    shell: Shell = "fresh"
    image: str = ""
    limits: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("name", "image"):
            value: object = getattr(self, name)
            if not isinstance(value, str):
                raise InvalidArgumentError(f"sandbox {name} must be a string, got {value!r}")
        if self.name != "auto":
            get_backend(self.name)
        if self.shell not in SHELLS:
            raise unknown_name("sandbox shell", self.shell, SHELLS)
        object.__setattr__(self, "limits", _checked_limits(self.limits))

    @classmethod
    def parse(cls, value: Any) -> Self:
        """Returns the options that an argument ``sandbox`` describes.

        Args:
            value: A backend's name, or a JSON-native mapping with any of ``name``, ``shell``,
                ``image`` and ``limits``, which maps fields of `SandboxLimits` to numbers.

        Raises:
            InvalidArgumentError, UnknownNameError: As the constructor, or the type is invalid.
        """
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, Mapping):
            raise InvalidArgumentError(
                "sandbox must be a backend's name or a mapping such as "
                f'{{"name": "auto", "shell": "persistent"}}, got {value!r}'
            )
        check_arguments("sandbox", value, (option.name for option in fields(cls)))
        return cls(**value)

    @property
    def keeps_shell(self) -> bool:
        """Whether a command starts with the shell state of the previous command."""
        return self.shell == "persistent"

    def applied(self, spec: SandboxSpec) -> SandboxSpec:
        """Returns a template's spec with these options."""
        changes: dict[str, Any] = dict(self.limits)
        limits = replace(spec.limits, **changes)
        return replace(spec, shell=self.shell, image=self.image or spec.image, limits=limits)


def _checked_limits(limits: object) -> dict[str, int]:
    if not isinstance(limits, Mapping):
        raise InvalidArgumentError(
            f'sandbox limits must be a mapping such as {{"num_processes": 64}}, got {limits!r}'
        )
    check_arguments("sandbox limits", limits, (limit.name for limit in fields(SandboxLimits)))
    checked = SandboxLimits(**limits)
    return {name: getattr(checked, name) for name in limits}
