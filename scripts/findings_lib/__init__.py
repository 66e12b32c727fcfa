"""Writes docs/findings.md: what is said of each check, out of the checks themselves."""
