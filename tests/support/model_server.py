"""Replacements of a model: scripted OpenAI servers, and byte-level tokenizers.

If the package of a tokenizer is not installed, the test is skipped.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from coding_gym.task import Task

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of the server to one request.

    Attributes:
        body: The JSON of the response, or bytes that are sent as they are.
        status: The HTTP status.
        delay_s: Delay of the response in seconds; ``math.inf`` sends no response.
        headers: Further HTTP headers.
    """

    body: Any
    status: int = 200
    delay_s: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)


def message(
    content: str = "",
    calls: Mapping[str, Any] | None = None,
    *,
    ids: tuple[list[int], list[int]] | None = None,
    finish_reason: str = "",
    usage: tuple[int, int] = (10, 5),
    **fields: Any,
) -> Body:
    """Returns the JSON of a chat completion.

    Args:
        content: The text of the reply.
        calls: Arguments of each tool call, by the name of the tool.
        ids: Token ids of prompt and reply, in the fields of vLLM.
        finish_reason: By default ``"tool_calls"`` or ``"stop"``.
        usage: Tokens of prompt and reply.
        **fields: Other fields of the message.
    """
    reply: Body = {"role": "assistant", "content": content or None, **fields}
    if calls:
        reply["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(calls.items())
        ]
    choice: Body = {"index": 0, "message": reply}
    choice["finish_reason"] = finish_reason or ("tool_calls" if calls else "stop")
    counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    data: Body = {"id": "0", "object": "chat.completion", "created": 0, "model": "script"}
    data |= {"choices": [choice], "usage": counts}
    if ids is not None:
        data["prompt_token_ids"], choice["token_ids"] = ids
        content_logprobs = [{"token": "x", "logprob": -0.5} for _ in ids[1]]
        choice["logprobs"] = {"content": content_logprobs}
    return data


class ChatServer(ThreadingHTTPServer):
    """Serves ``POST /v1/chat/completions`` on a free port of 127.0.0.1, inside a ``with`` block.

    Args:
        answer: Returns the response to the JSON of a request; called for one request at a time.

    Attributes:
        requests: The JSON of each received request.
        base_url: The URL of the API.
    """

    request_queue_size = 1024
    daemon_threads = True

    def __init__(self, answer: Callable[[Body], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Body] = []
        self.base_url = f"http://127.0.0.1:{self.server_port}/v1"
        self.is_closing = threading.Event()
        self._answer = answer
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,)).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.is_closing.set()
        self.shutdown()
        super().__exit__(*error)

    def answer(self, body: Body) -> Answer:
        with self._lock:
            self.requests.append(body)
            return self._answer(body)


def by_turn(*replies: Body) -> Callable[[Body], Answer]:
    """Returns an ``answer`` function that sends the n-th reply after n replies, then the last."""

    def answer(body: Body) -> Answer:
        number = sum(entry["role"] == "assistant" for entry in body["messages"])
        return Answer(replies[min(number, len(replies) - 1)])

    return answer


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        length = int(self.headers["content-length"] or 0)
        answer = self.server.answer(json.loads(self.rfile.read(length) or b"{}"))
        if self.server.is_closing.wait(min(answer.delay_s, 1e6)):
            return
        data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {"content-type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(ConnectionError):  # the client can have disconnected
            self.wfile.write(data)

    do_GET = do_POST  # noqa: N815 - a name of the base class

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


# A chat template with features of real models: tools, and tool results in one message.
TEMPLATE = """\
{%- for message in messages %}
{%- if message.role == "system" %}
{{- "<|im_start|>system\\n" + message.content }}
{%- if tools %}{{- "\\nTools: " + (tools | tojson) }}{%- endif %}
{{- "<|im_end|>\\n" }}
{%- elif message.role == "tool" %}
{%- if loop.previtem.role != "tool" %}{{- "<|im_start|>user" }}{%- endif %}
{{- "\\n<tool_response>\\n" + message.content + "\\n</tool_response>" }}
{%- if loop.last or loop.nextitem.role != "tool" %}{{- "<|im_end|>\\n" }}{%- endif %}
{%- else %}
{{- "<|im_start|>" + message.role + "\\n" + message.content + "<|im_end|>\\n" }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- "<|im_start|>assistant\\n" }}{%- endif %}
"""
TURNS = ("<|im_start|>", "<|im_end|>")
# Tokens that span line ends of the template.
MERGES = (("Ċ", "<"), (")", "Ċ"), (">", "Ċ"), ("r", "Ċ"))


def byte_backend(special: Sequence[str], merges: Sequence[tuple[str, str]] = ()) -> Any:
    """Returns a byte-level tokenizer of the package ``tokenizers``, with control tokens."""
    tokenizers = pytest.importorskip("tokenizers")
    level = tokenizers.pre_tokenizers.ByteLevel
    tokens = [*sorted(level.alphabet()), *map("".join, merges)]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[*merges]))
    backend.pre_tokenizer = level(add_prefix_space=False, use_regex=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    backend.add_special_tokens([*special])
    return backend


def save_tokenizer(
    folder: Path, template: str | None, special: Sequence[str] = TURNS, **options: Any
) -> str:
    """Saves a byte-level tokenizer with a chat template, and returns ``hf:FOLDER``."""
    pytest.importorskip("jinja2")
    transformers = pytest.importorskip("transformers")
    backend = byte_backend(special, MERGES)
    backend.add_tokens(["<tool_response>", "</tool_response>"])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **options)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return f"hf:{folder}"


_SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # ends mini-swe-agent


def shell_call(body: Body, command: str) -> Body:
    """Returns a reply that calls the shell tool among the tools of a request."""
    for tool in body["tools"]:
        function = tool["function"]
        properties: dict[str, Any] = function.get("parameters", {}).get("properties", {})
        name = next((key for key in ("cmd", "command") if key in properties), None)
        if name is None or "write" in function["name"]:
            continue
        is_list = properties[name].get("type") == "array"
        arguments: Body = {name: ["bash", "-c", command] if is_list else command}
        required = function["parameters"].get("required", ())
        fillers = {"boolean": False, "string": "repair", "number": 60, "integer": 60}
        for key in required:
            arguments.setdefault(key, fillers.get(properties[key].get("type"), "repair"))
        return message(calls={function["name"]: arguments})
    raise AssertionError(json.dumps(body["tools"]))


def gold_model(task: Task) -> ChatServer:
    """Returns a server whose model applies the gold patch in its first call, then ends."""
    apply = f"git apply - <<'EOF'\n{task.gold_patch}\nEOF\n"
    num_calls = 0

    def answer(body: Body) -> Answer:
        nonlocal num_calls
        if not body.get("tools"):
            return Answer(message("A repair"))
        num_calls += 1
        if num_calls == 1:
            return Answer(shell_call(body, apply))
        is_mini = [tool["function"]["name"] for tool in body["tools"]] == ["bash"]
        return Answer(shell_call(body, _SUBMIT) if is_mini else message("Done."))

    return ChatServer(answer)
