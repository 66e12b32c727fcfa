"""How fast recorded answers are served again.

A word or number and a recorded answer in, milliseconds out.
"""

import math
from dataclasses import dataclass

from moontap.capture.upstream import Answer


@dataclass(frozen=True, slots=True)
class Pace:
    """speed: how many times as fast as recorded; None: without any wait."""

    speed: float | None = None

    def waits(self, answer: Answer) -> tuple[float, dict[int, float]]:
        """Milliseconds of silence before the headers, and before each chunk that has some."""
        if self.speed is None:
            return 0, {}
        waits, last = {}, 0.0
        for number, arrival in enumerate(answer.arrivals):
            if arrival > last:
                waits[number] = (arrival - last) / self.speed
                last = arrival
        return answer.wait / self.speed, waits


NONE, ORIGINAL = Pace(), Pace(1)


def parse(text: str) -> Pace:
    """`none`, `original`, or a factor: 2 is twice as fast. Raises ValueError."""
    if text in ("none", "original"):
        return NONE if text == "none" else ORIGINAL
    try:
        speed = float(text)
    except ValueError:
        speed = 0
    if not (speed > 0 and math.isfinite(speed)):
        raise ValueError(f"{text!r} is no pace: original, none, or a factor (2 is twice as fast)")
    return Pace(speed)
