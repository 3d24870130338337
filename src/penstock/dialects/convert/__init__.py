"""Documents rewritten: from other tools, and from older words, to documents of today.

frame       what a converter is, and what it says of a file; packages can bring more of them
playbooks   playbooks with words of other engines and of other days
layout      edits to the text of a file that leave what they do not touch as it is
"""
