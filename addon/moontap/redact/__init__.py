"""Secrets out of what goes to a disk or a screen.

`flow` is the way in. `secrets` knows what a secret looks like, `body` masks one body, `views`,
`jsontree` and `channels` find text that JSON, escapes and stream deltas have taken apart.
"""
