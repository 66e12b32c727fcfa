"""The parts of `moontap demo`: a task for the stand-in model, and an agent to do it."""
