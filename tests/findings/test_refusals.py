"""Errors in all the forms in which servers and gateways write them."""

from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.refusals import Error, error_of, meanings
from moontap.findings.turn import Got
from moontap.wire.types import Reply


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"type": "api_error", "message": "no"}, Error("api_error", "no")),
        ({"code": "x", "message": "no"}, Error("x", "no")),
        ({"type": "a", "code": "b", "message": "no"}, Error("a", "no")),
        ({"type": None, "code": 400, "message": "no"}, Error("", "no")),
        # A gateway's error with the upstream's inside.
        ({"type": "error", "error": {"type": "quota", "message": "no"}}, Error("quota", "no")),
        (
            {"error": {"message": {"message": {"message": {"a": 1}}}}},
            Error("", '{"a": 1}'),
        ),
        ({"detail": [{"loc": 1}]}, Error("", '[{"loc": 1}]')),
        ("no", Error("", "no")),
        ({}, Error()),
        ([], Error()),
        (7, Error("", "7")),
    ],
)
def test_an_error_object(said: Any, expected: Error) -> None:
    assert error_of(Got(Reply(error=said), status=400)) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", Error()),
        (b" upstream  gone\n", Error(text="upstream  gone")),
        (b"<html><title>\n 504  Gone </title>", Error(text="504 Gone", page=True)),
        (b"<!DOCTYPE html>\n<p>hm", Error(page=True)),
        (b"\xff" * 2, Error(text="\ufffd" * 2)),
        (b"x" * 5000, Error(text="x" * 1000)),
    ],
)
def test_a_body_without_one(body: bytes, expected: Error) -> None:
    assert error_of(Got(Reply(), status=500, read_body=lambda: body)) == expected


def test_each_reason_is_explained() -> None:
    assert all(sentence and "{" not in sentence for sentence in meanings().values())
    assert {"id-duplicated", "server-error", "bad-request"} <= set(meanings())
