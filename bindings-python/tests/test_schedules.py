"""Schedules: what is converted on the way in and out, and what is refused."""

import asyncio
import pickle
from datetime import datetime, timedelta, timezone

import pytest

import stanchion
from stanchion import ScheduleOutcome, aio

# Long after these tests have run.
STARTS = datetime(2100, 1, 31, 2, tzinfo=timezone.utc)
ENDS = datetime(2101, 1, 31, 2, tzinfo=timezone.utc)


def test_a_schedule_goes_round(client):
    queue = client.queue("q")
    assert queue.schedule("nightly", "0 3 * * *") is ScheduleOutcome.ADDED
    assert queue.schedule("nightly", "0 3 * * *") == "kept" and queue.schedule("nightly", "0 4 * * *") == "changed"
    found = queue.get_schedule("nightly")
    assert isinstance(found, stanchion.ScheduleInfo) and found.next.hour == 4 and found.next.tzinfo is timezone.utc
    assert queue.get_schedule("other") is None
    assert queue.pause_schedule("nightly") is True and queue.get_schedule("nightly").paused
    assert queue.get_schedule("nightly").next is None
    assert queue.resume_schedule("nightly") is True and not queue.get_schedule("nightly").paused
    task = queue.run_schedule("nightly")
    assert task.startswith("nightly@") and queue.get("nightly@" + task.rpartition("@")[2]).id == task
    found = queue.get_schedule("nightly")
    assert (found.fired, found.skipped, found.missed_slots, found.last_task) == (1, 0, 0, task)
    assert queue.stats().schedules == 1 and queue.stats().schedules_late == 0
    assert queue.remove_schedule("nightly") is True and queue.stats().schedules == 0
    assert [verb("nightly") for verb in (queue.remove_schedule, queue.pause_schedule, queue.resume_schedule)] == [False] * 3
    assert queue.run_schedule("nightly") is None


def test_all_that_it_has_arrives(client):
    queue = client.queue("q")
    queue.schedule(
        "a", "30 3 * * *", {"to": "x"}, tz="Europe/Berlin", missed=5, overlap="skip", jitter=timedelta(minutes=1), starts=STARTS,
        ends=ENDS.timestamp(), paused=True, headers={"a": "b"}, priority=3, max_attempts=4, expires=timedelta(hours=1))
    found = queue.get_schedule("a")
    assert (found.id, found.when, found.tz, found.missed, found.overlap) == ("a", "30 3 * * *", "Europe/Berlin", 5, "skip")
    assert (found.jitter, found.starts, found.ends, found.paused, found.next) == (60, STARTS, ENDS, True, None)
    assert (found.late, found.owner, found.last_task) == (0, None, None)
    assert (found.priority, found.max_attempts, found.expires) == (3, 4, 3600)
    assert found.size > len('{"to":"x"}')
    assert queue.run_schedule("a") is not None
    (claim,) = queue.claim()
    assert claim.json == {"to": "x"} and claim.headers == {"content-type": "application/json", "a": "b"}
    assert (claim.priority, claim.max_attempts) == (3, 4)


def test_the_defaults_are_those_of_the_core(client):
    queue = client.queue("q")
    queue.schedule("a", "every 1h")
    found = queue.get_schedule("a")
    told = stanchion.Schedule("a", "every 1h")
    assert (found.tz, found.missed, found.overlap) == (told.tz, told.missed, told.overlap) == ("UTC", "last", "queue")
    assert (found.jitter, found.starts, found.ends, found.paused) == (0, None, None, told.paused)
    assert (found.priority, found.max_attempts, found.expires) == (0, 20, None)


@pytest.mark.parametrize("missed", ["last", "skip", 1, 1000])
def test_what_becomes_of_missed_slots_comes_back_as_it_was_told(missed):
    queue = stanchion.connect("memory:").queue("q")
    queue.schedule("a", "@hourly", missed=missed)
    assert queue.get_schedule("a").missed == missed and type(queue.get_schedule("a").missed) is type(missed)


def test_pages_of_schedules(client):
    queue = client.queue("q")
    queue.sync_schedules("app", 1, [(f"s{number}", f"0 {number} 1 2 *") for number in range(5)])
    ids, page = [], None
    while True:
        found = queue.list_schedules(page, 2)
        assert isinstance(found, stanchion.SchedulePage) and len(found) <= 2
        ids += [one.id for one in found]
        page = found.next
        if page is None:
            break
        assert isinstance(page, str)
    assert sorted(ids) == [f"s{number}" for number in range(5)]
    assert queue.list_schedules()[0].id == ids[0] and {one.owner for one in queue.list_schedules()} == {"app"}
    with pytest.raises(stanchion.InvalidArgument, match="list_schedules"):
        queue.list_schedules("s1")


