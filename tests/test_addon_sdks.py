"""The official SDKs run tool loops through the tap: ids are unique where asked, pairs are right."""

import json
from dataclasses import dataclass, field
from typing import Any, Protocol

import anthropic
import openai
import pytest

from moontap.standin import (
    Call,
    Conversation,
    Fault,
    FaultKind,
    IdForm,
    Mint,
    Script,
    Standin,
    Step,
    TLSFiles,
)
from tests.conftest import Start
from tests.proxying import HOST, Tap, pairs

pytestmark = pytest.mark.usefixtures("_no_errors", "_own_home")

KEY = "made-up-key"
STEPS = (
    Step(text="First.", thinking="Hm.", calls=(Call("Bash", {"command": "pwd"}),)),
    Step(calls=(Call("Bash", {"command": "ls é"}), Call("Bash", {"command": "date"}))),
    Step(calls=(Call("Read", {"path": "/w/a_0"}), Call("Bash", {"command": "pwd"}))),
    Step(text="Last.", calls=(Call("Bash", {"command": "pwd"}),)),
)
SCRIPT = Script(default=Conversation(steps=STEPS))
CALLS = [call for step in STEPS for call in step.calls]
STEP_ENDS = [sum(len(step.calls) for step in STEPS[: n + 1]) for n in range(len(STEPS))]


@dataclass
class Ran:
    """A finished loop as the client saw it: each call's id and result, in order."""

    ids: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    final: str = ""

    def answer(self, id_: str) -> str:
        self.ids.append(id_)
        self.results.append(f"result {len(self.ids)}")
        return self.results[-1]


class Loop(Protocol):
    async def __call__(self, base: str, http: dict[str, Any], stream: bool, /) -> Ran: ...


async def messages_loop(base: str, http: dict[str, Any], stream: bool) -> Ran:
    ran = Ran()
    history: Any = [{"role": "user", "content": "go"}]
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in ("Bash", "Read")]
    async with anthropic.AsyncAnthropic(
        base_url=f"{base}/anthropic",
        api_key=KEY,
        max_retries=0,
        http_client=anthropic.DefaultAsyncHttpxClient(**http),
    ) as client:
        for _ in range(len(STEPS) + 1):
            asked: Any = {"model": "kimi-k3", "max_tokens": 99, "tools": tools, "messages": history}
            if stream:
                async with client.messages.stream(**asked) as events:
                    message: Any = await events.get_final_message()
            else:
                message = await client.messages.create(**asked)
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                ran.final = message.content[-1].text
                break
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": ran.answer(call.id)}
                for call in calls
            ]
            history += [
                {"role": "assistant", "content": [block.to_dict() for block in message.content]},
                {"role": "user", "content": results},
            ]
    return ran


async def chat_loop(base: str, http: dict[str, Any], stream: bool) -> Ran:
    ran = Ran()
    history: Any = [{"role": "user", "content": "go"}]
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in ("Bash", "Read")
    ]
    async with openai.AsyncOpenAI(
        base_url=f"{base}/v1",
        api_key=KEY,
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(**http),
    ) as client:
        for _ in range(len(STEPS) + 1):
            asked: Any = {"model": "kimi-k3", "tools": tools, "messages": history}
            if stream:
                async with client.chat.completions.stream(**asked) as events:
                    completion: Any = await events.get_final_completion()
            else:
                completion = await client.chat.completions.create(**asked)
            message = completion.choices[0].message
            if not message.tool_calls:
                ran.final = message.content
                break
            said: Any = {"role": "assistant", "content": message.content, "tool_calls": []}
            results = []
            for call in message.tool_calls:
                function = {"name": call.function.name, "arguments": call.function.arguments}
                said["tool_calls"].append({"id": call.id, "type": "function", "function": function})
                results.append(
                    {"role": "tool", "tool_call_id": call.id, "content": ran.answer(call.id)}
                )
            history += [said, *results]
    return ran


def through(p: Tap) -> dict[str, Any]:
    return {"proxy": p.url, "verify": p.trust, "trust_env": False}


