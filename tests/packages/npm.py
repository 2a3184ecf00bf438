"""The packages for npm: as files, and from a registry of our own; in Node, Bun and Deno."""

import json
import shutil
import sys

from dist import SAID, bring, example, installed, only, refused, says, times, with_url
from registry import HERE, Registry, described
from roots import ROOT, WORK, Missing

sys.path.insert(0, str(ROOT / "bindings-node"))
import build  # noqa: E402

PLACE = ROOT / "tests" / "packages"
QUIET = "--ignore-scripts --no-audit --no-fund"
# As root, the older yarn has its cache in the system.
YARN_CACHE = ".yarn-cache"
# Bun's and Deno's are programs that are called directly: no script of these packages is run.
TOOLS = {
    "pnpm": "/tools/@pnpm/exe.linux-x64/pnpm",
    "yarn": "node /tools/yarn/bin/yarn.js",
    "berry": "node /tools/@yarnpkg/cli-dist/bin/yarn.js",
    "bun": "/tools/@oven/bun-linux-x64/bin/bun",
    "deno": "/tools/@deno/linux-x64-glibc/deno",
}
INSTALL = {
    "pnpm": "install --ignore-scripts",
    "yarn": f"install --ignore-scripts --non-interactive --cache-folder {YARN_CACHE}",
    "berry": "install",
    "bun": "install --ignore-scripts",
    "deno": "install",
}


def version():
    return described(only("stanchion-[0-9]*.tgz").read_bytes())["version"]


def javascript(url):
    """README's first example: without its types it is JavaScript."""
    return with_url(example("bindings-node", "ts"), url).replace("<{ to: string }>", "") + "\nawait client.close()\n"


def commonjs(url):
    head, body = javascript(url).split("\n", 1)
    assert "const { connect } = require('stanchion')" in head, head
    return f"const {{ connect }} = require('stanchion')\nvoid (async () => {{\n{body}}})()\n"


def write(place, url):
    (place / "example.mjs").write_text(javascript(url))
    (place / "example.cjs").write_text(commonjs(url))
    (place / "example.ts").write_text(with_url(example("bindings-node", "ts"), url) + "\nawait client.close()\n")


def project(root, name, url, registry):
    """A project that asks for the package of that registry, not installed yet."""
    place, inside = root.fresh(name)
    (place / "package.json").write_text(json.dumps({"private": True, "dependencies": {"stanchion": version()}}))
    (place / ".npmrc").write_text(f"registry={registry.url}/\n")
    write(place, url)
    return place, inside


def kept_tools(root):
    """Other package managers and runtimes, as the lock file has them, in the root."""
    place = WORK.parent / "npm-tools"
    lock, mark = PLACE / "npm-tools" / "package-lock.json", place / "package-lock.json"
    if not mark.exists() or mark.read_text() != lock.read_text():
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(PLACE / "npm-tools", place)
        try:
            build.run("npm", "ci", *build.QUIET, cwd=place, stdout=sys.stderr)
        except build.subprocess.CalledProcessError as error:
            mark.unlink()
            raise Missing("npm cannot fetch tests/packages/npm-tools here") from error
    inside = root.place / "tools"
    shutil.rmtree(inside, ignore_errors=True)
    # They are large.
    build.run("cp", "--archive", "--link", place / "node_modules", inside)


def tool(root, name):
    kept_tools(root)
    program = TOOLS[name]
    if not (root.place / program.split()[-1].lstrip("/")).exists():
        raise Missing(f"{name} has no package for this machine")
    return program


def has_its_own(place):
    """Whether the package of this platform was installed, and none of another system or processor. Fetched is more than
    that: the older yarn looks into all of them."""
    found = [file for file in place.rglob("package.json") if YARN_CACHE not in file.parts]
    check_own({json.loads(file.read_text()).get("name", "") for file in found})


def check_own(names):
    natives = {name for name in names if name.startswith("@stanchion/")}
    assert f"@stanchion/{HERE}" in natives and all("linux-x64" in name for name in natives), natives


def npm(root, url):
    place, inside = root.fresh("npm")
    bring(place, "stanchion-[0-9]*.tgz", f"stanchion-{HERE}-*.tgz")
    (place / "package.json").write_text('{ "private": true }\n')
    write(place, url)
    took = installed(root, f"npm install --offline {QUIET} ./*.tgz", inside)
    ran = says(root, "node example.mjs", inside)
    says(root, "node example.cjs", inside)
    return times(took, ran)


def managed(name):
    """The case of another package manager."""
    def case(root, url):
        program = tool(root, name)
        with Registry() as registry:
            place, inside = project(root, name, url, registry)
            if name == "berry":
                settings(place, registry, "node-modules")
            took = installed(root, f"{program} {INSTALL[name]}", inside)
        has_its_own(place)
        ran = says(root, "node example.mjs", inside)
        says(root, "node example.cjs", inside)
        return times(took, ran)

    return case


def settings(place, registry, linker):
    """What the newer yarn reads instead of .npmrc."""
    (place / ".yarnrc.yml").write_text(json.dumps({
        "nodeLinker": linker, "npmRegistryServer": registry.url, "unsafeHttpWhitelist": ["127.0.0.1"], "enableScripts": False,
        "enableTelemetry": False,
        # Else the loader for ES modules is there only if the project or a package has `"type": "module"`.
        "pnpEnableEsmLoader": True}))


def pnp(root, url):
    """Without node_modules: yarn keeps packages in archives, and takes those with native code out by itself."""
    program = tool(root, "berry")
    with Registry() as registry:
        place, inside = project(root, "pnp", url, registry)
        settings(place, registry, "pnp")
        took = installed(root, f"{program} {INSTALL['berry']}", inside)
    check_own(registry.fetched)
    assert not (place / "node_modules").exists() and list((place / ".yarn/unplugged").rglob("stanchion.node"))
    ran = says(root, f"{program} node example.mjs", inside)
    says(root, f"{program} node example.cjs", inside)
    return times(took, ran)


