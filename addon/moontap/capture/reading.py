"""Saved flows read one after the other: masked, then paired.

mitmproxy flows in, in the order in which they ended; what the pair log makes of each out, or why it
could not be read. Never writes.
"""

from collections.abc import Callable, Iterator

from mitmproxy import http

from moontap.capture.pairlog import Line, Logged, PairLog
from moontap.redact.flow import Redactor
from moontap.rules import Rules


class Reading:
    """One run, or one file. redactor: what masks the flows, for texts made of them."""

    def __init__(self, rules: Rules) -> None:
        self.redactor = Redactor(rules)
        self._log = PairLog(rules.limits.result_bytes)

    def flow[T](
        self, flow: http.HTTPFlow, take: Callable[[Logged], T]
    ) -> tuple[T | None, str | None]:
        """What `take` makes of the next one, and a line that says why it could not be read.

        Either is None where there is none: both, where it is not of a paired protocol. The flow is
        masked in place. It raises nothing, whatever `take` does.
        """
        try:
            self.redactor.redact(flow)
            logged = self._log.exchange(flow)
            return (take(logged) if logged else None), None
        except Exception as error:  # whatever somebody's file holds costs no other exchange
            # The message of an error that nobody meant for people may quote the body.
            why = error if isinstance(error, ValueError) else type(error).__name__
            path = flow.request.path.partition("?")[0]
            return None, self.redactor.mask_text(f"{flow.request.method} {path}: {why}")

    def close(self) -> Iterator[Line]:
        """The run ends: the lines of the calls that still wait."""
        return self._log.close()
