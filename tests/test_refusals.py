"""Refusals with the error messages of model servers, and replies with malformed fields."""

import asyncio
import math
import socket
from typing import Any
from unittest.mock import Mock

import pytest
from model_server import Answer, ChatServer, message

from coding_gym.action import Completion
from coding_gym.agents.model_client import OpenAIClient, get_client
from coding_gym.agents.model_errors import (
    ModelError,
    PromptTooLongError,
    RequestRefusedError,
    model_error,
)
from coding_gym.agents.model_reply import read_reply
from coding_gym.calls import ModelCall, ToolCall
from coding_gym.errors import InvalidArgumentError

REQUEST = {"model": "tiny", "messages": [], "max_tokens": 4096, "seed": 1}

# Error messages by server; the numbers are invented.
OVERFLOWS = {
    "OpenAI": "This model's maximum context length is 8192 tokens. However, your messages resulted "
    "in 8545 tokens. Please reduce the length of the messages.",
    "OpenAI's code": '{"code": "context_length_exceeded", "message": "Bad input"}',
    "Anthropic": "prompt is too long: 213462 tokens > 200000 maximum",
    "Anthropic's sum": "input length and `max_tokens` exceed context limit: 9000 + 99 > 9001",
    "Bedrock, Titan": "Too many input tokens. Max input tokens: 8192, request input token count: 9",
    "Gemini": "The input token count (1196265) exceeds the maximum number of tokens allowed "
    "(1048575).",
    "Vertex": "the input token count is 40000 but model only supports up to 32768.",
    "Moonshot": "Invalid request: Your request exceeded model token limit: 262144",
    "Z.ai": "model_context_window_exceeded",
    "Mistral": "Prompt contains 9 tokens, too large for model with 8 maximum context length",
    "Cohere": "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "GitHub's code": "model_max_prompt_tokens_exceeded",
    "vLLM": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "vLLM, images": "The prompt (total length 5000) is too long to fit into the model.",
    "SGLang": "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    "TGI": "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
    "TGI's sum": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
    "TensorRT-LLM": "Prompt length (5000) exceeds maximum input length (4096).",
    "llama.cpp": "request (9412 tokens) exceeds the available context size (8192 tokens)",
    "Ollama": "prompt too long; exceeded max context length by 4 tokens",
    "LM Studio": "The number of tokens to keep from the initial prompt is greater than the context "
    "length.",
    "LiteLLM's proxy": "ContextWindowExceededError: the request is too large",
}
OTHERS = {
    "OpenAI's ids": "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string "
    "with maximum length 40, but got a string with length 41 instead.",
    "Groq's rate": "Request too large for this model on tokens per minute (TPM): Limit 6000",
    "TGI's fields": "Input validation error: `inputs` is required",
    "a wrong model": "The model `tiny` does not exist.",
    "arguments": "Invalid tool call arguments: Unterminated string",
    "a text": "Invalid input: the description of a tool is a string too long",
}


@pytest.mark.parametrize("text", OVERFLOWS.values(), ids=OVERFLOWS)
def test_a_full_context_is_recognised(text: str) -> None:
    assert type(model_error(400, text)) is PromptTooLongError


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_refusals_are_not_a_full_context(text: str) -> None:
    error = model_error(400, text)
    assert (type(error), error.error_class) == (RequestRefusedError, "refused")


def test_a_rate_limit_is_not_a_full_context() -> None:
    assert type(model_error(429, "too many tokens in the prompt")) is ModelError


def ask(refuse: Any, num_requests: int = 1) -> tuple[list[dict[str, Any]], Completion]:
    """Returns the requests and last reply of a server that sends the text of `refuse`, if any."""

    def answer(body: dict[str, Any]) -> Answer:
        problem = refuse(body)
        return Answer({"error": {"message": problem}}, 400) if problem else Answer(message("hi"))

    async def complete(client: OpenAIClient) -> Completion:
        try:
            replies = [await client.complete(REQUEST) for _ in range(num_requests)]
        finally:
            await client.close()
        return replies[-1]

    with ChatServer(answer) as server:
        reply = asyncio.run(complete(OpenAIClient(server.base_url, max_retries=0)))
        return server.requests, reply


@pytest.mark.parametrize(
    "problem",
    [
        "'max_tokens' is too large: this model's maximum context length is 4096",
        "However, you requested 4999 tokens (903 in the messages, 4096 in the completion).",
        "2000 in your prompt; 4096 for the completion",
    ],
)
def test_max_tokens_is_halved_until_the_server_accepts(problem: str) -> None:
    requests, _ = ask(lambda body: problem if body["max_tokens"] > 1000 else None)
    assert [body["max_tokens"] for body in requests] == [4096, 2048, 1024, 512]


