"""The transforms, by type. Nothing is imported before a job names it."""

from __future__ import annotations

_FOLDER = "penstock.components.transform"

TABLE: dict[str, str] = {
    "aggregate": f"{_FOLDER}.grouping:Aggregate",
    "denormalise": f"{_FOLDER}.grouping:Denormalise",
    "derive": f"{_FOLDER}.columns:Derive",
    "fill_down": f"{_FOLDER}.neighbours:FillDown",
    "filter": f"{_FOLDER}.filtering:Filter",
    "join": f"{_FOLDER}.joining:Join",
    "lookup": f"{_FOLDER}.looking_up:Lookup",
    "map": f"{_FOLDER}.mapping:Map",
    "normalise": f"{_FOLDER}.unfolding:Normalise",
    "pivot": f"{_FOLDER}.pivoting:Pivot",
    "replicate": f"{_FOLDER}.stacking:Replicate",
    "sample": f"{_FOLDER}.filtering:Sample",
    "select": f"{_FOLDER}.columns:Select",
    "sequence": f"{_FOLDER}.neighbours:Sequence",
    "sort": f"{_FOLDER}.sorting:Sort",
    "sql": f"{_FOLDER}.query:Sql",
    "top": f"{_FOLDER}.filtering:Top",
    "union": f"{_FOLDER}.stacking:Union",
    "unique": f"{_FOLDER}.filtering:Unique",
    "unpivot": f"{_FOLDER}.unfolding:Unpivot",
    "window": f"{_FOLDER}.neighbours:Window",
}
