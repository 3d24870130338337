"""The kinds of keychain entries and their fields, as the keychain itself knows them, in the words of the dialect."""

from __future__ import annotations

from dataclasses import replace

from docs.generator.markdown import code, page, table, words
from penstock.dialects.words import (
    KEYCHAIN_KIND_ALIASES,
    KEYCHAIN_KINDS,
    KEYCHAIN_WITHOUT_EFFECT,
    KEYCHAIN_WORD_ALIASES,
    NO_GOOGLE,
)
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
        "Fields may be templates. They see the inputs, a playbook's `workload` or a job's `context`, and the entries above: "
        "`{{ keychain.login.password }}`. What a template makes of a secret is a secret, and is made anew when the secret is "
        "renewed. Entries that do not read each other are resolved side by side.",
        *parts,
        "## Names that are not declared",
        "An `auth` that names no entry here means the one that is stored under that name, or the variable `PENSTOCK_<NAME>`, "
        "or its fields in `PENSTOCK_<NAME>_<FIELD>`. What it has to be follows from the tool:",
        table(
            ("tool", "text", "mapping"),
            [
                (
                    "`http` and others that ask web servers",
                    "a bearer token",
                    "`token`; `username` and `password`; `header` or `query`, and `value`",
                ),
                (
                    "databases",
                    "a connection URL",
                    "`host`, `port`, `user`, `password`, `database`; `db_host`, `db_port`, `db_user`, `db_password`, `db_name` "
                    "are read as these",
                ),
                ("files elsewhere", "", "what the place asks for, as on the page of the tool"),
            ],
        ),
        "A text of JSON is its mapping. A record as NoETL keeps it, `{name, type, data: {…}}`, is its `data`. What stands in the "
        "task itself goes before what is stored.",
        "A name that is written out, and a template over the inputs, is looked up before the run: when nothing has it there is "
        "no run, and the message says which command stores it and which variables are read. Any other template is looked "
        "up when its task starts. A name that a template gives reaches no variable without the prefix, and none of Penstock's "
        "own settings.",
        "## Words of other engines",
        table(("written", "read as"), _other_words()),
        "## Providers",
        "`provider` names where a secret comes from: `environment` (`PENSTOCK_<KEY>`, then the variable called like the key), "
        "`local` (the encrypted store that `penstock keychain set` writes), `vault` (HashiCorp Vault by HTTP). Without one "
        "`local` is asked first, then `environment`. Packages can add providers under the entry-point group "
        "`penstock.secret_providers`. Others, such as `gcp`, are refused.",
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
    for variant in kind.variants.values():
        # What the other form needs says which form it is.
        fields |= {name: replace(about, required=False) for name, about in variant.fields.items() if name not in fields}
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


def _other_words() -> list[tuple[str, str]]:
    rows = [("`type: …`", "`kind: …`, with a warning")]
    rows += [(f"`kind: {word}`", f"`kind: {today}`") for word, today in KEYCHAIN_KIND_ALIASES.items()]
    for kind, words_of in KEYCHAIN_WORD_ALIASES.items():
        rows += [(f"`{word}` of `{kind}`", f"`{today}`") for word, today in words_of.items()]
    ignored = ", ".join(f"`{word}`" for word in KEYCHAIN_WITHOUT_EFFECT)
    rows.append(
        (
            ignored,
            "nothing: a run resolves its own entries. Of `oauth2` with a `token_url`, `scope` is what is asked for.",
        )
    )
    rows.append(("`kind: google_…`", f"refused: {NO_GOOGLE}"))
    return rows


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
