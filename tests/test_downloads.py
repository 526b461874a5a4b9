"""The downloads of Multi30k and SST-2, against a local server that behaves well and badly."""

import gzip
import hashlib
import os
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from course_utils.data import download, load_multi30k, load_sst2, multi30k, sst2


class Case(NamedTuple):
    """A data set: its module, small files in the place of its true ones, what they load as, and what to use offline."""

    module: ModuleType
    files: dict[str, bytes]
    load: Callable
    result: list
    offline: str


CASES = {
    "multi30k": Case(
        multi30k,
        {"val.en.gz": gzip.compress("A dog runs. \nTwo\u2028men\n".encode(), mtime=0),
         "val.fr.gz": gzip.compress(b"Un chien court.\nDeux hommes\n", mtime=0)},
        load_multi30k, [("A dog runs.", "Un chien court."), ("Two\u2028men", "Deux hommes")],
        "course_utils.data.grammar.corpus"),
    "sst2": Case(
        sst2, {"dev.tsv": "a dog of a film \t0\nfine\u2028men\t1\n".encode()},
        load_sst2, [("a dog of a film", 0), ("fine\u2028men", 1)], "course_utils.data.load_reviews"),
}


class Server(ThreadingHTTPServer):
    """Serves ``files`` in the way that ``behaviour`` says, and notes what was asked for."""

    daemon_threads = True

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.behaviour, self.asked, self.release = files, "good", [], threading.Event()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802 - the name that http.server calls
        name = self.path.rpartition("/")[2]
        behaviour = self.server.behaviour
        self.server.asked.append(name)
        body = self.server.files[name]
        if behaviour == "missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if behaviour == "corrupted":
            body = body[:-1] + bytes([body[-1] ^ 1])
        if behaviour in ("truncated", "slow"):
            body = body[: len(body) // 2]
        self.wfile.write(body)
        self.wfile.flush()
        if behaviour == "slow":
            self.server.release.wait(10)

    def log_message(self, *_):
        pass


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture
def server(case, monkeypatch):
    with Server(case.files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(case.module, "BASE_URL", f"http://127.0.0.1:{server.server_port}/raw/")
        for name, body in case.files.items():
            monkeypatch.setitem(case.module.SHA256, name, hashlib.sha256(body).hexdigest())
        for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(variable, raising=False)
        yield server
        server.release.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_good_files_are_fetched_once(case, server, folder):
    assert case.load(split="val") == case.result
    assert sorted(path.name for path in folder.iterdir()) == list(case.files)
    assert case.load(split="val") == case.result
    assert server.asked == list(case.files)


@pytest.mark.parametrize("case", [CASES["multi30k"]])
def test_either_language_may_be_the_source(case, server, folder):
    assert load_multi30k("fr", "en", "val") == [(french, english) for english, french in case.result]


def test_the_name_is_given_to_a_whole_file_only(case, server, folder, monkeypatch):
    moved, replace = [], os.replace

    def watched(temporary, path):
        assert Path(temporary).parent == path.parent == folder
        assert hashlib.sha256(Path(temporary).read_bytes()).hexdigest() == case.module.SHA256[path.name]
        assert not path.exists()
        moved.append(path.name)
        replace(temporary, path)

    monkeypatch.setattr(os, "replace", watched)
    case.load(split="val")
    assert moved == list(case.files)


@pytest.mark.parametrize(("behaviour", "message"), [
    ("truncated", r"connection ended after \d+ of \d+ bytes"),
    ("corrupted", "sha256"),
    ("slow", "timed out"),
    ("missing", "404"),
])
def test_a_broken_download_leaves_nothing_behind(case, server, folder, monkeypatch, behaviour, message):
    monkeypatch.setattr(download, "TIMEOUT", 0.3)
    server.behaviour = behaviour
    with pytest.raises(RuntimeError, match=message) as caught:
        case.load(split="val")
    assert case.offline in str(caught.value)
    assert server.asked == list(case.files)[:1]
    assert list(folder.iterdir()) == []
    server.behaviour = "good"
    server.release.set()
    assert case.load(split="val") == case.result


def test_an_interrupted_download_leaves_nothing_behind(case, server, folder, monkeypatch):
    def interrupted(url, file):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(download, "fetch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        case.load(split="val")
    assert list(folder.iterdir()) == []


def test_no_network_names_what_is_embedded(case, server, folder):
    server.shutdown()
    server.server_close()
    with pytest.raises(RuntimeError, match=f"Offline, {case.offline}") as caught:
        case.load(split="val")
    assert f"put the file into {folder}" in str(caught.value)
    assert list(folder.iterdir()) == []


def test_files_that_are_there_are_checked(case, server, folder):
    *good, wrong = case.files
    for name in good:
        (folder / name).write_bytes(case.files[name])
    (folder / wrong).write_bytes(b"something else")
    with pytest.raises(ValueError, match=f"{wrong} has the sha256 sum .* Delete it"):
        case.load(split="val")
    assert server.asked == []


def test_wrong_names(folder):
    with pytest.raises(ValueError, match="no language 'de' here; expected one of en, fr"):
        load_multi30k(target="de")
    with pytest.raises(ValueError, match="no split 'dev'; expected one of train, val, test"):
        load_multi30k(split="dev")
    with pytest.raises(ValueError, match="no split 'dev'; expected one of train, val"):
        load_sst2("dev")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("make", "what"), [(lambda path: path.write_text("a file"), "a file"),
                                            (lambda path: None, "not there")])
def test_course_data_must_name_a_folder(case, server, tmp_path, monkeypatch, make, what):
    path = tmp_path / "typo" / "data"
    path.parent.mkdir()
    make(path)
    monkeypatch.setenv("COURSE_DATA", str(path))
    with pytest.raises(ValueError, match=f"COURSE_DATA is {path}, which is {what}; expected a folder. Make it, or"):
        case.load(split="val")
    assert server.asked == []
    assert not path.is_dir()


def test_course_data_may_begin_with_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("COURSE_DATA", "~")
    assert download.data_folder() == tmp_path


def test_a_folder_that_cannot_be_made_or_written_is_told(case, server, folder, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(RuntimeError, match=f"could not be downloaded .*Permission denied.*Offline, {case.offline}"):
        case.load(split="val")


def test_without_course_data_the_cache_folder_is_used(monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE_DATA", raising=False)
    monkeypatch.setattr(download, "user_cache_dir", lambda name: str(tmp_path / name))
    assert download.data_folder() == tmp_path / "attention-course"
