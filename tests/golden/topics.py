"""What the corpus of saved flows must cover, in the words that its sheets use."""

PROTOCOLS = ("anthropic-messages", "openai-chat")

IN_BOTH_PROTOCOLS = (
    "broken-arguments",
    "chunk-cuts",
    "clean",
    "comments",
    "crlf",
    "cut",
    "data-without-space",
    "doubled-result",
    "empty-id",
    "error-event",
    "healing",
    "ids-by-history-compaction",
    "ids-by-history-rewind",
    "ids-restart-colon",
    "ids-restart-underscore",
    "interleaved-fragments",
    "k2",
    "leaked-markup",
    "missing-id",
    "missing-index",
    "missing-result",
    "null-id",
    "orphan-result",
    "parallel-calls",
    "real-client",
    "retry",
    "same-id-twice",
    "split-results",
    "status-400",
    "status-401",
    "status-504",
)
"""Topics with a flow of each protocol."""

STREAMED_AND_WHOLE = (
    "empty-id",
    "healing",
    "ids-by-history-compaction",
    "ids-by-history-rewind",
    "ids-restart-colon",
    "ids-restart-underscore",
    "parallel-calls",
    "same-id-twice",
    "zstd",
)
"""Topics with a reply that was streamed and with one that came whole."""

IN_ONE = (
    "announced-tool",
    "arguments-in-start",  # Messages: a start event has no input elsewhere
    "br",
    "changed-arguments",
    "doubled-stop",  # Messages: Chat Completions has no stop events
    "empty-reply",
    "fallback",
    "gzip",
    "id-on-each-fragment",  # Chat Completions: Messages names a call once
    "keep-alive",
    "large",
    "late-id",  # Chat Completions
    "legacy-functions",  # Chat Completions
    "lost-pair",
    "malformed",
    "near-misses",
    "no-event-lines",  # Messages
    "no-last-separator",
    "no-progress",
    "off-schema",
    "restart",  # Messages: a stream of Chat Completions has no start
    "several-choices",  # Chat Completions
    "several-data-lines",
    "slow",
    "side-requests",
    "space-separator",  # Chat Completions
    "status-403",
    "status-429",
    "status-5xx",
    "stop-reason",
    "sub-agents",
    "tool-choice",
    "undeclared-tool",
    "unfit-result",
    "unique-ids",
    "whole-for-stream",
    "zstd",
)
"""Topics that stand in one protocol, or of which one flow says it all."""

TOPICS = frozenset((*IN_BOTH_PROTOCOLS, *STREAMED_AND_WHOLE, *IN_ONE))
