"""Makes the flow files of `flows/` again.

`scripts/record-flows` calls it. Recipes (`recipes/`) say who talks to whom; `scene` lets them do
so through the real tap; `settle` takes out of the result what changes from run to run.
"""