def test_an_owners_list(client):
    queue = client.queue("q")
    lists = [
        stanchion.Schedule("a", "@daily", tz="Asia/Tokyo"), ("b", "@hourly"), ("c", "@hourly", {"x": 1}),
        {"id": "d", "when": "every 1h", "missed": "skip"}]
    assert queue.sync_schedules("app", 7, iter(lists)) == stanchion.Synced(4, 0, 0, 0, None)
    assert queue.get_schedule("a").tz == "Asia/Tokyo" and queue.get_schedule("d").missed == "skip"
    assert queue.sync_schedules("app", 8, [*lists[:2], ("c", "@daily", {"x": 1})]) == stanchion.Synced(0, 1, 2, 1, None)
    assert queue.sync_schedules("app", 7, lists) == stanchion.Synced(0, 0, 0, 0, newer=8)
    assert queue.get_schedule("d") is None
    assert queue.sync_schedules("app", 8, []).removed == 3 and len(queue.list_schedules()) == 0


def test_a_preview_asks_no_store():
    nightly = stanchion.Schedule("a", "30 2 * * *", tz="Europe/Berlin")
    # The night in which 02:30 does not come.
    after = datetime(2026, 3, 28, 12, tzinfo=timezone.utc)
    times = nightly.preview(after, 2)
    assert times == [datetime(2026, 3, 29, 1, 0, tzinfo=timezone.utc), datetime(2026, 3, 30, 0, 30, tzinfo=timezone.utc)]
    assert all(time.tzinfo is timezone.utc for time in times) and nightly.preview(after.timestamp(), 2) == times
    listed = stanchion.Schedule("b", "at 2027-01-31T08:00:00.25Z, 2028-01-31T08:00:00+01:00", ends=datetime(2027, 2, 1))
    assert listed.preview(0, 9) == [datetime(2027, 1, 31, 8, 0, 0, 250_000, tzinfo=timezone.utc)]
    every = stanchion.Schedule("c", "every 90s", jitter=timedelta(seconds=30))
    (time,) = every.preview(after, 1)
    assert timedelta(seconds=90) <= time - after < timedelta(seconds=120)


def test_slots_become_tasks_of_whoever_claims(stanchion_client, stanchion_clock):
    queue = stanchion_client.queue("q")
    queue.schedule("a", "every 1h", b"x", missed=2)
    assert queue.claim() == []
    stanchion_clock.advance(4 * 3600 + 1)
    assert queue.stats().schedules_late > 3600 and queue.get_schedule("a").late > 3600
    claims = queue.claim(max=10)
    assert [claim.payload for claim in claims] == [b"x", b"x"] and all(claim.id.startswith("a@2") for claim in claims)
    found = queue.get_schedule("a")
    assert (found.fired, found.missed_slots, found.late) == (2, 2, 0) and found.last_task in {claim.id for claim in claims}


def test_a_limit_refuses_a_run(client):
    queue = client.queue("q")
    queue.configure(max_len=1)
    queue.schedule("a", "@yearly")
    queue.enqueue("first")
    with pytest.raises(stanchion.QueueFull, match="run_schedule"):
        queue.run_schedule("a")


BAD = [
    {"when": "61 * * * *"}, {"when": ""}, {"when": "every 1ms"}, {"when": "at tomorrow"}, {"when": 5}, {"tz": "Berlin"},
    {"tz": None}, {"missed": "all"}, {"missed": 0}, {"missed": 1001}, {"missed": 2**40}, {"missed": -1}, {"missed": 1.5},
    {"missed": True}, {"missed": None}, {"overlap": "drop"}, {"overlap": True}, {"overlap": None}, {"jitter": -1},
    {"jitter": "5"}, {"jitter": timedelta(days=2)}, {"starts": "now"}, {"ends": float("nan")}, {"starts": ENDS, "ends": STARTS},
    {"ends": 1}, {"paused": 1}, {"paused": None}, {"payload": {1}}, {"headers": 7}, {"priority": 256}, {"priority": -1},
    {"max_attempts": 0}, {"max_attempts": 2**40}, {"expires": 0}, {"id": ""}, {"id": "a\nb"}, {"id": "x" * 481}, {"id": None},
    {"id": 7}, {"payload": b"x" * (17 << 20)}]


