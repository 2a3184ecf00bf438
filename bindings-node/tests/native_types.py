"""The types of the native half, from what its macros say of it while it is compiled (NAPI_TYPE_DEF_TMP_FOLDER)."""

import json
import re

HEAD = """\
// Made from bindings-node/src by tests/run --types: do not edit. Private: programs use the classes over it.

/** Milliseconds. */
type Millis = number
/** Any number. */
type Real = number
/** Milliseconds since 1970. */
type Wall = number
type Whole = number | bigint
type Text = string
type Flag = boolean
type Delivered = Claim[]
/** The number of one. */
export type Bridge = number
/** The number of one. */
export type Lease = number
export type Granted = NewLease
/** The name of an exclusive lock, or a lock of any kind. */
export type Named = Text | Lock
"""


def native_types(folder):
    """The text of native.d.ts."""
    lines = [line for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]
    found = {}
    for item in map(json.loads, lines):
        # A class and its methods are two items, in any order.
        one = found.setdefault(item["name"], {"kind": "fn", "js_doc": "", "def": ""})
        if item["kind"] != "impl":
            one["kind"] = item["kind"]
        one["js_doc"] = one["js_doc"] or item["js_doc"]
        one["def"] = "\n".join(filter(None, [one["def"], item["def"]]))
    return HEAD + "".join("\n" + declared(name, **found[name]) for name in sorted(found))


def declared(name, kind, js_doc, **rest):
    text = re.sub(r"^ +", "", rest["def"], flags=re.M)
    if kind == "fn":
        return f"{js_doc}export {text}\n"
    if kind not in ("struct", "interface"):
        raise SystemExit(f"native_types.py knows no {kind}")
    head = f"export class {name}" if kind == "struct" else f"export interface {name}"
    body = "".join(f"  {line}\n" for line in text.splitlines())
    return f"{js_doc}{head} {{\n{body}}}\n"
