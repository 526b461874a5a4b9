"""Fixtures shared by the tests that look at pages in a real browser.

``browser_page`` is a page of 1280 x 720 in headless Chromium. It cannot reach anything outside this machine: such
requests are refused and written down, and so is every script error, so that a test can end with

    assert browser_page.outside_requests == []
    assert browser_page.script_errors == []

``show`` puts widgets on such a page, ``jupyter`` is a server with JupyterLab and Notebook, ``lab`` a page for it.
Functions that go with them are in browser.py.
"""

import json
import os
import tempfile
from asyncio import _set_running_loop, get_running_loop
from uuid import uuid4

import matplotlib
import nbval.kernel
import pytest
from browser import TRANSPORT, close_notebooks, end_kernels, jupyter_server
from jupyter_client.manager import KernelManager

from course_utils.doctor import BROWSERS, find_browser
from course_utils.widgets.base import CourseWidget

LOCAL = ("http://127.0.0.1", "http://localhost", "ws://127.0.0.1", "ws://localhost")
LOCAL += ("file:", "data:", "blob:", "about:")
VIEWPORT = {"width": 1280, "height": 720}
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--force-color-profile=srgb",  # pixels are compared with colours
    # the second lock: what slips past the request filter finds no address
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


class OwnFiles(KernelManager):
    """How nbval is to start a notebook's kernel (see ``TRANSPORT``)."""

    def __init__(self, **options):
        file = os.path.join(tempfile.gettempdir(), f"course-test-{uuid4()}.json")
        super().__init__(transport=TRANSPORT, connection_file=file, **options)


nbval.kernel.KernelManager = OwnFiles


@pytest.fixture(scope="module", autouse=True)
def plain_style():
    """Matplotlib's own style at the start of each file, whatever the file before it left behind."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield


def _no_browser(reason: str):
    """Skip here, fail in CI: a browser test that nobody runs proves nothing."""
    message = f"{reason} Browser tests need Chromium: `apt-get install chromium` (or Google Chrome)."
    if os.environ.get("CI"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


@pytest.fixture(scope="session")
def chromium():
    """A worker's headless Chromium, and the event loop that Playwright keeps running in this thread."""
    path = find_browser()
    if path is None:
        _no_browser(f"None of {', '.join(BROWSERS)} is on the PATH.")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _no_browser('The Python package playwright is missing (pip install -c requirements.lock -e ".[test]").')
    with sync_playwright() as playwright:
        chromium, loop = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS)), get_running_loop()
        _set_running_loop(None)
        yield chromium, loop
        _set_running_loop(loop)
        chromium.close()


@pytest.fixture(scope="module")
def browser(chromium):
    """Playwright's Browser. Between a worker's files with a browser, its loop is out of the way: a notebook that a test
    executes wants this thread for a loop of its own.
    """
    browser, loop = chromium
    _set_running_loop(loop)
    yield browser
    _set_running_loop(None)


def _guarded(browser, **options):
    """A context that reaches nothing outside this machine; what it asked for in vain, and its script errors."""
    context = browser.new_context(**{"viewport": VIEWPORT, **options})
    context.set_default_timeout(90_000)  # a failure is slow, a busy machine is none
    outside, errors = [], []

    def note(request):  # a page's request or web socket
        if not request.url.startswith(LOCAL):
            outside.append(request.url)

    def answer(dialog):
        if dialog.type == "beforeunload":  # Jupyter's question whether to leave what is not saved
            dialog.accept()
        else:
            errors.append(f"{dialog.type}: {dialog.message}")
            dialog.dismiss()

    context.route(lambda url: not url.startswith(LOCAL), lambda route: route.abort())
    context.on("request", note)
    context.on("page", lambda page: page.on("websocket", note))
    context.on("dialog", answer)
    context.on("weberror", lambda e: errors.append(f"uncaught: {e.error}"))
    context.on("console", lambda m: errors.append(f"console: {m.text}") if m.type == "error" else None)
    return context, outside, errors


class _Shared:
    """A context for a module's ordinary pages. The first of them its tests have in turn, since it takes longer to open
    than most tests take; the next goes from what it shows to what they show.

    What a test leaves behind beyond that (a clock, something stored) ends the context, too.
    """

    def __init__(self, browser):
        self.browser, self.guarded, self.taken = browser, None, False

    def open(self):
        if self.guarded is None:
            self.guarded = _guarded(self.browser)
            self.guarded[0].new_page()
        context, outside, errors = self.guarded
        page = context.new_page() if self.taken else context.pages[0]
        self.taken = True
        return page, outside, errors

    def clear(self):
        if self.guarded is None:
            return
        context, *heard = self.guarded
        clean = all(map(self._is_clean, context.pages))
        for page in context.pages[1:]:
            page.close()
        for kept in heard:
            kept.clear()
        self.taken = False
        if not clean:
            self.close()

    @staticmethod
    def _is_clean(page) -> bool:
        from playwright.sync_api import Error

        try:
            return page.evaluate("""!("__pwClock" in globalThis) && !localStorage.length && !sessionStorage.length
                                    && !document.cookie""")
        except Error:  # a page that has crashed, or does not answer
            return False

    def close(self):
        if self.guarded is not None:
            self.guarded[0].close()
            self.guarded = None


