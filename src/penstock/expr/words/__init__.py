"""The filters, tests, functions and methods of the expression language, and the one table that lists them."""
