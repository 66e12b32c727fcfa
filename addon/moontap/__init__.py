"""moontap: record, pair and repair the tool calls between an agent and a Kimi model."""

__version__ = "0.1.0"
