"""Requests, replies and event streams as text for a person. Pure: no mitmproxy."""
