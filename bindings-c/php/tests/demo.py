"""The PHP part of `make demo`: buyers in PHP beside those in Rust, in one sale."""

import os

from stores import PACKAGE, PROJECT, TARGET, run

BUYERS = PACKAGE / "demo" / "buyers.php"


class Demo:
    def __init__(self, stores, library, alone):
        self.stores, self.library = stores, library
        packages = ["-p", "stanchion"] if alone else ["--workspace"]
        run("cargo", "build", "--quiet", "--locked", *packages, "--example", "flash_sale", cwd=PROJECT, check=True,
            env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)})

    def hold(self, url, buyers):
        env = {name: value for name, value in os.environ.items() if name != "STANCHION_URL"}
        env |= {"STANCHION_LIB": str(self.library)} | ({"STANCHION_URL": url} if url else {})
        command = [TARGET / "debug" / "examples" / "flash_sale", "--buyers", "PHP", "php", buyers]
        return run(*command, env=env, capture_output=True, timeout=120)

    def test_buyers_in_php_and_rust_share_ten_items(self):
        for url in (None, self.stores.redis(7)):
            done = self.hold(url, BUYERS)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "buyers served: 1,000 in Rust, 1,000 in PHP\n" in done.stdout, done.stdout
            assert "sold 10 of 10, to 10 different buyers" in done.stdout, done.stdout
            assert "fences: 2,000, every one larger than the one before" in done.stdout, done.stdout

    def test_buyers_that_do_not_lock_break_the_promise(self):
        program = BUYERS.read_text().replace("$name === NO_LOCK", "true")
        program = program.replace("__DIR__ . '/../src/'", f"'{PACKAGE}/src/'")
        wrong = self.stores.folder / "buyers.php"
        wrong.write_text(program)
        done = self.hold(None, wrong)
        assert done.returncode == 1 and "WRONG" in done.stdout, done.stdout + done.stderr

    def all(self):
        return {name: getattr(self, name) for name in dir(self) if name.startswith("test_")}
