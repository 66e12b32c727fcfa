"""Who wants to hear what a run comes to, as it is recorded.

Called on the thread that records, in the order of the record: an exchange, then its lines, then
what was found. What is handed in is masked, is not changed, and must not be kept whole: a
`Logged` holds the whole history. What is raised is caught, and costs nothing else.
"""

from typing import Protocol

from mitmproxy import http

from moontap.capture.pairlog import Line, Logged
from moontap.findings.types import Finding


class Observer(Protocol):
    """Hears of each exchange of a paired protocol."""

    def exchange(self, logged: Logged, number: int, flow: http.HTTPFlow) -> None:
        """An exchange has ended. number: which of the run, from 1 on. flow: mitmproxy's own, of
        which `logged` has a masked copy; it is not changed on this thread."""

    def line(self, line: Line) -> None:
        """A pair became certain; `call_flow` and `result_flow` say whose."""

    def finding(self, finding: Finding) -> None:
        """Something was found; `flow` says in which exchange."""
