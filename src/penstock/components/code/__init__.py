"""Components that run the author's own code."""
