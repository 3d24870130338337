"""Components that check rows, and say what is in them."""
