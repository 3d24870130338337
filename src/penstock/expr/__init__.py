"""Expressions: the template language inside documents, with its parser, its words, its evaluator and its plan-time check."""
