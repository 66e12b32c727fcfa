"""`moontap probe`: whether a server gives one tool-call id to several calls, found out by asking.

Nothing here is imported by the tap; it uses the tap as an agent would.
"""
