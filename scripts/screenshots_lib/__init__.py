"""`scripts/screenshots`: the pictures of docs/images."""