def minted(form: IdForm) -> list[str]:
    """What the stand-in names the calls: their place in the response."""
    return [f"{c.name}{form.mark}{n}" for step in STEPS for n, c in enumerate(step.calls)]


def repeated(ids: list[str]) -> list[bool]:
    return [id_ in ids[:n] for n, id_ in enumerate(ids)]


def check(lines: list[dict[str, Any]], ran: Ran, upstream_ids: list[str]) -> None:
    """Every call is logged once, in order, with its own result and as both sides named it."""
    assert [line["tool"] for line in lines] == [call.name for call in CALLS]
    assert [line["arguments"] for line in lines] == [call.arguments for call in CALLS]
    assert [line["result"] for line in lines] == ran.results
    assert [line["id"] for line in lines] == ran.ids
    assert [line["upstream_id"] for line in lines] == upstream_ids
    assert [line["duplicate"] for line in lines] == repeated(upstream_ids)
    assert [line["rewritten"] for line in lines] == [
        ours != theirs for ours, theirs in zip(ran.ids, upstream_ids, strict=True)
    ]
    assert {line["status"] for line in lines} == {"ok"}
    assert {line["source"] for line in lines} == {"live"}
    assert {line["model"] for line in lines} == {"kimi-k3"}
    assert len({line["session"] for line in lines}) == 1
    assert all(line["latency_s"] >= 0 for line in lines)
    assert all(line["message_id"] and line["request_id"] for line in lines)
    assert [line["call_flow"] for line in lines[1:]] == [
        line["result_flow"] if n + 1 in STEP_ENDS else line["call_flow"]
        for n, line in enumerate(lines[:-1])
    ]


@pytest.mark.parametrize("rewrite", ["off", "duplicates", "all"])
@pytest.mark.parametrize(
    ("loop", "protocol", "stream", "form"),
    [
        (messages_loop, "anthropic-messages", True, IdForm.UNDERSCORE),
        (messages_loop, "anthropic-messages", False, IdForm.COLON),
        (chat_loop, "openai-chat", True, IdForm.COLON),
        (chat_loop, "openai-chat", False, IdForm.UNDERSCORE),
    ],
    ids=["messages-streamed", "messages-whole", "chat-streamed", "chat-whole"],
)
async def test_a_tool_loop(
    start: Start,
    upstream_tls: TLSFiles,
    loop: Loop,
    protocol: str,
    stream: bool,
    form: IdForm,
    rewrite: str,
) -> None:
    async with (
        Standin(SCRIPT, id_form=form, tls=upstream_tls) as standin,
        start(ports={HOST: standin.port}, moontap_rewrite=rewrite) as p,
    ):
        ran = await loop(f"https://{HOST}", through(p), stream)
    upstream_ids = minted(form)
    assert ran.final == "All done."
    if rewrite == "off":
        assert ran.ids == upstream_ids
    else:
        assert len(set(ran.ids)) == len(ran.ids)
    if rewrite == "duplicates":
        kept = [ours == theirs for ours, theirs in zip(ran.ids, upstream_ids, strict=True)]
        assert kept == [not again for again in repeated(upstream_ids)]
    if rewrite == "all":
        assert not set(ran.ids) & set(upstream_ids)
    lines = pairs(p.captures)
    check(lines, ran, upstream_ids)
    assert {line["protocol"] for line in lines} == {protocol}
    assert all("x-stainless-lang" in seen.headers for seen in standin.requests)


@pytest.mark.parametrize("rewrite", ["duplicates", "all"])
@pytest.mark.parametrize("loop", [messages_loop, chat_loop])
async def test_ids_that_are_unique_stay_in_duplicates(
    start: Start, upstream_tls: TLSFiles, loop: Loop, rewrite: str
) -> None:
    async with (
        Standin(SCRIPT, mint=Mint.UNIQUE, tls=upstream_tls) as standin,
        start(ports={HOST: standin.port}, moontap_rewrite=rewrite) as p,
    ):
        ran = await loop(f"https://{HOST}", through(p), True)
    sent = [id_ for seen in standin.requests for id_ in seen.answer["ids"]]
    assert len(set(ran.ids)) == len(sent) == len(CALLS)
    assert (ran.ids == sent) == (rewrite == "duplicates")
    check(pairs(p.captures), ran, sent)


