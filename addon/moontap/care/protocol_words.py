"""What the protocols themselves say: strings that stay as they are, whatever a rule names.

A string of a body that is one of these, whole, keeps its meaning only if it stays. Where such a
word is a part of a longer text it is a word like any other.
"""

_MEMBERS = """
account_uuid arguments budget_tokens cache_control cache_creation_input_tokens
cache_read_input_tokens choices citations citations_delta code completion_tokens content
content_block created data delta description device_id effort error finish_reason format
function id image_url index input input_json_delta input_schema input_tokens is_error items
max_completion_tokens max_tokens media_type message messages metadata model n name object
output_tokens parallel_tool_calls param parameters partial_json prompt_cache_key prompt_tokens
properties reasoning reasoning_content redacted_thinking required response_format role
server_tool_use service_tier session_id signature signature_delta source stop stop_reason
stop_sequence stop_sequences stream stream_options strict system temperature text text_delta
thinking thinking_delta tool tool_call_id tool_calls tool_choice tool_reference tool_result
tool_use tool_use_id tools top_k top_p total_tokens ttl type url usage user user_id
"""
MEMBERS = frozenset(_MEMBERS.split())
"""Names of members that Messages and Chat Completions give a meaning."""

_VALUES = """
[DONE] adaptive any array assistant auto base64 boolean builtin_function chat.completion
chat.completion.chunk content_block_delta content_block_start content_block_stop
content_filter default developer disabled enabled end_turn ephemeral file image integer
json_object json_schema length list max_tokens message_delta message_start message_stop none
null number pause_turn ping priority refusal standard stop string tool_calls
"""
VALUES = frozenset(_VALUES.split())
"""Values of theirs that are one of a fixed set."""

_PATH = """
anthropic chat coding completions count_tokens estimate-token-count files messages models
responses tokenizers v1
"""
PATH = frozenset(_PATH.split())
"""Segments of the API's own paths."""

KEPT = MEMBERS | VALUES
