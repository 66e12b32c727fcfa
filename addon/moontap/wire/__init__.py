"""Bytes <-> meaning for the protocols moontap reads. Pure: no mitmproxy, no files, no clock.

One module a protocol; each offers the names listed in `wire.protocol.Wire` and yields the
small types of `wire.types`.
"""
