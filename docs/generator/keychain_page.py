"""The kinds of keychain entries and their fields, as the keychain itself knows them, in the words of the dialect."""

from __future__ import annotations

from docs.generator.markdown import code, page, table, words
from penstock.dialects.words import KEYCHAIN_KINDS
from penstock.keychain.kinds import KINDS, Field, Kind


def keychain_page() -> str:
    parts, examples = [], words("keychain")["examples"]
    for name, kind in KINDS.items():
        parts += [f"## {name}", *_kind(name, kind, examples[name])]
    return page(
        "Keychain entries",
        "`keychain` lists the secrets a playbook or job needs. They are resolved before the run begins; when one is missing "
        "there is no run. `{{ keychain.<name> }}` stands for the value in parameters of tools and components and nowhere else. "
        "For kinds with several fields it is a mapping: `{{ keychain.<name>.<field> }}`. Those that log in take the name itself: "
        "`auth: <name>`.",
        "A field that is a secret is best written as `{env: NAME}`, `{file: path}` or `{secret: key}`, so that it is not in "
        "the document. A kind with fields that is given none of them is looked up under its own name: in the local "
        "keychain, then in the variable `PENSTOCK_<NAME>`, then field by field in `PENSTOCK_<NAME>_<FIELD>`.",
        *parts,
        "## Providers",
        "`provider` names where a secret comes from: `environment` (`PENSTOCK_<KEY>`, then the variable called like the key), "
        "`local` (the encrypted store that `penstock keychain set` writes), `vault` (HashiCorp Vault by HTTP). Without one "
        "`local` is asked first, then `environment`. Packages can add providers under the entry-point group "
        "`penstock.secret_providers`.",
        "Vault is asked at `VAULT_ADDR` with the token in `VAULT_TOKEN` (and `VAULT_NAMESPACE`, if there is one), or at the "
        "entry's own `address`, `token` and `namespace`. It must be a key-value engine of version 2. The key is a path as "
        "`vault kv get` takes it, with the mount first: `secret/apps/shop`. With `mount: team-a` it is the path inside that "
        "mount, and `version: 3` asks for an older version.",
    )


def _kind(name: str, kind: Kind, example: str) -> list[str]:
    scope = KEYCHAIN_KINDS[name]
    fields = dict(kind.fields)
    if kind.is_provided:
        fields |= {field: Field() for field in ("provider", "key", "field")}
    rows = []
    for field, about in fields.items():
        word = scope.words.get(field)
        traits = [text for text, holds in (("required", about.required), ("secret", about.secret)) if holds]
        rows.append((f"`{field}`", ", ".join(traits), word.about if word is not None else ""))
    return [
        scope.about,
        table(("field", "", "what it is"), rows),
        code("yaml", f"keychain:\n{_indented(example)}"),
    ]


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
