"""A headless Chromium, driven over its DevTools protocol: what a page shows, says and asks for."""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome")
SILENT = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--remote-debugging-port=0",
)
SECONDS_TO_START = 60.0
SECONDS_TO_ANSWER = 60.0


def find_chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def chromium(profile: Path) -> Iterator[ClientConnection]:
    """The DevTools connection of a browser of our own."""
    program = find_chromium()
    assert program is not None
    # Chromium's sandbox does not work for root.
    flags = [*SILENT, f"--user-data-dir={profile}", *["--no-sandbox"] * (os.geteuid() == 0)]
    with (profile.parent / "chromium.log").open("w") as log:
        process = subprocess.Popen([program, *flags], stdout=log, stderr=log)
        try:
            port, path = _address(profile / "DevToolsActivePort", process)
            with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None) as connection:
                yield connection
        finally:
            process.terminate()
            process.wait()


def _address(file: Path, process: subprocess.Popen) -> list[str]:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end and process.poll() is None:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) == 2:
            return lines
        time.sleep(0.05)
    raise RuntimeError(f"Chromium did not start; see {file.parent.parent / 'chromium.log'}")


class Tab:
    """One tab, with everything it reported since it was opened."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._session: str | None = None
        self._num_calls = 0
        self._events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._num_calls += 1
        message = {"id": self._num_calls, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        self._connection.send(json.dumps(message))
        while True:
            received = self._receive()
            if received.get("id") == self._num_calls:
                assert "error" not in received, (method, received["error"])
                return received["result"]

    def open(self, url: str, width: int, scheme: str) -> None:
        """Show a page in a window of some width, in the light or the dark colour scheme."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", mobile=width < 600, **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self._events.clear()
        self.call("Page.navigate", url=url)
        while not self.reported("Page.loadEventFired"):
            self._receive()

    def evaluate(self, expression: str) -> Any:
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """The whole page, not only what fits the window."""
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        file.write_bytes(base64.b64decode(image))

    def reported(self, *methods: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self._events if event["method"] in methods]

    def complaints(self) -> list[dict[str, Any]]:
        """Everything on the console: errors, warnings, what the page's policy refused."""
        methods = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return self.reported(*methods)

    def requests(self) -> list[str]:
        """Addresses that the page asked for, other than data inside itself."""
        sent = self.reported("Network.requestWillBeSent")
        urls = [event["request"]["url"] for event in sent]
        return [url for url in urls if not url.startswith("data:")]

    def _receive(self) -> dict[str, Any]:
        received: dict[str, Any] = json.loads(self._connection.recv(timeout=SECONDS_TO_ANSWER))
        if "method" in received:
            self._events.append(received)
        return received
