"""The forms of names in requests, and each in words."""

from __future__ import annotations

SLUG = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
CATALOG_PATH = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$"

PATTERNS = {
    SLUG: "a name has up to 100 letters, digits, `.`, `_` and `-`, and a letter or digit first",
    CATALOG_PATH: "a path in the catalog is names of letters, digits, `.`, `_` and `-` with `/` between them, such as "
    "`sales/orders`",
}
