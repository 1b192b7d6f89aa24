"""Plug-in of tiktoken: the wheel puts this file at ``tiktoken_ext/coding_gym.py``.

With it ``tiktoken.get_encoding("coding_gym_16k")`` works in any program. tiktoken imports every
plug-in to look up any name, so this one imports nothing until it is called.
"""

from typing import Any


def coding_gym_16k() -> dict[str, Any]:
    """Returns the arguments of ``tiktoken.Encoding`` for the bundled vocabulary."""
    from coding_gym.text.tokenizers import bundled_encoding

    return bundled_encoding()


ENCODING_CONSTRUCTORS = {"coding_gym_16k": coding_gym_16k}
