"""A stand-in for the Kimi API: for tests, the demo and people's own agents.

In: requests of the Messages and Chat Completions protocols. Out: replies by a script, with tool
calls whose ids repeat or not, and faults on demand. It shares no protocol code with the tap
(nothing from `moontap.wire`): it is an independent oracle, and shared code would share its bugs.

    async with Standin(script=load_script("steps.yaml"), mint="unique") as standin:
        client = anthropic.AsyncAnthropic(base_url=standin.base_url + "/anthropic", api_key="x")
"""

from moontap.serving.tls import TLSFiles, make_tls
from moontap.standin.mint import IdForm, Mint
from moontap.standin.received import Received
from moontap.standin.script import (
    DEFAULT_SCRIPT,
    Call,
    Conversation,
    Fault,
    FaultKind,
    Pacing,
    Script,
    ScriptError,
    Step,
)
from moontap.standin.script_yaml import load_script, parse_script
from moontap.standin.server import Standin

__all__ = [
    "DEFAULT_SCRIPT",
    "Call",
    "Conversation",
    "Fault",
    "FaultKind",
    "IdForm",
    "Mint",
    "Pacing",
    "Received",
    "Script",
    "ScriptError",
    "Standin",
    "Step",
    "TLSFiles",
    "load_script",
    "make_tls",
    "parse_script",
]
