"""The errors of models, and requests that a model's server refuses."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import coding_gym
from coding_gym.errors import CodingGymError


class ModelError(CodingGymError, RuntimeError):
    """A model or its server failed, so the attempt has no verdict.

    Args:
        problem: The message.
        error_class: One of `coding_gym.trajectory.ERROR_CLASSES`.
    """

    def __init__(self, problem: str, error_class: str = "model") -> None:
        super().__init__(problem)
        self.error_class = error_class


class RequestRefusedError(ModelError):
    """The server or the local model refuses this request as invalid."""


class PromptTooLongError(ModelError):
    """The prompt is longer than the model's context; the episode ends and is graded."""


TOKEN_FLAGS: Mapping[str, int] = {
    "logprobs": True,
    "top_logprobs": 1,  # by default llama.cpp sends twenty alternatives of each token
    "return_token_ids": True,  # vLLM, SGLang
    "return_prompt_token_ids": True,  # SGLang
    "return_meta_info": True,  # SGLang before `return_token_ids`
}
"""Fields of a request that make servers return token ids and log-probabilities."""

REFUSALS = (400, 401, 402, 403, 404, 405, 413, 422)  # statuses that a retry would not change
INVALID = (400, 413, 422)  # statuses of invalid requests
# Marks of a prompt longer than the context, with any status: error codes of OpenAI and GitHub, and
# the text of llama.cpp, which has the status 400 or 500.
_OVERFLOW_MARKS = (
    "context_length_exceeded",
    "model_max_prompt_tokens_exceeded",
    "exceeds the available context size",
)
# Messages of servers that have no error code for a prompt longer than the context.
_OVERFLOW_TEXTS = (
    r"context[ _]?(length|window|size|limit)",  # vLLM, SGLang, DeepSeek, Mistral, MiniMax, Ollama
    r"(prompt|input)( \([^)]*\))? (is|tokens) too long",  # Anthropic, Bedrock, vLLM, Qianfan
    r"input tokens?( count| exceed| \d+ cannot exceed)",  # Gemini, Vertex, Titan, Azure, watsonx
    r"total text bytes",  # Bedrock
    r"maximum prompt length",  # xAI
    r"(prompt|input) length.*exceed",  # TensorRT-LLM, SGLang
    r"model input length limit",  # MLC
    r"prompt exceeds max length",  # Zhipu
    r"exceed max message tokens",  # Ark
    r"reduce the length of the (messages|prompt)",  # Groq
    r"exceeded model token limit",  # Moonshot
    r"range of input length",  # DashScope
    r"inputs`? (tokens \+|must have less than \d+ tokens)",  # TGI, Together
    r"longer than the maximum model length",  # vLLM
    r"prompt token count.*exceeds",  # GitHub
    r"too many tokens.*(prompt|size limit)",  # Cohere
)
_OVERFLOW = re.compile("|".join(_OVERFLOW_TEXTS), re.IGNORECASE | re.DOTALL)
_REPLY_LIMIT = re.compile(  # must not match the address "/chat/completions"
    r"max_(completion_|new_)?tokens|(in|for) the (completion|output)|completion[ _]tokens",
    re.IGNORECASE,
)
_RENAMED = re.compile(r"max_completion_tokens.*instead", re.IGNORECASE | re.DOTALL)
_MIN_REPLY_TOKENS = 16
_SECRET = re.compile("KEY|TOKEN|SECRET|PASSWORD")  # in names of environment variables


def model_error(status: int, problem: str) -> ModelError:
    """Returns a `PromptTooLongError`, a `RequestRefusedError` or another `ModelError`.

    Args:
        status: The HTTP status.
        problem: The text of the response.
    """
    has_mark = any(mark in problem for mark in _OVERFLOW_MARKS)
    if has_mark or (status in INVALID and _OVERFLOW.search(problem)):
        return PromptTooLongError(problem)
    if status in INVALID:
        return RequestRefusedError(problem, "refused")
    return ModelError(problem, "refused" if status in REFUSALS else "model")


def accepted_request(request: Mapping[str, Any], problem: str) -> dict[str, Any] | None:
    """Returns a refused request in a form that the server may accept.

    Optional fields that the refusal names are removed. If the refusal names the reply's length,
    ``max_tokens`` is halved: the prompt and a shorter reply may fit into the context.

    Args:
        request: The body that was sent.
        problem: The text of the refusal.

    Returns:
        The changed body; None if no change applies.
    """
    body = dict(request)
    if "max_tokens" in body and _RENAMED.search(problem):
        limit = body.pop("max_tokens")
        return {**body, "max_completion_tokens": limit}
    optional_fields = [name for name in (*TOKEN_FLAGS, "seed") if name in body]
    refused_fields = [name for name in optional_fields if re.search(rf"\b{name}\b", problem)]
    if not refused_fields and "extra" in problem.lower():  # "Extra inputs are not permitted"
        refused_fields = [name for name in optional_fields if name in TOKEN_FLAGS]
    if refused_fields:
        return {name: value for name, value in body.items() if name not in refused_fields}
    for name in ("max_tokens", "max_completion_tokens"):
        limit = body.get(name) or 0
        if limit > _MIN_REPLY_TOKENS and _REPLY_LIMIT.search(problem):
            return {**body, name: max(limit // 2, _MIN_REPLY_TOKENS)}
    return None


def public_text(text: str) -> str:
    """Returns an error's text without API keys and folders of this machine, for records."""
    for name, value in os.environ.items():
        if len(value) >= 8 and _SECRET.search(name):
            text = text.replace(value, "[key]")
    for folder in sorted(sys.path, key=len, reverse=True):  # folders in a traceback
        text = text.replace(f'File "{folder}/', 'File "')
    text = text.replace(f"{Path(coding_gym.__file__).parent}/", "coding_gym/")
    home = os.environ.get("HOME", "")
    return text.replace(f"{home}/", "~/") if len(home) > 1 else text
