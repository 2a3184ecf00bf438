"""What each package offers, read from the package itself, must be what the core offers.

A difference needs a reason, in vectors/surface.json: a noun has `rust_only`, and by language (or "*", in each) `called`
(another name), `lacks` and `has` (more). One that is not there any more fails, too.
"""

import json
import re
import subprocess

from languages import ROOT, TARGET, TESTS, php, python

TOLD = json.loads((TESTS / "vectors" / "surface.json").read_text())


def snake(name):
    """maxHoldMs and MAX_HOLD_MS are max_hold: the unit is a matter of the language."""
    if not name.isupper():
        name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name)
    return re.sub(r"_ms$", "", name.lower())


def source(noun):
    """The name of a type, and the text of its layer of the core; of the faces the async one."""
    layer, name = noun["rust"].split(":")
    files = sorted((ROOT / "core" / "src" / layer).rglob("*.rs"))
    return name, "\n".join(file.read_text() for file in files if "blocking" not in file.parts)


def rust(noun):
    name, text = source(noun)
    # A macro that makes a type of words is named after it.
    start = rf"(?:pub (?:enum|struct) {name}(?:<[^>]*>)?|{name.lower()}!)"
    kind = re.search(rf"^{start} \{{\n(.*?)^\}}", text, re.M | re.S)
    if noun["kind"] == "words":
        return {snake(word) for word in re.findall(r"^    ([A-Z]\w+)(?:[,({ ]|$)", kind[1], re.M)}
    if noun["kind"] == "fields":
        return {snake(field) for field in re.findall(r"^    pub (\w+):", kind[1], re.M)}
    found = set()
    for block in re.findall(rf"^impl(?:<[^>]*>)? {name}(?:<[^>]*>)?(?:\nwhere\n.*?\n| )\{{\n(.*?)^\}}", text, re.M | re.S):
        found |= set(re.findall(r"^    pub (?:const |async )*fn (\w+)", block, re.M))
    return found


PYTHON = """
import dataclasses, inspect, json, re, stanchion
def members(thing, kind):
    if kind == 'words':
        return [one.value for one in thing]
    if kind == 'parameters':
        # Not what takes all other arguments, to refuse them.
        return [name for name, one in inspect.signature(thing).parameters.items()
                if name != 'self' and one.kind is not one.VAR_KEYWORD]
    if dataclasses.is_dataclass(thing):
        return [field.name for field in dataclasses.fields(thing)]
    found = [name for name in dir(thing) if not name.startswith('_')]
    for one in thing.__mro__[:-1]:
        found += re.findall(r'^        self\\.([a-z]\\w*)(?:: | = )', inspect.getsource(one), re.M)
    return found
nouns = json.loads(input())
found = {}
for name, (path, kind) in nouns.items():
    thing = stanchion
    for part in path.split('.'):
        thing = getattr(thing, part)
    found[name] = members(thing, kind)
print(json.dumps(found))
"""

PHP = r"""
require $argv[1];
$found = [];
foreach (json_decode($argv[2], true) as $noun => [$path, $kind]) {
    [$class, $method] = explode('::', "Stanchion\\$path::");
    $reflected = new ReflectionClass($class);
    if ($kind === 'words') {
        $found[$noun] = array_map(fn ($case) => $case->value, $class::cases());
    } elseif ($kind === 'parameters') {
        $found[$noun] = array_map(fn ($one) => $one->getName(), $reflected->getMethod($method)->getParameters());
    } elseif ($kind === 'fields') {
        $found[$noun] = array_map(fn ($one) => $one->getName(), $reflected->getProperties(ReflectionProperty::IS_PUBLIC));
    } else {
        $public = array_filter($reflected->getMethods(ReflectionMethod::IS_PUBLIC), fn ($one) =>
            !str_starts_with($one->getName(), '__') && !str_contains((string) $one->getDocComment(), '@internal'));
        $found[$noun] = array_map(fn ($one) => $one->getName(), array_values($public));
    }
}
echo json_encode($found, JSON_FORCE_OBJECT);
"""


