"""What people read: tables and summaries, made from log lines and counts."""
