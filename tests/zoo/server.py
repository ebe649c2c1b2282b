"""A server of files on this machine, which cuts connections and ignores ranges on purpose."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Site:
    """Files by path, and how the server sends them. `asked` lists the path and the range of each request.

    Each response ends after `cut` bytes. The server waits for `gate` before it sends a file.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    cut: int | None = None
    has_ranges: bool = True
    is_odd: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    url: str = ""


@contextmanager
def serving() -> Iterator[Site]:
    """A site, while its server runs."""
    site = Site()
    site.gate.set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(site, self)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield site
        finally:
            site.gate.set()
            server.shutdown()
            thread.join()


def _answer(site: Site, request: http.server.BaseHTTPRequestHandler) -> None:
    wanted = request.headers.get("Range", "")
    site.asked.append((request.path, wanted))
    site.gate.wait()
    data = site.files.get(request.path)
    if data is None:
        request.send_error(404)
        return
    start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and site.has_ranges else 0
    if start and start >= len(data):
        request.send_error(416)
        return
    request.send_response(206 if start else 200)
    if start:
        request.send_header("Content-Range", f"bytes {start + site.is_odd}-{len(data) - 1}/{len(data)}")
    request.send_header("Content-Length", str(len(data) - start))
    request.end_headers()
    request.wfile.write(data[start:][: site.cut])
