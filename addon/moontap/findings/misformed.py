"""Calls of a history whose arguments the client wrote in a form that the protocol does not have.

A message and a call of it in, a verdict out. Pure. What such a call lacks is no fault of the model.
"""

from moontap.wire.types import Call, Fault, Message

_ARGUMENTS = ("input", "arguments")
_FAULTS = (Fault.KIND, Fault.MISSING)


def is_misformed(message: Message, call: Call) -> bool:
    """Whether its arguments are of another kind than they must be, or under another name."""
    return any(
        odd.block == call.block
        and odd.fault in _FAULTS
        and odd.path.rpartition(".")[2] in _ARGUMENTS
        for odd in message.odd
    )
