"""Components that change what stands in columns, and that tell rows apart."""
