"""The `container` tool: one image, run as one job by whatever runs containers here."""
