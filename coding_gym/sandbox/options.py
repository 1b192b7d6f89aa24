"""Options of an episode's sandbox: a backend's name, or a mapping with more."""

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
        shell: ``SandboxSpec.shell``; graders always use fresh ones.
        image: ``SandboxSpec.image``; "" leaves the template's.
        limits: Fields of `SandboxLimits` that differ from the template's, by name.

    Raises:
        InvalidArgumentError, UnknownNameError: A value cannot be used; the message names it.
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
        object.__setattr__(self, "limits", _checked(self.limits))

    @classmethod
    def parse(cls, value: Any) -> Self:
        """Returns the options of an argument ``sandbox``.

        Args:
            value: A backend's name, or a JSON-native mapping with any of ``name``, ``shell``,
                ``image`` and ``limits``, which maps fields of `SandboxLimits` to numbers.

        Raises:
            InvalidArgumentError, UnknownNameError: As the constructor; or the type is wrong.
        """
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, Mapping):
            raise InvalidArgumentError(
                "sandbox must be a backend's name or a mapping such as "
                f'{{"name": "auto", "shell": "persistent"}}, got {value!r}'
            )
        check_arguments("sandbox", value, (one.name for one in fields(cls)))
        return cls(**value)

    @property
    def keeps_shell(self) -> bool:
        """Whether the state of the shell is kept between commands."""
        return self.shell == "persistent"

    def applied(self, spec: SandboxSpec) -> SandboxSpec:
        """Returns a template's spec with these options."""
        changed: dict[str, Any] = dict(self.limits)
        limits = replace(spec.limits, **changed)
        return replace(spec, shell=self.shell, image=self.image or spec.image, limits=limits)


def _checked(limits: object) -> dict[str, int]:
    if not isinstance(limits, Mapping):
        raise InvalidArgumentError(
            f'sandbox limits must be a mapping such as {{"num_processes": 64}}, got {limits!r}'
        )
    check_arguments("sandbox limits", limits, (one.name for one in fields(SandboxLimits)))
    checked = SandboxLimits(**limits)
    return {name: getattr(checked, name) for name in limits}
