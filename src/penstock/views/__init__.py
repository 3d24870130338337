"""Readers of the log: what a run amounts to at any of its entries, and everything that is shown of it.

model      the types of a view              links      what became of every link and arc, with rows
run_view   the fold; with steps,            answers    a view as JSON, for `show --json` and the API
           components, resumes, contexts    explain    why something ran, waits, was skipped or failed
moments    a run at any entry; snapshots    canonical  the timeline that two equal runs share
"""
