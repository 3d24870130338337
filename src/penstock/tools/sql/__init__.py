"""The SQL tools and what they share.

One path for all of them: parameters become a plan (`plan`), its texts are cut and bound by one lexer (`lexer`, `binding`),
a session of the driver runs the plan in one transaction, and what comes back is said in JSON (`values`, `results`).
"""
