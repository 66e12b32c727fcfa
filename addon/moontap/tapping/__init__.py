"""A tap in this process, for whatever needs one: the commands, the demo, the probe, tests.

Settings and an upstream in, a URL to give to an agent out. It knows no command line.
"""
