"""The checks, one a module. Each holds a `CHECK` (see `findings.types.Check`) and its `look`."""
