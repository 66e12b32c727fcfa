"""What moontap keeps in `flow.metadata` beside short values: bodies, chunks, edits.

They are what they are made of, to mitmproxy's writer too; but copies share them, and the text of
one is its size. mitmproxy's filter `~meta` makes a text of all metadata, for each flow, each time.
"""

from typing import Any, Self


class Chunks(list[list[float]]):
    """Upstream's chunks, `[bytes, milliseconds]` each; not changed once the reply has ended.

    mitmproxy copies a flow's metadata deeply each time the flow is copied or saved. For a stream
    of some thousand chunks that took longer than everything else, so here the copy is shared.
    """

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<{len(self):,} chunks>"

    __str__ = __repr__


class Edits(list[list[Any]]):
    """How to get a body back, `[offset, length, bytes]` each. As text but their number."""

    def __repr__(self) -> str:
        return f"<{len(self):,} edits>"

    __str__ = __repr__


class Kept(bytes):
    """A body among a flow's metadata. As text it is but its size, `<1,234 bytes>`: mitmproxy's
    filter `~meta` would else spell out the body of every flow, and find words in it."""

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<{len(self):,} bytes>"

    __str__ = __repr__
