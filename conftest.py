"""Collects saved flows as tests, from wherever pytest is started; see tests/golden/collect.py."""

from tests.golden.collect import (
    pytest_addoption,
    pytest_collect_file,
    pytest_terminal_summary,
)

__all__ = ["pytest_addoption", "pytest_collect_file", "pytest_terminal_summary"]
