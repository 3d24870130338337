"""The expression layer: what templates and conditions mean, what they may not do, and what is said about them before the run."""
