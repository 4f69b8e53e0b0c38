"""A connection to the daemon: whose it is, and how long it may keep the daemon waiting."""

from __future__ import annotations

import asyncio
import contextlib
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from foretime_sidecar.web.auth.callers import ApiError
from foretime_sidecar.web.auth.peer import Peer, peer_of
from foretime_sidecar.web.connections.connection_places import Places
from foretime_sidecar.web.connections.request_guard import ANSWER_HEADERS, MOST_HEAD_BYTES
from foretime_sidecar.web.connections.tcp_owner import tcp_owner

HEAD_S = 10.0
"""For a whole request: there are no bodies. Counted from its first byte, or from connecting."""
READ_S = 30.0
"""For reading an answer, besides its size over `LEAST_READ_BYTES_PER_S`."""
LEAST_READ_BYTES_PER_S = 65_536


class PeerProtocol(H11Protocol):
    """uvicorn's HTTP protocol, for clients that can't be trusted to send or read at all.

    It gives each request its connection's ``state.peer`` (of a unix socket), ``state.owner`` (the
    uid whose connections count together) and ``state.spare`` (whether its place is a spare one).

    Parameters
    ----------
    places
        Hands out places for connections.
    config, server_state, app_state, _loop
        uvicorn's.
    """

    def __init__(
        self,
        places: Places,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.owner: int | None = None
        self._places = places
        self._waits_since = self.loop.time()
        self._head_deadline: asyncio.TimerHandle | None = None
        self._read_deadline: asyncio.TimerHandle | None = None

    # -- places ----------------------------------------------------------------------------------

    @property
    def gives_way(self) -> tuple[int, float] | None:
        """When it makes room: what has not asked yet before what has not read its answer."""
        if self.flow.write_paused:
            return 1, self._waits_since
        return None if self._is_answered else (0, self._waits_since)

    def give_way(self) -> None:
        """Close it at once, whatever is unsent."""
        self.transport.abort()

    @property
    def _is_answered(self) -> bool:
        """Whether the daemon is at work on a request of it."""
        return self.cycle is not None and not self.cycle.response_complete

    # -- asyncio's protocol ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection; every request carries a copy of the state."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker
        super().connection_made(transport)
        # Whatever a client has not read is noticed, not only what is beyond 64 KiB.
        transport.set_write_buffer_limits(0)
        peer = peer_of(transport.get_extra_info("socket"))
        self.owner = _owner(peer, transport)
        spare = not self._places.enter(self)
        self.app_state = {**self.app_state, "peer": peer, "owner": self.owner, "spare": spare}
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._places.leave(self)
        self._end_wait_for_request()
        self._end_wait_for_reading()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what was sent; the time for a request runs from its first byte to its last."""
        if self._head_deadline is None and not self._is_answered:
            self._await_request()
        super().data_received(data)
        if self._is_answered:
            self._end_wait_for_request()

    def pause_writing(self) -> None:
        """Give the client time to read; it is as long however little it reads at a time."""
        super().pause_writing()
        self._waits_since = self.loop.time()
        unread_s = self.transport.get_write_buffer_size() / LEAST_READ_BYTES_PER_S
        self._read_deadline = self.loop.call_later(READ_S + unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the client has read all."""
        self._end_wait_for_reading()
        super().resume_writing()

    # -- uvicorn's own ---------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._waits_since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what h11 can't read, and close: where the next request begins is not known."""
        if self._is_answered:  # what it asked before is not answered any more
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._refuse(
            ApiError(
                400,
                "this can't be read as one HTTP request",
                "connection",
                f"send HTTP/1.1, with a head of at most {MOST_HEAD_BYTES // 1024} KiB and no body",
            )
        )

    def _await_request(self) -> None:
        self._head_deadline = self.loop.call_later(HEAD_S, self._refuse_late)

    def _end_wait_for_request(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _end_wait_for_reading(self) -> None:
        if self._read_deadline is not None:
            self._read_deadline.cancel()
            self._read_deadline = None

    def _refuse_late(self) -> None:
        if not self.conn.trailing_data[0]:
            self.transport.close()
            return
        self._refuse(
            ApiError(
                408,
                f"no whole request came in {HEAD_S:.0f} s",
                "connection",
                "send a request at once",
            )
        )

    def _refuse(self, error: ApiError) -> None:
        """Answer an error without the application, and close."""
        reply = error.response()
        headers = [
            *reply.raw_headers,
            *((name.encode(), value.encode()) for name, value in ANSWER_HEADERS.items()),
            (b"Connection", b"close"),
        ]
        answer: list[h11.Event] = [
            h11.Response(
                status_code=error.status,
                headers=headers,
                reason=HTTPStatus(error.status).phrase,
            ),
            h11.Data(data=bytes(reply.body)),
            h11.EndOfMessage(),
        ]
        # Half an answer to what it asked before is all that it gets then.
        with contextlib.suppress(h11.LocalProtocolError):
            for part in answer:
                self.transport.write(self.conn.send(part) or b"")
        self.transport.close()


def _owner(peer: Peer | None, transport: asyncio.Transport) -> int | None:
    if peer is not None:
        return peer.uid
    client, server = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    return tcp_owner(client[:2], server[:2]) if client and server else None
