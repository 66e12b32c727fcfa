"""What is kept of log records and failed flows."""

from __future__ import annotations

import logging
import warnings

import pytest
from mitmproxy.test import tflow

from moontap.capture import metadata
from moontap.redact.flow import Redactor
from moontap.tapping.trouble import Troubles, _Handler, listening
from tests.cli.commands import KEY


def kept() -> Troubles:
    return Troubles(Redactor().mask_text)


@pytest.mark.parametrize(
    ("level", "message", "lines"),
    [
        (logging.WARNING, "moontap: a thing", {"a thing": 1}),
        (logging.ERROR, "two\nlines", {"two lines": 1}),
        (logging.INFO, "listening", {}),
        (logging.WARNING, f"key {KEY}", {"key " + "*" * len(KEY): 1}),
    ],
)
def test_a_log_record(level: int, message: str, lines: dict[str, int]) -> None:
    troubles = kept()
    with listening(troubles):
        logging.getLogger("moontap.addon").log(level, message)
    logging.getLogger("moontap.addon").debug("after")
    assert troubles.lines == lines


def test_an_exception_is_named_and_not_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    troubles = kept()
    with listening(troubles):
        try:
            raise ValueError("the body said hunter2")
        except ValueError:
            logging.getLogger("asyncio").exception("a task failed")
        warnings.warn("careful", stacklevel=1)
    first, second = troubles.lines
    assert first == "a task failed (ValueError)"
    assert "careful" in second
    assert capsys.readouterr() == ("", "")


def test_a_record_that_cannot_be_read_is_no_error() -> None:
    troubles = kept()
    with listening(troubles):
        (handler,) = (one for one in logging.getLogger().handlers if isinstance(one, _Handler))
        handler.handle(logging.LogRecord("x", logging.ERROR, "", 0, "%d", ("no number",), None))
    assert troubles.lines == {"a log record could not be read": 1}


def test_what_the_guard_refused_is_not_said_of_the_host() -> None:
    troubles, flow = kept(), tflow.tflow(resp=True)
    assert flow.response
    flow.response.status_code = 423
    troubles.response(flow)
    assert [line.split(" to ")[0] for line in troubles.lines] == ["address answered 423 OK"]
    flow.metadata[metadata.BLOCKED] = "blocked_no_progress"
    troubles.response(flow)
    assert list(troubles.lines.values()) == [1]


def test_each_line_is_told_once_and_early_ones_later() -> None:
    told: list[str] = []
    troubles, logger = kept(), logging.getLogger("moontap")
    with listening(troubles):
        logger.warning("early")
        assert told == []
        troubles.tell(told.append)
        for _ in range(3):
            logger.warning("again")
    assert told == ["early", "again"]
    assert troubles.lines == {"early": 1, "again": 3}


def test_a_refusal_is_kept_without_its_query() -> None:
    troubles, flow = kept(), tflow.tflow(resp=True)
    flow.request.path = "/v1/messages?key=hunter2"
    assert flow.response
    flow.response.status_code, flow.response.reason = 401, "Unauthorized"
    troubles.response(flow)
    assert troubles.lines == {"address answered 401 Unauthorized to GET /v1/messages": 1}
    assert not troubles.unreachable


@pytest.mark.parametrize(
    ("message", "lines", "unreachable"),
    [
        ("no route", {"GET /path to address failed: no route": 1}, True),
        ("Client disconnected.", {}, False),
    ],
)
def test_a_failed_flow(message: str, lines: dict[str, int], unreachable: bool) -> None:
    troubles, flow = kept(), tflow.tflow(err=True)
    assert flow.error
    flow.error.msg = message
    troubles.error(flow)
    assert (troubles.lines, troubles.unreachable) == (lines, unreachable)