def asked(language, nouns):
    """For the nouns of a language: where they are, and what is looked for."""
    return {name: noun[language] for name, noun in nouns.items() if isinstance(noun.get(language), list)}


def of_python(nouns):
    interpreter = python().command[0]
    found = subprocess.run(
        [interpreter, "-c", PYTHON], input=json.dumps(asked("python", nouns)), check=True, text=True,
        stdout=subprocess.PIPE)
    return json.loads(found.stdout)


def of_php(nouns):
    bootstrap = ROOT / "bindings-c" / "php" / "tests" / "bootstrap.php"
    found = subprocess.run(
        ["php", "-r", PHP, "--", bootstrap, json.dumps(asked("php", nouns))], check=True, text=True,
        stdout=subprocess.PIPE)
    return {name: list(words.values()) for name, words in json.loads(found.stdout).items()}


def of_node(nouns):
    folder = TARGET / "node-app" / "node_modules" / "stanchion" / "dist"
    text = "\n".join(path.read_text() for path in sorted(folder.glob("*.d.ts")))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = {}
    for noun, (name, kind) in asked("node", nouns).items():
        if kind == "words":
            union = re.search(rf"^export type {name} =(.*?)(?:;|\n\n|\nexport|\ndeclare|\Z)", text, re.M | re.S)
            found[noun] = re.findall(r"'(\w+)'", union[1])
        else:
            body = re.search(rf"^export (?:declare class|interface) {name}\b[^{{]*\{{\n(.*?)^\}}", text, re.M | re.S)
            found[noun] = re.findall(r"^    (?:readonly |get |static )?([a-z]\w*)\??[:(<]", body[1], re.M)
    return found


def of_c(nouns):
    text = (ROOT / "bindings-c" / "include" / "stanchion.h").read_text()
    found = {}
    for noun, (name, kind) in asked("c", nouns).items():
        if kind == "functions":
            found[noun] = re.findall(rf"^\w[\w ]*[ *]{name}(\w+)\(", text, re.M)
        elif kind == "fields":
            body = re.search(rf"^typedef struct {name} \{{\n(.*?)^\}}", text, re.M | re.S)
            fields = re.findall(r"^  [\w ]+[ *](\w+)(?:\[\d+\])?;", body[1], re.M)
            found[noun] = [field for field in fields if field not in C_SIZES]
        else:
            found[noun] = re.findall(rf"^  {name}(\w+) = ", text, re.M)
    return found


# What the fields beside them need.
C_SIZES = {"struct_size", "payload_len", "header_count", "id_len", "reason_len", "id_count", "receipt_count", "result_len",
           "after_count", "after_end_count", "after_failure_count"}
READERS = {"python": of_python, "node": of_node, "c": of_c, "php": of_php}


def differences():
    """What is wrong, each in a line."""
    base = {name: rust(noun) - set(noun.get("rust_only", {})) for name, noun in TOLD.items()}
    wrong = [f"{name}: rust has no {word} to be left out" for name, noun in TOLD.items()
             for word in set(noun.get("rust_only", {})) - rust(noun)]
    for language, read in READERS.items():
        for name, words in read(TOLD).items():
            wrong += compared(language, name, TOLD[name], base[name], {snake(word) for word in words})
    return wrong


def compared(language, name, noun, base, found):
    # "*": the same in each of them.
    told = {what: {**noun.get(what, {}).get("*", {}), **noun.get(what, {}).get(language, {})}
            for what in ("called", "lacks", "has")}
    expected = {told["called"].get(word, word) for word in base if word not in told["lacks"]} | set(told["has"])
    for missing in sorted(expected - found):
        yield f"{name}: {language} lacks {missing}"
    for more in sorted(found - expected):
        yield f"{name}: {language} has {more}, which the core does not"
    for word in sorted({*told["called"], *told["lacks"]} - base):
        yield f"{name}: {word} of {language} is explained, and is not there"
