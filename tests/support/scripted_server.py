"""An OpenAI-compatible server on loopback that answers with a script."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

IDLE = {"role": "assistant", "content": "I would rather not."}
MAX_REQUESTS = 50


def calls(*named: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """An assistant message with tool calls."""
    tool_calls = [
        {
            "id": f"call_{i}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for i, (name, arguments) in enumerate(named)
    ]
    return {"role": "assistant", "content": "", "tool_calls": tool_calls}


@dataclass
class Script:
    """What the server says, in order, and then `IDLE`; and what it was asked."""

    messages: Sequence[dict[str, Any]]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        number = len(self.requests)
        self.requests.append(request)
        message = self.messages[number] if number < len(self.messages) else IDLE
        reason = "tool_calls" if "tool_calls" in message else "stop"
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }


@contextmanager
def serving(messages: Sequence[dict[str, Any]]) -> Iterator[Script]:
    """Serves a script at ``url`` until the block ends."""
    script = Script(messages)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            known = self.path == "/v1/chat/completions" and len(script.requests) < MAX_REQUESTS
            body = json.dumps(script.answer(json.loads(data)) if known else {}).encode()
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True  # clients keep their connections open
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            script.url = f"http://127.0.0.1:{server.server_port}/v1"
            yield script
        finally:
            server.shutdown()
            thread.join()
