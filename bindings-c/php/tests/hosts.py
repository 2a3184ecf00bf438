"""Tests of the package under php-fpm and nginx: what a request leaves behind, and what a process keeps."""

from fpm import CHILDREN, Site
from stores import HERE, PACKAGE, until

PROGRAMS = HERE / "programs"


class Hosts:
    def __init__(self, stores, library):
        self.stores, self.library = stores, library

    def site(self, name, database, **options):
        return Site(self.stores.folder / name, self.library, PROGRAMS, self.stores.redis(database), **options)

    def held(self, database):
        return self.stores.ask("EXISTS", "Lock:site", database=database) == "1"

    def test_requests_under_load(self):
        """No request fails, no child dies or grows, and each child has as many connections as it ever needs."""
        with self.site("load", 1) as site:
            assert site.load("site.php?do=pair&name=warm", 400, 8) == 400, site.log()
            pids, before = site.pids(), site.memory()
            connections = self.connections()
            assert site.load("site.php?do=pair", 3000, 16) == 3000, site.log()
            assert site.load("site.php?do=task", 1000, 16) == 1000, site.log()
            assert site.pids() == pids and len(pids) == CHILDREN, site.log()
            grown = {pid: kib - before[pid] for pid, kib in site.memory().items()}
            assert max(grown.values()) < 4096, grown
            after = self.connections()
            # One for calls, one more while others wait in line, one that is told of hand-overs.
            assert CHILDREN <= after <= 3 * CHILDREN, (connections, after)
            assert not self.held(1)

    def connections(self):
        lines = self.stores.ask("CLIENT", "LIST").splitlines()
        return sum("db=1 " in line or "cmd=subscribe" in line for line in lines)

    def test_what_a_request_leaves(self):
        """Leases and claims end with the request that has them, however it ends; a killed one's by itself."""
        with self.site("left", 2) as site:
            for how in ("leave", "exit", "fatal"):
                status, body = site.get(f"site.php?do={how}")
                assert status == 500 if how == "fatal" else body.startswith("ok "), (how, status, body, site.log())
                until(lambda: not self.held(2), f"free after {how}", 5)
            status, body = site.get("site.php?do=kill")
            assert status == 502, (status, body, site.log())
            until(lambda: not self.held(2), "free after a kill", 5)
            assert site.get("site.php?do=pair")[0] == 200

    def test_an_owner_leaves_with_its_request(self):
        """Under the name that it had, the next request of the process does not find itself inside."""
        with self.site("kinds", 10, children=1) as site:
            for how in ("", "&fatal=1"):
                pids = site.pids()
                status, body = site.get(f"site.php?do=kinds{how}")
                assert status == 500 if how else body.startswith("ok "), (how, status, body, site.log())
                until(lambda: not self.held(10), f"free after{how}", 5)
                assert site.get("site.php?do=pair")[0] == 200 and site.pids() == pids, site.log()
            assert site.load("site.php?do=kinds", 200, 8) == 200, site.log()

    def test_a_drop_in_s_lock_outlives_its_request(self):
        """Whoever does not unlock it has locked it until it expires, however the request ends, and for no longer."""
        with self.site("drop-in", 7, children=1) as site:
            for number, how in enumerate(("drop-in", "drop-in&fatal=1", "late")):
                name = f"kept{number}"
                site.get(f"site.php?do={how}&name={name}")
                left = int(self.stores.ask("PTTL", f"Lock:{name}", database=7))
                assert 30_000 < left <= 60_000, (how, left, site.log())
                assert "busy" in site.get(f"site.php?do=drop-in&name={name}")[1]
                # Nothing of it is left in the process that would renew it.
                assert self.stores.ask("PEXPIRE", f"Lock:{name}", "1", database=7) == "1"
                until(lambda: "locked" in site.get(f"site.php?do=drop-in&name={name}")[1], f"free after {how}")

    def test_claims_that_memory_does_not_hold(self):
        with self.site("memory", 8) as site:
            status, body = site.get("site.php?do=claims")
            assert status == 500 and "Allowed memory size" in site.log(), (status, body, site.log())
            until(lambda: self.stores.ask("ZCARD", "stanchion:claimed:{Queue:site}", database=8) == "0", "claims end", 10)
            assert self.stores.ask("HLEN", "stanchion:state:{Queue:site}", database=8) == "6"

    def test_what_a_request_cannot_let_go_of(self):
        """If it has no memory for its end, or is not let to it, the next request of the process frees what it has."""
        with self.site("next", 9, children=1) as site:
            for how in ("deep", "cut"):
                assert self.stores.ask("ZADD", f"Queue:{how}", "1", "task", database=9) == "1"
                assert site.get(f"site.php?do={how}&name={how}")[0] == 500, site.log()
                pids = site.pids()
                assert site.get("site.php")[0] == 200 and site.pids() == pids, site.log()
                until(lambda: self.stores.ask("EXISTS", f"Lock:{how}", database=9) == "0", f"free after {how}", 5)
                claimed = f"stanchion:claimed:{{Queue:{how}}}"
                until(lambda: self.stores.ask("ZCARD", claimed, database=9) == "0", f"no claim after {how}", 5)
                assert self.stores.ask("HLEN", f"stanchion:state:{{Queue:{how}}}", database=9) == "1"

    def test_claims_come_back(self):
        with self.site("claims", 3) as site:
            assert self.stores.ask("ZADD", "Queue:site", "1", "task", database=3) == "1"
            assert site.get("site.php?do=leave")[0] == 200, site.log()
            # Failed, and due again after a pause: no longer claimed for 60 s.
            until(lambda: site.get("site.php?do=task")[0] == 200 and
                  self.stores.ask("HLEN", "stanchion:state:{Queue:site}", database=3) == "0", "the task is done", 20)

    def test_a_process_keeps_its_connection(self):
        with self.site("kept", 4, children=1) as site:
            assert site.get("site.php?do=pair")[0] == 200, site.log()
            self.stores.ask("CONFIG", "RESETSTAT")
            for _ in range(20):
                assert site.get("site.php?do=pair")[0] == 200, site.log()
            received = self.stores.ask("INFO", "stats")
            opened = int(received.split("total_connections_received:")[1].split()[0])
            # That of redis-cli itself.
            assert opened <= 1, opened

    def test_without_preload(self):
        """FFI is disabled in FPM unless something is preloaded or the setting changed, and the error says so."""
        with self.site("restricted", 5, preload=False) as site:
            assert site.get("site.php?do=pair")[0] == 500
            assert "LibraryUnavailable: PHP's FFI is disabled here (ffi.enable = preload)" in site.log(), site.log()
        with self.site("enabled", 5, preload=False, settings=["ffi.enable=1"]) as site:
            assert site.load("site.php?do=pair", 200, 8) == 200, site.log()
            assert len(site.pids()) == CHILDREN

    def test_a_flash_sale(self):
        """The example: many more customers than items, and each item is sold once."""
        stock = self.stores.folder / "stock"
        stock.write_text("100")
        stock.chmod(0o666)
        url = self.stores.redis(6)
        with Site(self.stores.folder / "sale", self.library, PACKAGE / "examples" / "flash_sale", url,
                  variables={"STANCHION_URL": url, "SHOP_STOCK": stock}) as site:
            assert site.load("shop.php", 1000, 32, method="POST") == 100, site.log()
            assert site.get("shop.php") == (200, "0\n")
            assert site.memory()
        queue = {word for word in self.stores.ask("HKEYS", "stanchion:state:{Queue:orders}", database=6).split()}
        assert queue == {f"item:{number}" for number in range(1, 101)}, sorted(queue)

    def all(self):
        return {name: getattr(self, name) for name in dir(self) if name.startswith("test_")}
