"""The page in a real browser: a question, its answers, a reason; the data; the map."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from getd.runs.opened import OpenedRun

pytest.importorskip("uvicorn", reason="getd[serve] is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("there is no chromium on this machine", allow_module_level=True)

import uvicorn  # noqa: E402

from getd.serving.app import create_app  # noqa: E402
from getd.serving.middleware import ServeSettings  # noqa: E402


@pytest.fixture(scope="module")
def address(served: OpenedRun) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(create_app(served, ServeSettings()), port=port, log_level="error")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def test_a_question_its_answers_and_a_reason(browser: object, address: str, tmp_path: Path) -> None:
    page = browser.new_page()  # type: ignore[attr-defined]
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))

    def refuse_foreign(request: object) -> None:
        if not request.url.startswith((address, "data:")):  # type: ignore[attr-defined]
            problems.append(request.url)  # type: ignore[attr-defined]

    page.on("request", refuse_foreign)
    page.goto(address)
    page.wait_for_selector("#entity-0")
    page.select_option("#relation", "transfer")
    page.fill("#entity-0", "Ada Ha")
    page.wait_for_selector('#names-0 option[value="Ada Hale"]', state="attached")
    page.fill("#entity-0", "Ada Hale")
    page.uncheck("#open-3")
    page.fill("#entity-3", "2016-17")
    page.check("#open-1")
    page.click("#question button.main")
    assert "fill in to" in page.inner_text("#problem")
    page.fill("#entity-2", "Oxbow United")
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer")
    assert page.locator(".answer").count() == 10
    page.keyboard.press("Tab")
    page.locator(".answer").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".why li")
    assert page.locator(".answer").first.get_attribute("aria-expanded") == "true"
    page.fill("#entity-2", "Oxbwo United")
    page.keyboard.press("Enter")
    page.locator("#problem", has_text="did you mean").wait_for()
    assert problems == []


def test_the_data_and_the_map(browser: object, address: str) -> None:
    phone = {"width": 390, "height": 700}
    page = browser.new_page(color_scheme="dark", viewport=phone)  # type: ignore[attr-defined]
    page.goto(address)
    page.wait_for_selector("#entity-0")
    # Nothing stands out at the side of a phone.
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click("#tab-data")
    assert page.locator("#relations tr").count() == 8
    assert "201 entities" in page.inner_text("#overview")
    page.click("#tab-map")
    page.fill("#find", "Oxbow Uni")
    page.locator("#found", has_text="Oxbow United: 160 facts").wait_for()
