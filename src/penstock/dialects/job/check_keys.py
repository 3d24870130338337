"""Keys of mappings in parameters: they are never rendered, and those of `set_global` are names."""

from __future__ import annotations

from penstock.dialects.job.expand import Unit
from penstock.dialects.job.level import SET_GLOBAL
from penstock.dialects.job.reader import Reading
from penstock.dialects.reader import template_keys_in
from penstock.expr.job_names import why_not_a_global
from penstock.expr.lexer import is_template


def check_keys(reading: Reading, unit: Unit) -> None:
    for node in unit.params.values():
        for key, place in template_keys_in(node):
            message = f"a key is not rendered, so the template in `{key}` would stay as it is (in `{unit.name}`)"
            hint = 'write the key out, or make the whole mapping of one template: `"{{ {…} }}"`'
            reading.report("TEMPLATE_KEY", message, place, hint=hint)
    values = unit.params.get("values") if unit.type == SET_GLOBAL else None
    for name, place in values.keys.items() if values is not None else ():
        reason = None if is_template(name) else why_not_a_global(name)
        if reason is not None:
            reading.report("BAD_GLOBAL", reason, place)
