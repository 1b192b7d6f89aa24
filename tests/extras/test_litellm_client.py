"""The real LiteLLM against a scripted server: replies, prices, error classes, and no keys."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("litellm")

from model_server import Answer, ChatServer, message

from coding_gym.agents.live_episode import ModelError
from coding_gym.agents.model_client import LiteLLMClient
from coding_gym.agents.model_reply import Reply

pytestmark = [pytest.mark.trainer, pytest.mark.filterwarnings("ignore")]


def ask(*answers: Answer, **options: Any) -> Reply:
    """Returns the reply of a server that sends these answers, and no more of them."""
    script = iter(answers)
    with ChatServer(lambda _: next(script)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-the-key")
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        chat = [{"role": "user", "content": "?"}]
        client = LiteLLMClient(**{"max_retries": 0} | options)
        return asyncio.run(client.complete({"model": "openai/gpt-4o-mini", "messages": chat}))


def test_retried_reply_has_a_price_of_litellms_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coding_gym.agents.model_client._MAX_WAIT_S", 0)
    down = Answer({"error": {"message": "no"}}, 500)
    reply = ask(down, down, Answer(message("Fine.")), max_retries=2)
    assert (reply.action, reply.call.prompt_tokens, reply.call.completion_tokens) == (
        "Fine.",
        10,
        5,
    )
    assert reply.call.num_retries == 2
    assert reply.call.cost == pytest.approx((10 * 0.15 + 5 * 0.6) / 1e6)


@pytest.mark.parametrize(
    ("answer", "error_class"),
    [
        (Answer({"error": {"message": "bad key sk-the-key"}}, 401), "refused"),
        (Answer({"error": {"message": "no"}}, 500), "model"),
        (Answer({"error": {"message": "maximum context length is 8 tokens"}}, 400), "model"),
        (Answer(message("Late."), delay_s=60), "timeout"),
    ],
)
def test_fault_has_its_class_and_names_no_key(answer: Answer, error_class: str) -> None:
    with pytest.raises(ModelError) as raised:
        ask(answer, timeout_s=2.0)
    assert raised.value.error_class == error_class
    assert "sk-the-key" not in str(raised.value)
