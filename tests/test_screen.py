"""What mitmdump prints holds no secret, at any level of detail."""

import io
import logging

import pytest
from mitmproxy import http
from mitmproxy.addons.dumper import Dumper
from mitmproxy.test import taddons, tflow

from moontap.addon import Moontap
from moontap.screen import MaskedOut, mask_log

KEY = "sk-ABCDEFGHIJ0123456789abcdefghij"


@pytest.mark.parametrize("detail", [1, 2, 3, 4])
def test_keys_in_the_address_headers_and_body(detail: int) -> None:
    flow = tflow.tflow(resp=True)
    url = f"https://api.moonshot.cn/v1/models?api_key={KEY}"
    headers = ((b"Authorization", b"Bearer an-unshapely-secret"), (b"x-api-key", KEY.encode()))
    flow.request = http.Request.make("POST", url, f"my key is {KEY}", headers)
    out = io.StringIO()
    dumper = Dumper(out)
    with taddons.context(dumper) as context:
        context.configure(dumper, flow_detail=detail, dumper_default_contentview="raw")
        context.master.addons.add(moontap := Moontap())
        moontap.running()
        dumper.response(flow)
    assert "/v1/models" in out.getvalue()
    assert KEY not in out.getvalue()
    assert "unshapely" not in out.getvalue()


def test_all_else_is_the_streams_own() -> None:
    out = io.StringIO()
    masked = MaskedOut(out, str.upper)
    assert masked.write("abc") == 3
    assert out.getvalue() == "ABC"
    assert masked.isatty() is False
    assert masked.getvalue() == "ABC"


def test_the_log_is_masked(caplog: pytest.LogCaptureFixture) -> None:
    mask_log(lambda text: text.replace(KEY, "***"))
    logging.getLogger("mitmproxy").warning("bad line: %r", KEY)
    (record,) = caplog.records
    assert record.getMessage().startswith("bad line: '*")
    assert KEY not in record.getMessage()
