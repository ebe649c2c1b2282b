"""A headless Chromium, which tests drive by the DevTools protocol through a pipe."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["CHROMIUM", "Browser", "Page"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
"""The path of the program; `None` if it is not installed."""

_SECONDS = 300
_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
# Chromium reads its commands from the file descriptor 3, and writes its answers to 4.
_START = "import os, sys; [os.dup2(int(sys.argv[1]), each) for each in (3, 4)]; os.execvp(sys.argv[2], sys.argv[2:])"


class Browser:
    """A browser with its own profile in a folder."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        self._pipe, other = socket.socketpair()
        self._pipe.settimeout(_SECONDS)
        command = [CHROMIUM, *_OPTIONS, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(other.fileno()), *command],
            pass_fds=[other.fileno()],
            env={**os.environ, "HOME": str(profile)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        other.close()
        self._numbers, self._read = itertools.count(1), b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def starts(self) -> bool:
        """Whether Chromium runs on this system: some containers do not let it."""
        try:
            return bool(self.call("Browser.getVersion"))
        except (AssertionError, OSError):
            self._process.kill()
            self._process.wait(_SECONDS)
            return False

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        if self._process.poll() is None:
            self.call("Browser.close")
        self._process.wait(_SECONDS)
        self._pipe.close()

    def call(self, method: str, session: str = "", **parameters: Any) -> Any:
        """The answer to a command. Events that come before it are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        self._pipe.sendall(json.dumps(message).encode() + b"\0")
        while (found := self._next()).get("id") != number:
            self.events.append(found)
        assert "error" not in found, f"{method}: {found['error']}"
        return found["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            part = self._pipe.recv(1 << 20)
            assert part, "Chromium has closed the pipe"
            self._read += part
        message, _, self._read = self._read.partition(b"\0")
        return dict(json.loads(message))


class Page:
    """A tab, in which a test opens a page."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """The answer to a command."""
        return self._browser.call(method, self._session, **parameters)

    def open(self, address: str) -> None:
        """Load an address, and wait until its scripts have run. Forgets former events."""
        self._browser.events.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.value("document.readyState === 'complete' || new Promise((done) => addEventListener('load', done))")

    def value(self, expression: str) -> Any:
        """The value of an expression of JavaScript, as JSON, after a promise is kept."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def resize(self, width: int, height: int, *, is_dark: bool = False) -> None:
        """Give the window a size in CSS pixels, and the light or the dark colors."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def press(self, key: str, text: str = "", modifiers: int = 0) -> None:
        """Press and release a key. A key that types has a text. The modifier 2 is Control."""
        code = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39}
        values = {"key": key, "windowsVirtualKeyCode": code.get(key, 0), "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", text="\r" if key == "Enter" else text, **values)
        self.call("Input.dispatchKeyEvent", type="keyUp", **values)

    def picture(self, *, whole: bool = False) -> bytes:
        """The window, or the whole page, as a PNG file."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def events(self, method: str) -> list[Any]:
        """The parameters of the events of a kind in this tab."""
        self.value("new Promise((done) => setTimeout(done))")
        mine = (each for each in self._browser.events if each.get("sessionId") == self._session)
        return [each["params"] for each in mine if each["method"] == method]
