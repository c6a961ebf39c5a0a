"""A relay between clients and a server, which can let the network fall silent: bytes vanish, and no connection is closed."""

import contextlib
import socket
import threading
import time
from pathlib import Path
from types import TracebackType

_CHUNK = 65_536


class Relay:
    """Relays a server's unix socket from another one.

    Args:
        delay: Seconds that every piece takes from the server to the client.
    """

    def __init__(self, server: Path, *, delay: float = 0.0) -> None:
        self.socket = server.with_name("relay.sock")
        self.url = f"unix://{self.socket}"
        self._server = server
        self._delay = delay
        self._silent = threading.Event()
        self._ends: list[socket.socket] = []
        self._door = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> "Relay":
        self._door.bind(str(self.socket))
        self._door.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cut()
        self._door.close()
        self.socket.unlink(missing_ok=True)

    def fall_silent(self) -> None:
        """From now on nothing arrives at either side. Connections stay open, old and new."""
        self._silent.set()

    def speak(self) -> None:
        """New connections work again; those of before stay dead, as half-open ones do."""
        self._silent.clear()

    def cut(self) -> None:
        """Closes all connections."""
        ends, self._ends = self._ends, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._server))
            self._ends += (client, server)
            dead = threading.Event()
            for source, sink, delay in ((client, server, 0.0), (server, client, self._delay)):
                threading.Thread(target=self._pump, args=(source, sink, delay, dead), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, delay: float, dead: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_CHUNK):
                if self._silent.is_set():
                    dead.set()  # what is lost on the way never comes
                if dead.is_set():
                    continue
                time.sleep(delay)
                sink.sendall(piece)
        if not dead.is_set():
            for end in (source, sink):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
