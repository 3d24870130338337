"""The orchestration and file components that are built in: type -> where its class is."""

from __future__ import annotations

_FLOW = "penstock.components.flow"
_FILES = "penstock.components.files"

TABLE: dict[str, str] = {
    "run_job": f"{_FLOW}.children:RunJob",
    "playbook": f"{_FLOW}.children:Playbook",
    "iterate_rows": f"{_FLOW}.iterate_rows:IterateRows",
    "iterate_groups": f"{_FLOW}.iterate_rows:IterateGroups",
    "iterate_list": f"{_FLOW}.iterate_values:IterateList",
    "iterate_range": f"{_FLOW}.iterate_values:IterateRange",
    "iterate_while": f"{_FLOW}.iterate_values:IterateWhile",
    "iterate_files": f"{_FLOW}.iterate_files:IterateFiles",
    "iterate_query": f"{_FLOW}.iterate_query:IterateQuery",
    "pre_job": f"{_FLOW}.markers:PreJob",
    "post_job": f"{_FLOW}.markers:PostJob",
    "noop": f"{_FLOW}.markers:Noop",
    "set_global": f"{_FLOW}.variables:SetGlobal",
    "context_load": f"{_FLOW}.context_load:ContextLoad",
    "die": f"{_FLOW}.ending:Die",
    "warn": f"{_FLOW}.ending:Warn",
    "log_catcher": f"{_FLOW}.measures:LogCatcher",
    "flow_meter": f"{_FLOW}.measures:FlowMeter",
    "stats": f"{_FLOW}.measures:Stats",
    "sleep": f"{_FLOW}.waiting:Sleep",
    "wait_for_file": f"{_FLOW}.waiting:WaitForFile",
    "wait_for_rows": f"{_FLOW}.waiting:WaitForRows",
    "shell": f"{_FLOW}.commands:Shell",
    "mail": f"{_FLOW}.mail:Mail",
    "http_call": f"{_FLOW}.http_call:HttpCall",
    "file_copy": f"{_FILES}.changes:FileCopy",
    "file_move": f"{_FILES}.changes:FileMove",
    "file_delete": f"{_FILES}.changes:FileDelete",
    "file_touch": f"{_FILES}.changes:FileTouch",
    "file_exists": f"{_FILES}.looking:FileExists",
    "file_properties": f"{_FILES}.looking:FileProperties",
    "file_list": f"{_FILES}.looking:FileList",
    "file_compare": f"{_FILES}.looking:FileCompare",
    "file_checksum": f"{_FILES}.looking:FileChecksum",
    "file_archive": f"{_FILES}.archive:FileArchive",
    "file_unarchive": f"{_FILES}.unarchive:FileUnarchive",
    "file_transfer": f"{_FILES}.transfer:FileTransfer",
}
