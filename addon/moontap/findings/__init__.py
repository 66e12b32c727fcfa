"""What went wrong, where, and who most likely caused it.

Turns of conversations in, findings out. Pure: no mitmproxy, no files, no clock.
"""
