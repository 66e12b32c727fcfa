"""What mitmproxy prints, with secrets masked.

mitmdump's own printer shows the address of every flow, and with `flow_detail` headers and bodies
too; mitmproxy's log shows header lines that it could not read. Text in, the same text with keys as
`*` out. It changes what is shown, nothing else.
"""

import logging
from collections.abc import Callable
from typing import Any

from mitmproxy.addonmanager import AddonManager


class MaskedOut:
    """A text stream that masks what is written to it; all else is the stream's own."""

    def __init__(self, out: Any, mask: Callable[[str], str]) -> None:
        self._out = out
        self._mask = mask

    def write(self, text: str) -> int:
        """Write a text, masked; says that all of it was written."""
        self._out.write(self._mask(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def mask_dumper(addons: AddonManager, mask: Callable[[str], str]) -> None:
    """Mask what mitmdump's printer shows; the console and mitmweb have none."""
    dumper = addons.get("dumper")
    if dumper is not None and not isinstance(dumper.outfp, MaskedOut):
        dumper.outfp = MaskedOut(dumper.outfp, mask)


class _MaskedRecords(logging.Filter):
    def __init__(self, mask: Callable[[str], str]) -> None:
        super().__init__()
        self._mask = mask

    def filter(self, record: logging.LogRecord) -> bool:
        shown = record.getMessage()
        masked = self._mask(shown)
        if masked != shown:
            record.msg, record.args = masked, ()
        return True


def mask_log(mask: Callable[[str], str]) -> None:
    """Mask what mitmproxy's log handlers show."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(each, _MaskedRecords) for each in handler.filters):
            handler.addFilter(_MaskedRecords(mask))
