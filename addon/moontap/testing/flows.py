"""Flow files as tests read them. Paths in, flows or lines out. Imports mitmproxy."""

from pathlib import Path

from mitmproxy import http

from moontap.capture.diagnosis import Diagnosis
from moontap.capture.pairlog import Line
from moontap.capture.reader import FlowFile, flow_files
from moontap.care.relog import Seen, relog
from moontap.findings.lines import line


def flows(path: Path) -> list[http.HTTPFlow]:
    """The exchanges of a flow file or capture folder. Raises Unreadable."""
    return [flow for file in flow_files([path]) for flow in FlowFile(file)]


def lines(path: Path) -> list[Line]:
    """The pairs of a flow file or capture folder, made anew, file by file. Raises Unreadable."""
    return [line for file in flow_files([path]) for line in relog(FlowFile(file), Seen())]


def findings(path: Path) -> list[Line]:
    """What went wrong in a flow file or capture folder, file by file. Raises Unreadable."""
    return [
        line(finding)
        for file in flow_files([path])
        for looked in Diagnosis().flows(FlowFile(file))
        for finding in looked.findings
    ]
