"""Whether a history keeps the promises. Each check takes O(n log n); what it finds is a list of sentences.

The letters are those of docs/GUARANTEES.md: locks L1 to L8, queues Q1 to Q10.
"""

from collections import Counter, defaultdict
from itertools import pairwise

from history import OK, UNKNOWN


def verdicts(lines):
    """The findings of each check, by its name."""
    grants = [line for line in lines if line["op"] == "acquire" and line["end"] == OK and line["fence"] is not None]
    claims = [line for line in lines if line["op"] == "claim" and line["end"] == OK]
    return {
        "L1 a fenced register takes no smaller fence": register(lines),
        "L2 one holder at a time": overlaps(grants, "name"),
        "L3 fences grow": fences(grants),
        "L5 a lease is valid when it is returned": stillborn(grants),
        "Q1 nothing acknowledged is lost": lost(lines, claims),
        "Q2 payloads are as they were": payloads(lines, claims),
        "Q3 one claim of a task at a time": overlaps(claims, "id"),
        "Q4 a settled task does not come again": again(lines, claims),
        "Q6 never before it is due": early(claims),
        "Q8 attempts are counted": attempts(lines, claims),
    }


def register(lines):
    """Writes in the order in which the register took them."""
    last = defaultdict(int)
    for line in lines:
        if line["op"] != "write" or not line["taken"]:
            continue
        if line["fence"] < last[line["name"]]:
            yield f"{line['name']}: fence {line['fence']} after {last[line['name']]}"
        last[line["name"]] = max(last[line["name"]], line["fence"])


def overlaps(held, key):
    """From when it was surely given until it was surely given up: by its end, or its deadline."""
    spans = defaultdict(list)
    for one in held:
        spans[one[key]].append((one["completed"], min(one["deadline"], one["left"] or one["deadline"]), one))
    for name, of_name in spans.items():
        of_name.sort(key=lambda span: span[:2])
        until, holder = 0, None
        for begin, end, one in of_name:
            if begin < until:
                yield f"{name}: {told(holder)} until {until:.0f}, {told(one)} from {begin:.0f}"
            if end > until:
                until, holder = end, one


def told(one):
    return f"{one['actor']} ({one['language']}, {one.get('fence') or one.get('receipt')})"


def fences(grants):
    """A grant that was asked for after another one had come has a larger fence."""
    by_name = defaultdict(list)
    for grant in grants:
        by_name[grant["name"]].append(grant)
    for name, of_name in by_name.items():
        done = sorted(of_name, key=lambda grant: grant["completed"])
        largest, at = 0, 0
        for grant in sorted(of_name, key=lambda grant: grant["invoked"]):
            while at < len(done) and done[at]["completed"] < grant["invoked"]:
                largest = max(largest, done[at]["fence"])
                at += 1
            if grant["fence"] <= largest:
                yield f"{name}: {told(grant)} after fence {largest}"
        for fence, count in Counter(grant["fence"] for grant in of_name).items():
            if count > 1:
                yield f"{name}: fence {fence} was given {count} times"


def stillborn(grants):
    """The driver looked at once: a lease that was over by then came from a process that had stood still."""
    for grant in grants:
        if not grant["valid"] and grant["completed"] < grant["deadline"]:
            yield f"{grant['name']}: {told(grant)} was over {grant['deadline'] - grant['completed']:.0f} ms early"


def lost(lines, claims):
    """What was put in for sure, or dead at the end."""
    acked = {line["id"] for line in lines if line["op"] == "ack" and line["end"] in (OK, UNKNOWN)}
    left = {task for line in lines if line["op"] == "left" for task in line["ids"]}
    for line in lines:
        if line["op"] == "enqueue" and line["end"] == OK and line["id"] not in acked and line["id"] not in left:
            yield f"{line['id']}: put in by {line['actor']} ({line['language']})"


def payloads(lines, claims):
    sent = {line["id"]: line["payload"] for line in lines if line["op"] == "enqueue"}
    for claim in claims:
        if claim["id"] not in sent:
            yield f"{claim['id']}: nobody has put it in"
        elif claim["payload"] != sent[claim["id"]]:
            yield f"{claim['id']}: {told(claim)} got another payload"


def again(lines, claims):
    """A claim that was asked for after the task was acked."""
    acked = {line["id"]: line["completed"] for line in lines if line["op"] == "ack" and line["end"] == OK}
    for claim in claims:
        if claim["invoked"] > acked.get(claim["id"], float("inf")):
            yield f"{claim['id']}: {told(claim)} after its ack"


def early(claims):
    """By the wall clock, which the store goes by on the same machine."""
    for claim in claims:
        if claim["wall"] + 1 < claim["due"]:
            yield f"{claim['id']}: {claim['due'] - claim['wall']:.0f} ms early"


def attempts(lines, claims):
    """No number twice, and none missing but those of claims whose answer nobody heard, or that were put back."""
    unheard = sum(line["op"] == "claim" and line["end"] == UNKNOWN for line in lines)
    by_id = defaultdict(list)
    for claim in claims:
        by_id[claim["id"]].append(claim)
    missing = 0
    for task, of_task in by_id.items():
        in_order = sorted(of_task, key=lambda claim: claim["receipt"])
        missing += in_order[0]["attempt"] - 1
        for one, other in pairwise(in_order):
            step = other["attempt"] - one["attempt"]
            if step < (0 if one["put_back"] else 1):
                yield f"{task}: attempt {other['attempt']} after {one['attempt']}"
            missing += max(0, step - 1)
    if missing > unheard:
        yield f"{missing} attempts that nobody made, {unheard} claims without an answer"
