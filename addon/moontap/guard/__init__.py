"""What is done about an agent that gets nowhere: it is reminded, or its next request is answered.

Requests and replies in, decisions out. Pure: no mitmproxy, no files, no clock.
"""