@pytest.fixture(scope="module")
def shared_context(browser):
    """The context in which a module's ordinary pages open."""
    shared = _Shared(browser)
    yield shared
    shared.close()


@pytest.fixture
def open_page(browser, shared_context, request):
    """A function that opens a guarded page; its keywords go to Playwright's ``browser.new_context``.

    The page has two extra attributes, which also cover the windows it opens: ``outside_requests`` (addresses
    outside this machine that it asked for, all refused) and ``script_errors`` (uncaught exceptions, console errors and
    alarms). A page of ordinary options, whatever its size and colours, is the module's, unless it visits a Jupyter
    server, which stores things, or the test already has it; what it is told to do to later pages (``add_init_script``)
    takes a page of its own, of any other option.
    """
    own = []

    def opened(**options):
        if options.keys() <= {"viewport", "color_scheme"} and "jupyter" not in request.fixturenames:
            page, outside, errors = shared_context.open()
            page.set_viewport_size(options.get("viewport", VIEWPORT))
            page.emulate_media(color_scheme=options.get("color_scheme", "light"), media="null", reduced_motion="null")
        else:
            context, outside, errors = _guarded(browser, **options)
            own.append(context)
            page = context.new_page()
        page.outside_requests, page.script_errors = outside, errors
        page.runs_scripts = options.get("java_script_enabled", True)
        return page

    yield opened
    for context in own:
        if "jupyter" in request.fixturenames:
            end_kernels(context.pages[0])
        context.close()
    shared_context.clear()


@pytest.fixture
def browser_page(open_page):
    """One guarded page of 1280 x 720 (see ``open_page``)."""
    return open_page()


@pytest.fixture
def show(open_page, tmp_path, monkeypatch, request):
    """Put HTML (or widgets) on ``browser_page``, or on another page; give the page. At the end nothing may have gone
    wrong.

    Where scripts run, a widget's picture for pages without them is left out: nobody would see it, and it takes longer
    to draw than the rest of the page.
    """
    shown = []

    def _show(*parts, page=None):
        page = page or request.getfixturevalue("browser_page")
        shown.append(page)
        file = tmp_path / "page.html"
        with monkeypatch.context() as patch:
            if page.runs_scripts:
                patch.setattr(CourseWidget, "_still_html", lambda widget: "")
            body = "\n".join(part if isinstance(part, str) else part.to_html() for part in parts)
        file.write_text(f"<!doctype html><meta charset=utf-8><body>{body}", encoding="utf-8")
        page.goto(file.as_uri())
        page.mouse.move(1, 1)  # the first event of all has no movement
        return page

    yield _show
    for page in shown:
        assert page.script_errors == []
        assert page.outside_requests == []


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory):
    """A Jupyter server over a folder of its own: ``(address, folder, notary)``.

    A worker's files share it, so the names of their notebooks differ.
    """
    from nbformat.sign import NotebookNotary

    home = tmp_path_factory.mktemp("jupyter")
    folder = home / "notebooks"
    folder.mkdir()
    names = ("LAB_SETTINGS", "LAB_WORKSPACES")
    places = {f"JUPYTER{name}_DIR": str(home / name) for name in names}
    labconfig = home / "CONFIG" / "labconfig"
    labconfig.mkdir(parents=True)
    (labconfig / "default_setting_overrides.json").write_text(json.dumps({
        "@jupyterlab/notebook-extension:tracker": {"autoStartDefaultKernel": True},
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
        "@jupyterlab/apputils-extension:themes": {"theme": "JupyterLab Dark"},
        "@jupyterlab/lsp-extension:plugin": {"activate": "off"},
    }))
    command = ["jupyter", "lab", "--allow-root", "--ip=127.0.0.1", f"--ServerApp.root_dir={folder}"]
    command += [f"--{app}.expose_app_in_browser=True" for app in ("LabApp", "JupyterNotebookApp")]
    with jupyter_server(home, *command, **places) as address:
        notary = NotebookNotary(data_dir=str(home / "DATA"))
        yield address, folder, notary
        notary.store.close()


@pytest.fixture(scope="session")
def labs():
    """Room for a worker's page of JupyterLab (``lab``), with what it hears, from test to test."""
    return []


@pytest.fixture
def lab(browser, jupyter, labs, request):
    """A guarded page to ``visit`` JupyterLab with. To load it takes longer than most tests, which therefore have it in
    turn, each with a notebook and a kernel of its own, until one fails.
    """
    if not labs:
        context, outside, errors = _guarded(browser)
        page = context.new_page()
        page.outside_requests, page.script_errors = outside, errors
        labs.append(page)
    page, failed = labs[0], request.session.testsfailed
    page.outside_requests.clear()
    page.script_errors.clear()
    yield page
    if request.session.testsfailed == failed:
        close_notebooks(page)
        end_kernels(page)
    else:
        page.context.close()
        labs.clear()
