"""Collections that loops read page by page: rows of a query, lines and row groups of files, files, objects, HTTP pages."""
