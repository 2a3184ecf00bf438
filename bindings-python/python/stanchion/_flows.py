"""Flows: what goes in and comes out."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from . import _stanchion
from ._arguments import invalid
from ._errors import InvalidArgument
from ._types import Task, TaskLike, _Word, maybe_wall, several, task_fields, wall

NodeLike = TaskLike
"""What `Queue.enqueue_many` takes as a task; a mapping may also have ``queue``, ``after``, ``after_end``, ``after_failure`` and
``after_all``: see `Queue.enqueue_flow`."""

_AFTER = ("after", "after_end", "after_failure")
_OWN = ("queue", *_AFTER, "after_all")


class FlowState(_Word):
    """How a flow is: "running"; or, when all nodes have ended, "done" if all that were to run have succeeded, "failed" if one has not,
    or "cancelled"."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class NodeState(_Word):
    """What a node of a flow is doing: "waiting" for others; "put" into its queue; "ending", if its task runs on although it was
    cancelled. Or how it has ended: "done"; "dead"; "cancelled", removed or lost; "skipped", since what it needs cannot come about
    any more; "unneeded", since what it waited to fail has not."""

    WAITING = "waiting"
    PUT = "put"
    ENDING = "ending"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    UNNEEDED = "unneeded"


@dataclass(frozen=True)
class NodeInfo:
    """A node of a flow, and what it waits for. ``queue`` is None if it is the flow's; ``after_all`` is None, "then", "failed" or
    "finally"."""

    name: str
    state: NodeState
    queue: Optional[str]
    after: List[str]
    after_end: List[str]
    after_failure: List[str]
    after_all: Optional[str]


@dataclass(frozen=True)
class FlowInfo:
    """A flow as it is in its queue. ``ended`` is when it was noted that its last node had ended; None while it runs. ``counts`` is
    how many nodes are in each state (`NodeState`, or its name) that any is in. ``nodes``, each behind those that it waits for, is
    empty in pages."""

    id: str
    state: FlowState
    created: datetime
    ended: Optional[datetime]
    counts: Dict[str, int]
    nodes: List[NodeInfo]


@dataclass(frozen=True)
class FlowPage:
    """Some of a queue's flows: those that run, the latest first, then those that have ended. ``next`` gets the next page; None if
    this was the last."""

    flows: List[FlowInfo]
    next: Optional[str]

    def __iter__(self) -> Iterator[FlowInfo]:
        return iter(self.flows)

    def __len__(self) -> int:
        return len(self.flows)

    def __getitem__(self, index: int) -> FlowInfo:
        return self.flows[index]


@dataclass(frozen=True)
class FlowInput:
    """What has become of a node that a task comes after, and the result of its ack; None if it gave none."""

    node: str
    state: NodeState
    result: Optional[bytes]

    def json(self) -> Any:
        """The result, read as JSON. Raises LookupError if there is none."""
        if self.result is None:
            raise LookupError(f"there is no result of {self.node!r}, which is {self.state}")
        return json.loads(self.result)


def chain(tasks: Iterable[NodeLike]) -> List[Dict[str, Any]]:
    """Nodes for `Queue.enqueue_flow` of which each runs when the one before it has succeeded. Each is what `Queue.enqueue_many`
    takes as a task, or a node that waits for others, too; without an id it gets a random one."""
    made: List[Dict[str, Any]] = []
    for node in _all_fields(tasks, "tasks", "chain"):
        if node.get("id") is None:
            node["id"] = os.urandom(16).hex()
        if made:
            node["after"] = [*_names(node.get("after"), "after"), made[-1]["id"]]
        made.append(node)
    return made


def nodes(items: Any, call: str) -> List[_stanchion.Node]:
    """Nodes for the native module, each given as what is taken as a task, or a mapping that also says what it comes after."""
    return [_node(fields, call) for fields in _all_fields(items, "nodes", call)]


def _all_fields(items: Any, name: str, call: str) -> List[Dict[str, Any]]:
    problem = f"must be a list of {name}"
    if isinstance(items, Mapping):  # Of which only the keys would come.
        raise invalid(name, problem, items, call=call)
    return [task_fields(item, call, name, "node", _OWN) for item in several(items, name, problem, call)]


def _node(fields: Dict[str, Any], call: str) -> _stanchion.Node:
    own = {name: fields.pop(name, None) for name in _OWN}
    if call == "add_to_flow" and own["after_all"] is not None:
        raise InvalidArgument("add_to_flow(): a node must have no after_all: nodes that wait for all come with the flow")
    for name in _AFTER:
        own[name] = _names(own[name], name)
    return _stanchion.Node(Task(**fields)._native(), **own)


def _names(names: Any, name: str) -> List[Any]:
    """One name, or several."""
    if names is None:
        return []
    return [names] if isinstance(names, str) else several(names, name, "must be the id of a node, or a list of these")


def flow_info(fields: Optional[Tuple[Any, ...]]) -> Optional[FlowInfo]:
    """A flow that may be absent, from the native module's tuple."""
    return None if fields is None else _flow_info(fields)


def flow_page(found: Tuple[List[Tuple[Any, ...]], Optional[str]]) -> FlowPage:
    """Some flows, from what the native module gives."""
    flows, following = found
    return FlowPage([_flow_info(fields) for fields in flows], following)


def _flow_info(fields: Tuple[Any, ...]) -> FlowInfo:
    id, state, created, ended, counts, found = fields
    infos = [NodeInfo(name, NodeState(state), *rest) for name, state, *rest in found]
    return FlowInfo(id, FlowState(state), wall(created), maybe_wall(ended), counts, infos)


def flow_inputs(found: List[Tuple[str, str, Optional[bytes]]]) -> List[FlowInput]:
    """What has become of the nodes before, from the native module's tuples."""
    return [FlowInput(node, NodeState(state), result) for node, state, result in found]