@pytest.mark.parametrize("loop", [messages_loop, chat_loop])
async def test_reverse_mode_needs_no_certificate_on_the_client(
    start: Start, upstream_tls: TLSFiles, loop: Loop
) -> None:
    async with (
        Standin(SCRIPT, id_form=IdForm.UNDERSCORE, tls=upstream_tls) as standin,
        start(
            ports={HOST: standin.port}, mode=f"reverse:https://{HOST}", moontap_rewrite="all"
        ) as p,
    ):
        ran = await loop(p.url, {"trust_env": False}, True)
    assert len(set(ran.ids)) == len(CALLS)
    check(pairs(p.captures), ran, minted(IdForm.UNDERSCORE))
    assert {seen.headers["host"] for seen in standin.requests} == {HOST}


@pytest.mark.parametrize(
    ("loop", "faults"),
    [
        (messages_loop, "same_id crlf"),
        (messages_loop, "interleaved comments data_no_space"),
        (messages_loop, "double_stop"),
        (chat_loop, "same_id crlf"),
        (chat_loop, "id_every_fragment comments"),
        (chat_loop, "null_id_continuation interleaved data_no_space"),
        (chat_loop, "late_id"),
    ],
)
async def test_odd_replies_are_paired_and_rewritten(
    start: Start, upstream_tls: TLSFiles, loop: Loop, faults: str
) -> None:
    script = Script(
        default=SCRIPT.default, faults=tuple(Fault(FaultKind(kind)) for kind in faults.split())
    )
    async with (
        Standin(script, tls=upstream_tls) as standin,
        start(ports={HOST: standin.port}, moontap_rewrite="all") as p,
    ):
        ran = await loop(f"https://{HOST}", through(p), True)
    assert ran.final == "All done."
    assert len(set(ran.ids)) == len(CALLS)
    lines = pairs(p.captures)
    assert [line["id"] for line in lines] == ran.ids
    assert [line["result"] for line in lines] == ran.results
    assert [line["arguments"] for line in lines] == [call.arguments for call in CALLS]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_several_choices_have_ids_of_their_own(
    start: Start, upstream_tls: TLSFiles, stream: bool
) -> None:
    script = Script(
        default=Conversation(steps=STEPS[1:2]),
        faults=(Fault(FaultKind.CHOICES, choices=3),),
    )
    async with (
        Standin(script, tls=upstream_tls) as standin,
        start(ports={HOST: standin.port}, moontap_rewrite="duplicates") as p,
        p.client() as client,
    ):
        request = {
            "model": "kimi-k3",
            "stream": stream,
            "messages": [{"role": "user", "content": "go"}],
            "tools": [{"type": "function", "function": {"name": "Bash"}}],
        }
        reply = await client.post(f"https://{HOST}/v1/chat/completions", json=request)
    choices: dict[int, list[str]] = {}
    texts = [reply.text]
    if stream:
        texts = [line[6:] for line in reply.text.splitlines() if line.startswith("data: {")]
    for text in texts:
        for choice in json.loads(text)["choices"]:
            said = choice.get("delta") or choice.get("message") or {}
            choices.setdefault(choice["index"], []).extend(
                call["id"] for call in said.get("tool_calls", ()) if call.get("id")
            )
    assert [len(ids) for ids in choices.values()] == [2, 2, 2]
    assert choices[0] == ["Bash:0", "Bash:1"]  # the first use keeps its own
    assert len({id_ for ids in choices.values() for id_ in ids}) == 6
    lines = pairs(p.captures)  # no choice was gone on with
    assert [(line["choice"], line["index"], line["status"]) for line in lines] == [
        (choice, index, "unanswered") for choice in range(3) for index in range(2)
    ]
    assert [line["duplicate"] for line in lines] == [False] * 2 + [True] * 4
