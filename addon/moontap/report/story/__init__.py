"""What happened in a conversation, told in order for a person.

Turns and what was found in them in, lines of text out. Pure: no mitmproxy, no files, no clock.
"""
