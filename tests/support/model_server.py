"""A small OpenAI-compatible server that plays a script, in place of a model."""

import asyncio
import json
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server sends for one request.

    Attributes:
        body: The JSON of the response, or bytes that are sent as they are.
        status: The HTTP status.
        delay_s: Seconds before it is sent; infinite for never.
        headers: Further headers.
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
        calls: Arguments of each tool call, by the tool's name.
        ids: Ids of prompt and reply, as vLLM returns them.
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


class ChatServer:
    """Serves ``POST /v1/chat/completions`` on a free port of 127.0.0.1, in a thread of its own.

    Args:
        answer: Returns the answer to a request's JSON. Runs in the server's thread.

    Attributes:
        requests: The JSON of every request so far.
        base_url: The address; valid inside the ``with`` block.
    """

    def __init__(self, answer: Callable[[Body], Answer]) -> None:
        self.requests: list[Body] = []
        self.base_url = ""
        self._answer = answer
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result()
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
                body = json.loads(
                    await reader.readexactly(int(length[1]) if length else 0) or b"{}"
                )
                self.requests.append(body)
                answer = self._answer(body)
                await asyncio.sleep(min(answer.delay_s, 1e6))
                writer.write(_response(answer))
                await writer.drain()
        writer.close()


def _response(answer: Answer) -> bytes:
    is_raw = isinstance(answer.body, bytes)
    body = answer.body if is_raw else json.dumps(answer.body).encode()
    lines = [f"HTTP/1.1 {answer.status} {'OK' if answer.status < 400 else 'Error'}"]
    lines += [f"content-length: {len(body)}", "content-type: application/json"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
