"""Special texts of the families of chat models; a new family is one row of `_FAMILIES`.

The formats of tool calls are rows of `coding_gym.tools.formats.table`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """The special texts of a family.

    Attributes:
        tokens: Control tokens around messages, calls and results.
        stops: Control tokens that end a reply; some servers leave these tokens in the text.
        reasoning: The opening and the closing mark of reasoning; empty if there are none.
    """

    tokens: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    reasoning: tuple[()] | tuple[str, str] = ()


_FAMILIES = (
    _Family(  # ChatML: Qwen, Hermes, SmolLM, Olmo and others
        tokens=(
            *("<|im_start|>", "<|pad|>", "<tools>", "</tools>"),
            *("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
        ),
        stops=("<|im_end|>", "<|endoftext|>"),
        reasoning=("<think>", "</think>"),
    ),
    _Family(  # Llama 2
        tokens=("<s>", "<unk>", "<<SYS>>", "<</SYS>>", "[INST]", "[/INST]"), stops=("</s>",)
    ),
    _Family(  # Llama 3
        tokens=(
            *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>"),
            *("<|python_tag|>", "<|finetune_right_pad_id|>"),
        ),
        stops=("<|end_of_text|>", "<|eot_id|>", "<|eom_id|>"),
    ),
    _Family(  # Llama 4
        tokens=(
            *("<|header_start|>", "<|header_end|>", "<|eom|>"),
            *("<|python_start|>", "<|python_end|>"),
        ),
        stops=("<|eot|>",),
    ),
    _Family(  # Mistral
        tokens=(
            *("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
            *("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"),
            *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CONTENT]"),
        ),
        reasoning=("[THINK]", "[/THINK]"),
    ),
    _Family(  # Gemma 3 and FunctionGemma
        tokens=(
            *("<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_function_response>"),
            *("<start_function_call>", "<end_function_call>"),
        ),
        stops=("<end_of_turn>", "<start_function_response>"),
    ),
    _Family(  # Gemma 4
        tokens=(
            *("<|turn>", "<|channel>", "<|tool>", "<tool|>", '<|"|>'),
            *("<|tool_call>", "<tool_call|>", "<tool_response|>"),
        ),
        stops=("<turn|>", "<|tool_response>"),
        reasoning=("<|channel>thought", "<channel|>"),
    ),
    _Family(  # Phi
        tokens=("<|system|>", "<|assistant|>", "<|tool|>", "<|/tool|>", "<|tool_response|>"),
        stops=("<|end|>",),
    ),
    _Family(  # GLM
        tokens=("[gMASK]", "<sop>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
        stops=("<|observation|>", "<|user|>"),
    ),
    _Family(  # gpt-oss
        tokens=("<|start|>", "<|message|>", "<|channel|>", "<|constrain|>"),
        stops=("<|call|>", "<|return|>"),
    ),
    _Family(  # DeepSeek
        tokens=(
            *("<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "｜DSML｜"),
            *("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁sep｜>"),
            *("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
            *("<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"),
            *("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
        ),
        stops=("<｜end▁of▁sentence｜>",),
    ),
    _Family(  # Kimi
        tokens=(
            *("<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>"),
            *("[BOS]", "[EOS]", "[EOT]", "<|tool_call_argument_begin|>"),
            *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
            *("<|tool_call_begin|>", "<|tool_call_end|>"),
        ),
    ),
    _Family(  # Cohere
        tokens=(
            *("<BOS_TOKEN>", "<EOS_TOKEN>", "<|START_OF_TURN_TOKEN|>"),
            *("<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>"),
            *("<|START_ACTION|>", "<|END_ACTION|>"),
            *("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>"),
            *("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"),
        ),
        stops=("<|END_OF_TURN_TOKEN|>",),
        reasoning=("<|START_THINKING|>", "<|END_THINKING|>"),
    ),
    _Family(  # Granite
        tokens=("<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>", "<|/tool_call|>")
    ),
    _Family(tokens=("]~!b[", "]~b]"), stops=("[e~[",)),  # MiniMax
    _Family(tokens=("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>")),  # Nemotron
    _Family(  # LFM2, Jamba
        tokens=(
            *("<|startoftext|>", "<|bom|>", "<|tool_list_start|>", "<|tool_list_end|>"),
            *("<|tool_call_start|>", "<|tool_call_end|>"),
            *("<|tool_response_start|>", "<|tool_response_end|>"),
        ),
    ),
)

REASONING = tuple(family.reasoning for family in _FAMILIES if family.reasoning)
"""The opening and closing marks of reasoning."""

STOPS = tuple(chain.from_iterable(family.stops for family in _FAMILIES))
"""Control tokens that end a reply."""

CONTROL_TOKENS = tuple(
    dict.fromkeys(
        token
        for family in _FAMILIES
        for token in (*family.tokens, *family.stops, *family.reasoning)
    )
)
"""Control tokens of all these families, for text that is sent to a model of any of them."""

CALL = '{"name": "TOOL_NAME", "arguments": {"ARGUMENT": "VALUE"}}'

UNEXPLAINED: Mapping[str, str] = MappingProxyType(
    {
        "auto": f"<tool_call>{CALL}</tool_call>",
        "openai": '{"role": "assistant", "content": "", "tool_calls": [{"id": "call00000", "type": '
        '"function", "function": {"name": "TOOL_NAME", "arguments": '
        '"{\\"ARGUMENT\\": \\"VALUE\\"}"}}]}',
        "template": "a call as the model's chat template has it",
    }
)
"""An example of each format that the system prompt does not explain; a server or template does."""
