"""A loopback HTTP server that plays answers byte by byte: what the stand-in and `replay` share.

It knows HTTP and nothing of the protocols on top of it.
"""
