"""The trace context of OpenTelemetry in a task's headers, if `opentelemetry-api` is installed."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple


@functools.lru_cache(maxsize=None)
def _api() -> Optional[Tuple[Any, Any]]:
    try:
        from opentelemetry import context, propagate
    except ImportError:
        return None
    return context, propagate


def inject(headers: Optional[Dict[str, str]]) -> Optional[Dict[str, str]]:
    """The headers, with the present trace context if there is one; what the caller set stays."""
    api = _api()
    if api is None:
        return headers
    carrier: Dict[str, str] = {}
    api[1].inject(carrier)
    return {**carrier, **(headers or {})} if carrier else headers


@contextlib.contextmanager
def traced(headers: Mapping[str, str]) -> Iterator[None]:
    """Runs a handler in the trace context that came with its task."""
    api = _api()
    if api is None or not headers:
        yield
        return
    context, propagate = api
    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)
