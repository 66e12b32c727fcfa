"""Saved flows cared for: cut, compared, and made fit to be committed or handed on.

For the last `scrub` is the way in: `words` finds what the rules name, `likeness` makes what takes
its place, `identities` learns who a file is about, `places` says where something stands.
"""