def runtime(name, command):
    """The case of another runtime, which installs, too, and runs README's first example as it is."""
    def case(root, url):
        program = tool(root, name)
        with Registry() as registry:
            place, inside = project(root, name, url, registry)
            env = {"DENO_NO_UPDATE_CHECK": "1"}
            took = installed(root, f"{program} {INSTALL[name]}", inside, **env)
            has_its_own(place)
            ran = says(root, f"{program} {command} example.ts", inside, **env)
        return times(took, ran)

    return case


def workspace(root, url):
    """A package in a folder of npm's workspaces."""
    with Registry() as registry:
        place, inside = project(root, "workspace", url, registry)
        app = place / "packages" / "app"
        app.mkdir(parents=True)
        shutil.copy(place / "package.json", app)
        (place / "package.json").write_text(json.dumps({"private": True, "workspaces": ["packages/*"]}))
        (app / "package.json").write_text(json.dumps({"name": "app", "version": "1.0.0", "dependencies": {"stanchion": version()}}))
        write(app, url)
        took = installed(root, f"npm install {QUIET}", inside)
    has_its_own(place)
    return times(took, says(root, "node example.mjs", f"{inside}/packages/app"))


def workers(root, url):
    """Two threads load the package at once, and the lock excludes them."""
    place, inside = root.fresh("workers")
    bring(place, "stanchion-[0-9]*.tgz", f"stanchion-{HERE}-*.tgz")
    (place / "package.json").write_text('{ "private": true }\n')
    (place / "workers.mjs").write_text((PLACE / "workers.mjs").read_text())
    installed(root, f"npm install --offline {QUIET} ./*.tgz", inside)
    done = root.run("node workers.mjs", inside, STANCHION_URL=url)
    assert done.returncode == 0 and done.stdout == "100 turns, 0 of them beside another\n", done.stdout
    return done.stdout.strip()


def locked(root):
    """The lock file of somebody whose npm has left out all platforms but theirs."""
    with Registry() as registry:
        place, inside = project(root, "locked", "sqlite:app.db", registry)
        lock = place / "package-lock.json"
        installed(root, f"npm install --package-lock-only {QUIET}", inside)
        found = json.loads(lock.read_text())
        kept = {name: entry for name, entry in found["packages"].items()
                if "@stanchion/" not in name or name.endswith("/darwin-arm64")}
        assert len(kept) < len(found["packages"]) and "node_modules/@stanchion/darwin-arm64" in kept, found
        lock.write_text(json.dumps({**found, "packages": kept}))
        wanted = f"@stanchion/{HERE}"
        for command in ("npm ci", "npm install"):
            installed(root, f"rm -rf node_modules && {command} {QUIET}", inside)
            if f"node_modules/{wanted}" not in json.loads(lock.read_text())["packages"]:
                refused(root, "node example.mjs", inside, f"stanchion needs the package {wanted}, an optional dependency",
                        "npm/cli/issues/4828", "removing node_modules and package-lock.json",
                        f"npm install {wanted}@{version()}")
        # Both pieces of advice, each on its own.
        before = lock.read_text(), (place / "package.json").read_text()
        installed(root, f"npm install {QUIET} {wanted}@{version()}", inside)
        says(root, "node example.mjs", inside)
        lock.write_text(before[0])
        (place / "package.json").write_text(before[1])
        installed(root, f"rm -r node_modules package-lock.json && npm install {QUIET}", inside)
        says(root, "node example.mjs", inside)
    return "the error says what is missing, and both of its remedies help"


def types(root):
    """The types as TypeScript finds them in the package, those of the package itself checked as well."""
    place, inside = root.fresh("types")
    bring(place, "stanchion-[0-9]*.tgz", f"stanchion-{HERE}-*.tgz")
    (place / "package.json").write_text('{ "private": true }\n')
    installed(root, f"npm install --offline {QUIET} ./*.tgz", inside)
    modules = build.tools()
    code = example("bindings-node", "ts")
    common = "import stanchion = require('stanchion')\nconst made: Promise<stanchion.Client> = stanchion.connect()\nvoid made\n"
    wrong = "import { connect } from 'stanchion'\nconst made: number = connect()\n"
    options = ["--noEmit", "--strict", "--skipLibCheck", "false", "--types", "node", "--target", "es2022", "--lib",
               "es2022,esnext.disposable"]
    for resolution, module, files in (
            ("nodenext", "nodenext", {"a.mts": code, "b.cts": common, "c.mts": "import 'stanchion/testing'\n"}),
            ("bundler", "esnext", {"a.ts": code, "c.ts": "import 'stanchion/testing'\n"})):
        folder = place / resolution
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        asked = [*options, "--module", module, "--moduleResolution", resolution]
        build.tsc(modules, *asked, *sorted(folder.iterdir()), cwd=folder)
        (folder / "wrong.mts").write_text(wrong)
        try:
            build.tsc(modules, *asked, folder / "wrong.mts", cwd=folder, stdout=build.subprocess.PIPE)
        except build.subprocess.CalledProcessError as error:
            assert b"not assignable to type 'number'" in error.stdout, error.stdout
        else:
            raise AssertionError(f"{resolution}: what is wrong passes")
    return "nodenext and bundler"


CASES = {
    "npm": npm, "workspace": workspace, "workers": workers, "pnpm": managed("pnpm"), "yarn": managed("yarn"),
    "berry": managed("berry"), "pnp": pnp, "bun": runtime("bun", "run"), "deno": runtime("deno", "run --allow-all"),
}
ONCE = {"locked": locked, "types": types}
