"""Readers of the log: what a run amounts to at any of its entries, and everything that is shown of it.

model      the types of a view               answers    a view as JSON, for `show --json` and the API
run_view   the fold, at any entry; with      explain    why something ran, waits, was skipped or failed
           steps, components, contexts       canonical  the timeline that two equal runs share
links      what became of every link         headers    one run in a list of runs
           and arc, with rows
bars       bars of a timeline, marks of a    folded     runs that somebody looks at, held in memory
           slider, thinned as they grow      history    pages of events and of printed lines
moment     a run at a moment, for a page     values     its variables, inputs and results
timeline   when things ran and waited        ports      rows that came out of components
graph      ids of edges and frames           compare    what differs between two runs
"""
