"""The one error of the benchmark."""


class BenchError(Exception):
    """A measurement could not be made; the message says why in a sentence."""
