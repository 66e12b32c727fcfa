"""What the stand-in received and how it answered, for tests to look at and for the log file.

In: requests as they arrive, answers as they start. Out: `Received` records and JSON lines. The
log never holds the value of a header that carries a secret.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

SECRET_HEADERS = frozenset(
    {"authorization", "x-api-key", "cookie", "proxy-authorization", "msh-uid", "msh-gid"}
)


@dataclass(slots=True)
class Received:
    """One request. `index` counts from 0; header names are lower case; `path` has the query;
    `body` is the parsed JSON, None without a body or where it is not JSON; `raw` is the body as
    it came. `answer` says how it was answered: kind, conversation, step, ids, status, faults."""

    index: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    http_version: str
    raw: bytes = b""
    answer: dict[str, Any] = field(default_factory=dict)

    def json_line(self) -> str:
        headers = {
            name: "[removed]" if name in SECRET_HEADERS else value
            for name, value in self.headers.items()
        }
        record = {
            "index": self.index,
            "method": self.method,
            "path": self.path,
            "http_version": self.http_version,
            "headers": headers,
            "body": self.body,
            "answer": self.answer,
        }
        return json.dumps(record, ensure_ascii=False) + "\n"


class Log:
    """Appends a JSON line a request, flushed. Without a path it does nothing."""

    def __init__(self, path: str | Path | None) -> None:
        self._path = path
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            self._file = open(self._path, "a", encoding="utf-8")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def write(self, received: Received) -> None:
        if self._file is not None:
            self._file.write(received.json_line())
            self._file.flush()