def test_a_refusal_that_names_the_address_is_not_sent_again() -> None:
    bodies: list[Any] = []
    with pytest.raises(RequestRefusedError):
        ask(lambda body: bodies.append(body) or "Invalid request to /v1/chat/completions")
    assert len(bodies) == 1


def test_a_prompt_that_leaves_no_reply_is_too_long() -> None:
    with pytest.raises(PromptTooLongError):
        ask(lambda body: f"max_tokens {body['max_tokens']} exceeds the context length")


def test_max_completion_tokens_replaces_a_refused_max_tokens() -> None:
    text = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    requests, _ = ask(lambda body: text if "max_tokens" in body else None, 2)
    assert [body.get("max_completion_tokens") for body in requests] == [None, 4096, 4096]


def test_refused_fields_are_dropped_once(caplog: pytest.LogCaptureFixture) -> None:
    requests, _ = ask(lambda body: "seed is not supported" if "seed" in body else None, 3)
    assert ["seed" in body for body in requests] == [True, False, False, False]
    assert all(body["return_token_ids"] for body in requests)
    assert [record.args[1] for record in caplog.records if record.args] == ["seed"]


def test_an_error_in_a_successful_response_keeps_its_kind() -> None:
    overflow = {"error": {"code": "context_length_exceeded", "message": "too much"}}
    with pytest.raises(PromptTooLongError):
        read_reply(overflow)
    with pytest.raises(ModelError) as refused:
        read_reply({"error": {"code": 403, "message": "no"}})
    assert refused.value.error_class == "refused"


@pytest.mark.parametrize(
    "fields",
    [
        {"token_ids": None, "logprobs": None},
        {"token_ids": [None, 2], "logprobs": {"content": [{"logprob": None}, {}]}},
        {"token_ids": "12", "meta_info": None},
        {"meta_info": {"output_token_logprobs": [[-0.5, None, "x"]]}},
        {"meta_info": {"output_token_logprobs": [None, [-0.5]]}},
        {"meta_info": {"output_token_logprobs": 5}},
        {"logprobs": {"content": 5}},
        {"token_ids": [2], "logprobs": {"content": [{"logprob": math.nan}]}},
    ],
)
def test_ids_that_are_not_numbers_are_ignored(fields: dict[str, Any]) -> None:
    data = message("hi")
    data["choices"][0].update(fields)
    reply = read_reply(data)
    assert (reply, reply.logprobs) == ("hi", None)
    assert reply.model_call is not None
    assert reply.model_call.prompt_ids == ()


@pytest.mark.parametrize("content", [5, {"text": "x"}, [{"text": 5}], [None]])
def test_content_that_is_no_text_is_empty(content: Any) -> None:
    assert read_reply(message() | {"choices": [{"message": {"content": content}}]}) == ""


@pytest.mark.parametrize("number", ["9", math.inf, True, -1, [3]])
def test_counts_that_are_no_numbers_are_unknown(number: Any) -> None:
    call = read_reply(message() | {"usage": {"prompt_tokens": number, "cost": number}}).model_call
    assert call is not None
    assert (call.prompt_tokens, call.cost) == (None, None)


@pytest.mark.parametrize(
    "address", ["https://:hunter2@host/v1", "https://user@host/v1", "https://host/v1?key=hunter2"]
)
def test_an_address_with_a_secret_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with pytest.raises(InvalidArgumentError, match="must not contain a user, a password"):
        OpenAIClient(address)


@pytest.mark.parametrize("entry", [None, 5, {"id": "a", "function": None}])
def test_a_call_without_a_function_is_a_format_error(entry: Any) -> None:
    data = message()
    data["choices"][0]["message"]["tool_calls"] = [entry]
    (call,) = read_reply(data).calls  # type: ignore[attr-defined]
    assert isinstance(call, ToolCall)
    assert (call.name, bool(call.error)) == ("", True)


def test_fractions_of_tokens_are_read_as_integers() -> None:
    reply = {**message("hi"), "usage": {"prompt_tokens": 12.5, "completion_tokens": 3}}
    call = read_reply(reply).model_call
    assert call is not None
    assert ModelCall.from_json(call.to_json()) == call
    assert (call.prompt_tokens, call.completion_tokens) == (12, 3)


def test_the_default_port_of_https_is_443(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = Mock()
    monkeypatch.setattr(socket, "create_connection", connect)
    get_client("https://localhost/v1")
    assert connect.call_args.args == (("localhost", 443),)
