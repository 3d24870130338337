"""Files as things: copied, moved, packed, compared and sent. What is in them is the business of `read_*` and `write_*`."""
