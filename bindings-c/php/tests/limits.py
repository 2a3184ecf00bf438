"""Tests of limiters under php-fpm and nginx: all workers of a pool take from one, on a server and on a file."""

import json
import os
import re
import signal
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from urllib.parse import urlencode

from fpm import Site
from stores import HERE, PACKAGE, until

# Those that processes can share.
STORES = ("redis", "sqlite")
CHILDREN = 8
CUSTOMERS = 80
AT_A_TIME = 16
# Longer than anything takes here.
DEADLINE_S = 60
# So many in a second, and so many at once after a calm time.
RATE, BURST = 20, 10
LIMIT = {"name": "shop", "n": RATE, "per": 1, "burst": BURST}
# Four turns: the line may become longer.
WAIT_S = 4 / RATE
ALONE = {"name": "alone", "n": 1, "per": 1, "burst": 1}
# One in so many seconds, so that there is time to kill a worker.
PAUSE_S = 3
SELDOM = {"name": "seldom", "n": 1, "per": PAUSE_S, "burst": 1}


class Limits:
    def __init__(self, stores, library):
        self.stores, self.library = stores, library

    def site(self, name, store, database, root=HERE / "programs"):
        folder = self.stores.folder / f"{name}-{store}"
        url = f"sqlite:{folder / 'limits.db'}" if store == "sqlite" else self.stores.redis(database)
        return Site(folder, self.library, root, url, children=CHILDREN)

    def test_a_limit_holds_for_all_workers(self):
        """Half of the customers wait in line if it is short; whoever is refused comes again when told to."""
        for store in STORES:
            with self.site("crowd", store, 11) as site:
                with ThreadPoolExecutor(AT_A_TIME) as crowd:
                    queries = [LIMIT | ({"wait": WAIT_S} if number % 2 else {}) for number in range(CUSTOMERS)]
                    allowed, refused = zip(*crowd.map(lambda query: until_allowed(site, query), queries))
                within_limit(allowed)
                assert any(refused) and any(taken["ended"] - taken["begun"] > 1e6 / RATE for taken in allowed), allowed
                assert len({taken["pid"] for taken in allowed}) > 1, allowed
                # Where nobody else takes, what is told is so.
                told = until(lambda: refusal(take(site, ALONE)), "one is refused")
                time.sleep(told["retryAfter"])
                assert take(site, ALONE)["allowed"], told

    def test_a_worker_that_is_killed_in_line_holds_up_nobody(self):
        """Its turn stays unused, and everybody else has theirs."""
        for store in STORES:
            with self.site("killed", store, 12) as site:
                limits = (SELDOM | {"name": f"seldom {number}"} for number in count())
                until(lambda: killed_in_line(site, next(limits)), "one is killed in line", DEADLINE_S)

    def test_the_readme_refuses(self):
        """Its example of a web request, as it stands there."""
        [block] = re.findall(r"^```php\n([^`]*'Retry-After[^`]*)^```", (PACKAGE / "README.md").read_text(), re.M)
        for store in STORES:
            root = self.stores.folder / f"readme-{store}"
            root.mkdir()
            with self.site("example", store, 13, root) as site:
                url = site.variables["STANCHION_TEST_URL"]
                (root / "search.php").write_text("<?php " + block.replace("redis://localhost", url))
                begun = time.monotonic()
                for _ in range(5):
                    assert site.get("search.php")[0] == 200, site.log()
                try:
                    urllib.request.urlopen(site.address("search.php"), timeout=DEADLINE_S)
                    raise AssertionError("a sixth one was allowed")
                except urllib.error.HTTPError as error:
                    told = int(error.headers["Retry-After"] or 0)
                    # One every twelve seconds.
                    assert error.code == 429 and 12 - (time.monotonic() - begun) <= told <= 12, (error, told)

    def all(self):
        return {name: getattr(self, name) for name in dir(self) if name.startswith("test_")}


def page(query):
    return f"limits.php?{urlencode(query)}"


def take(site, query):
    status, body = site.get(page(query))
    assert status == 200, (status, body, site.log())
    taken = json.loads(body)
    assert taken["retryAfter"] is None if taken["allowed"] else taken["retryAfter"] > 0, taken
    return taken


def refusal(taken):
    return None if taken["allowed"] else taken


def killed_in_line(site, limit):
    """Whether a worker was killed before its turn; it was not if everything stood still for so long."""
    note = site.folder / "pid"
    waiting = limit | {"wait": DEADLINE_S}
    with ThreadPoolExecutor(2) as line:
        first = take(site, limit)
        assert first["allowed"], first
        victim = line.submit(site.get, page(waiting | {"note": note}))
        if not in_line(site, limit, 1):
            return False
        behind = line.submit(take, site, waiting)
        if not in_line(site, limit, 2):
            return False
        pid = int(note.read_text())
        os.kill(pid, signal.SIGKILL)
        if victim.result()[0] == 200:
            return False
        assert victim.result()[0] == 502, (victim.result(), site.log())
        assert take(site, LIMIT)["allowed"], site.log()
        until(behind.done, "the one behind it has its turn")
    assert behind.result()["allowed"], behind.result()
    assert behind.result()["ended"] - first["begun"] >= 2e6 * PAUSE_S, (first, behind.result())
    # The line is as short as if nothing had happened.
    assert take(site, limit | {"wait": PAUSE_S})["allowed"]
    until(lambda: len(site.pids()) == CHILDREN and pid not in site.pids(), "there is another worker")
    return True


def in_line(site, limit, number):
    """Waits until so many wait, by what one who does not is told; False if the line has come to its end meanwhile."""
    def told():
        taken = take(site, limit)
        return taken if taken["allowed"] or taken["retryAfter"] > number * PAUSE_S else None
    return not until(told, f"{number} in line")["allowed"]


def until_allowed(site, query):
    """What becomes of a customer who comes again when told to: the take that is allowed, and those before it."""
    refused, deadline = [], time.monotonic() + DEADLINE_S
    while not (taken := take(site, query))["allowed"]:
        assert time.monotonic() < deadline, taken
        refused.append(taken)
        time.sleep(taken["retryAfter"])
    return taken, refused


def within_limit(allowed):
    """In any time no more than the limit allows in it. A turn comes between question and answer, by the clock that the
    stores go by: one who goes on late may do so beside others, and counts where both question and answer are."""
    for begun in (taken["begun"] for taken in allowed):
        ends = sorted(taken["ended"] for taken in allowed if taken["begun"] >= begun)
        for number, ended in enumerate(ends, 1):
            most = BURST + RATE * (ended - begun) / 1e6
            assert number <= most, f"{number} in {ended - begun} us, where {most:.3f} may be"