@pytest.mark.parametrize("options", BAD, ids=lambda options: repr(options)[:40])
def test_bad_schedules(options):
    queue = stanchion.connect("memory:").queue("q")
    bad = {"id": "a", "when": "@daily", **options}
    with pytest.raises(stanchion.InvalidArgument):
        queue.schedule(**bad)
    with pytest.raises(stanchion.InvalidArgument):
        queue.sync_schedules("app", 1, [("good", "@daily"), bad])
    assert queue.stats().schedules == 0


def test_one_that_is_over_may_stay_in_a_list():
    queue = stanchion.connect("memory:").queue("q")
    with pytest.raises(stanchion.InvalidArgument, match="no slot comes any more"):
        queue.schedule("a", "@daily", ends=datetime(2020, 1, 1))
    assert queue.sync_schedules("app", 1, [{"id": "a", "when": "@daily", "ends": datetime(2020, 1, 1)}]).added == 1
    assert queue.get_schedule("a").next is None


@pytest.mark.parametrize("arguments", [
    ("", 1, []), (None, 1, []), ("app", -1, []), ("app", 2**60, []), ("app", True, []), ("app", "1", []), ("app", 1, "ab"),
    ("app", 1, [("a", "@daily"), ("a", "@hourly")]), ("app", 1, [(f"s{number}", "@daily") for number in range(1001)])],
    ids=lambda arguments: repr(arguments)[:40])
def test_bad_lists(arguments):
    queue = stanchion.connect("memory:").queue("q")
    with pytest.raises(stanchion.InvalidArgument):
        queue.sync_schedules(*arguments)
    assert queue.stats().schedules == 0


@pytest.mark.parametrize("arguments", [(None, 1), ("now", 1), (datetime.min, 1), (0, -1), (0, 1.0), (0, True)])
def test_bad_previews(arguments):
    with pytest.raises(stanchion.InvalidArgument, match=r"^preview\(\): (after|count) must be"):
        stanchion.Schedule("a", "@daily").preview(*arguments)


@pytest.mark.parametrize("count", [0, 1001, 2**64 - 1])
def test_a_preview_has_bounds(count):
    with pytest.raises(stanchion.InvalidArgument, match="count"):
        stanchion.Schedule("a", "@daily").preview(0, count)


def test_a_schedule_is_a_value():
    schedule = stanchion.Schedule("a", "@daily", {"x": 1}, tz="Asia/Tokyo")
    assert pickle.loads(pickle.dumps(schedule)) == schedule != stanchion.Schedule("a", "@daily")
    queue = stanchion.connect("memory:").queue("q")
    # As the documentation says for one alone.
    assert queue.schedule(**vars(schedule)) == "added" and queue.get_schedule("a").tz == "Asia/Tokyo"


def test_no_trace_makes_a_schedule_another(client):
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    queue = client.queue("q")
    assert queue.schedule("a", "@yearly") == "added"
    with trace.TracerProvider().get_tracer("test").start_as_current_span("deploy"):
        assert queue.schedule("a", "@yearly") == "kept"
    queue.run_schedule("a")
    assert queue.claim()[0].headers == {}


def test_asyncio(url):
    async def main():
        async with aio.connect(url) as client:
            queue = client.queue("q")
            assert await queue.schedule("a", "at 2101-01-01T00:00:00Z", {"x": 1}, missed=3) is ScheduleOutcome.ADDED
            assert await queue.schedule("a", "at 2101-01-01T00:00:00Z", {"x": 1}, missed=3) == "kept"
            assert (await queue.get_schedule("a")).missed == 3 and await queue.get_schedule("b") is None
            assert await queue.sync_schedules("app", 2, [("b", "at 2100-01-01T00:00:00Z")]) == stanchion.Synced(1, 0, 0, 0, None)
            assert (await queue.sync_schedules("app", 1, [])).newer == 2
            page = await queue.list_schedules(max=1)
            assert [one.id for one in page] == ["b"] and isinstance(page.next, str)
            assert [one.id for one in await queue.list_schedules(page.next, 1)] == ["a"]
            assert await queue.pause_schedule("a") is True and await queue.resume_schedule("a") is True
            task = await queue.run_schedule("a")
            (claim,) = await queue.claim()
            assert claim.id == task and claim.json == {"x": 1}
            assert (await queue.stats()).schedules == 2
            assert await queue.remove_schedule("a") is True and await queue.remove_schedule("a") is False
            assert await queue.run_schedule("a") is None
            with pytest.raises(stanchion.InvalidArgument):
                await queue.schedule("a", "never")

    asyncio.run(asyncio.wait_for(main(), 60))
