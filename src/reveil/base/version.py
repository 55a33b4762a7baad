"""Which version this is: the only place that says it (the build reads it from here)."""

__version__ = "0.1.0"
