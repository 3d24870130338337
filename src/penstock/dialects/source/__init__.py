"""YAML text as a tree in which every value has its position in the file; the only package that parses YAML."""
