"""The real LiteLLM against a scripted server: replies, prices, error classes, and no keys."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("litellm")

from coding_gym.agents.live_episode import ModelError, PromptTooLongError, public_text
from coding_gym.agents.model_client import LiteLLMClient, Reply
from coding_gym.testing.chat_server import Answer, ChatServer, message

pytestmark = pytest.mark.filterwarnings("ignore")  # what litellm warns of is its own


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Any:
    def asked(answer: Answer, **options: Any) -> Reply:
        with ChatServer(lambda _: answer) as server:
            monkeypatch.setenv("OPENAI_API_KEY", "sk-the-key")
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            client = LiteLLMClient(**{"max_retries": 0, **options})
            chat = [{"role": "user", "content": "?"}]
            return asyncio.run(client.complete({"model": "openai/gpt-4o-mini", "messages": chat}))

    return asked


def test_reply_has_text_usage_and_the_price_of_litellms_table(ask: Any) -> None:
    reply = ask(Answer(message("Fine.")))
    assert (reply.text, reply.call.prompt_tokens, reply.call.completion_tokens) == ("Fine.", 10, 5)
    assert reply.call.cost == pytest.approx((10 * 0.15 + 5 * 0.6) / 1e6)


@pytest.mark.parametrize(
    ("status", "said", "error_class"),
    [(401, "bad key sk-the-key", "refused"), (500, "no", "model"), (200, "", "timeout")],
)
def test_fault_has_its_class_and_names_no_key(
    ask: Any, status: int, said: str, error_class: str
) -> None:
    delay_s = 60.0 if error_class == "timeout" else 0.0
    with pytest.raises(ModelError) as raised:
        ask(Answer({"error": {"message": said}}, status, delay_s), timeout_s=2.0)
    assert raised.value.error_class == error_class
    assert "sk-the-key" not in public_text(str(raised.value))


def test_prompt_that_is_too_long_has_its_own_error(ask: Any) -> None:
    with pytest.raises(PromptTooLongError):
        ask(Answer({"error": {"message": "maximum context length is 8 tokens"}}, 400))
