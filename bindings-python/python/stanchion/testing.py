"""For the tests of programs that use Stanchion: a store in memory, with a clock that the test moves.

The package is a pytest plugin with two fixtures, ``stanchion_client`` and ``stanchion_clock``::

    def test_expiry(stanchion_client, stanchion_clock):
        lease = stanchion_client.lock("a").acquire(ttl=30)
        stanchion_clock.advance(31)
        assert lease.lost.is_set()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, Optional

if TYPE_CHECKING:
    from . import _stanchion
    from ._client import Client
    from ._types import Duration
    from .aio import Connecting

__all__ = ["Clock", "aio_memory_client", "memory_client"]


class Clock:
    """A clock that stands still until `advance` moves it."""

    def __init__(self) -> None:
        # The plugin is loaded in every run of pytest, the library only where it is used.
        from . import _stanchion

        self._native: _stanchion.Clock = _stanchion.Clock()

    def advance(self, seconds: Duration) -> None:
        """Move the time forward."""
        self._native.advance(seconds)


def _settings(clock: Optional[Clock], name: str) -> Dict[str, Any]:
    settings: Dict[str, Any] = dict.fromkeys((
        "lock_prefix", "queue_prefix", "timeout", "foreign_share", "label", "tls_ca", "tls_cert", "tls_key"))
    return {**settings, "url": f"memory:{name}", "clock": clock._native if clock is not None else None}


def memory_client(clock: Optional[Clock] = None, name: str = "") -> Client:
    """A blocking client of a store of its own in memory (of a shared one, if it has a name)."""
    from ._client import Client

    return Client(_settings(clock, name))


def aio_memory_client(clock: Optional[Clock] = None, name: str = "") -> Connecting:
    """The same for asyncio: to be awaited, or for ``async with``."""
    from .aio import Connecting

    return Connecting(_settings(clock, name))


try:
    import pytest
except ImportError:
    pass
else:

    @pytest.fixture
    def stanchion_clock() -> Clock:
        """The clock of ``stanchion_client``."""
        return Clock()

    @pytest.fixture
    def stanchion_client(stanchion_clock: Clock) -> Iterator[Client]:
        """A client of a store in memory, new for each test."""
        with memory_client(stanchion_clock) as client:
            yield client
