"""What is checked in a job once it is put together: parameters, literals, names in expressions, and lint."""
