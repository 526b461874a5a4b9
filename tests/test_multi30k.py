"""Multi30k's download, against a local server that behaves well and badly."""

import gzip
import hashlib
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from course_utils.data import multi30k
from course_utils.data.multi30k import load_multi30k

TRUE_FILES = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "multi30k"
ENGLISH = gzip.compress("A dog runs. \nTwo\u2028men\n".encode(), mtime=0)
FRENCH = gzip.compress(b"Un chien court.\nDeux hommes\n", mtime=0)
FILES = {"val.en.gz": ENGLISH, "val.fr.gz": FRENCH}


class Server(ThreadingHTTPServer):
    """Serves ``FILES`` in the way that ``behaviour`` says, and notes what was asked for."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviour, self.asked, self.release = "good", [], threading.Event()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802 - the name that http.server calls
        name = self.path.rpartition("/")[2]
        behaviour = self.server.behaviour
        self.server.asked.append(name)
        body = FILES[name]
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


@pytest.fixture
def server(monkeypatch):
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(multi30k, "BASE_URL", f"http://127.0.0.1:{server.server_port}/raw/")
        for name, body in FILES.items():
            monkeypatch.setitem(multi30k.SHA256, name, hashlib.sha256(body).hexdigest())
        for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(variable, raising=False)
        yield server
        server.release.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_good_files_are_fetched_once(server, folder):
    pairs = [("A dog runs.", "Un chien court."), ("Two\u2028men", "Deux hommes")]
    assert load_multi30k(split="val") == pairs
    assert sorted(path.name for path in folder.iterdir()) == ["val.en.gz", "val.fr.gz"]
    assert load_multi30k(split="val") == pairs
    assert load_multi30k("fr", "en", "val") == [(french, english) for english, french in pairs]
    assert server.asked == ["val.en.gz", "val.fr.gz"]


def test_the_name_is_given_to_a_whole_file_only(server, folder, monkeypatch):
    moved, replace = [], os.replace

    def watched(temporary, path):
        assert Path(temporary).parent == path.parent == folder
        assert hashlib.sha256(Path(temporary).read_bytes()).hexdigest() == multi30k.SHA256[path.name]
        assert not path.exists()
        moved.append(path.name)
        replace(temporary, path)

    monkeypatch.setattr(multi30k.os, "replace", watched)
    load_multi30k(split="val")
    assert moved == ["val.en.gz", "val.fr.gz"]


@pytest.mark.parametrize(("behaviour", "message"), [
    ("truncated", r"connection ended after \d+ of \d+ bytes"),
    ("corrupted", "sha256"),
    ("slow", "timed out"),
    ("missing", "404"),
])
def test_a_broken_download_leaves_nothing_behind(server, folder, monkeypatch, behaviour, message):
    monkeypatch.setattr(multi30k, "TIMEOUT", 0.3)
    server.behaviour = behaviour
    with pytest.raises(RuntimeError, match=message) as caught:
        load_multi30k(split="val")
    assert "course_utils.data.grammar.corpus" in str(caught.value)
    assert server.asked == ["val.en.gz"]
    assert list(folder.iterdir()) == []
    server.behaviour = "good"
    server.release.set()
    assert len(load_multi30k(split="val")) == 2


def test_an_interrupted_download_leaves_nothing_behind(server, folder, monkeypatch):
    def interrupted(url, file):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(multi30k, "fetch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_multi30k(split="val")
    assert list(folder.iterdir()) == []


def test_no_network_names_the_grammar(server, folder):
    server.shutdown()
    server.server_close()
    with pytest.raises(RuntimeError, match=r"Offline, course_utils\.data\.grammar\.corpus") as caught:
        load_multi30k(split="val")
    assert "COURSE_DATA" in str(caught.value)
    assert list(folder.iterdir()) == []


def test_files_that_are_there_are_checked(server, folder):
    folder.mkdir()
    (folder / "val.en.gz").write_bytes(ENGLISH)
    (folder / "val.fr.gz").write_bytes(ENGLISH)
    with pytest.raises(ValueError, match=r"val\.fr\.gz has the sha256 sum .* Delete it"):
        load_multi30k(split="val")
    assert server.asked == []


def test_wrong_names(folder):
    with pytest.raises(ValueError, match="no language 'de' here; expected one of en, fr"):
        load_multi30k(target="de")
    with pytest.raises(ValueError, match="no split 'dev'; expected one of train, val, test"):
        load_multi30k(split="dev")
    assert not folder.exists()


def test_without_course_data_the_cache_folder_is_used(monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE_DATA", raising=False)
    monkeypatch.setattr(multi30k, "user_cache_dir", lambda name: str(tmp_path / name))
    assert multi30k.data_folder() == tmp_path / "attention-course"


@pytest.mark.parametrize(("split", "size"), [("train", 29_000), ("val", 1014), ("test", 1000)])
def test_the_true_files(monkeypatch, split, size):
    if not TRUE_FILES.is_dir():
        pytest.skip(f"the Multi30k files are not at {TRUE_FILES}")
    monkeypatch.setenv("COURSE_DATA", str(TRUE_FILES))
    pairs = load_multi30k(split=split)
    assert len(pairs) == size
    assert all(source and target and source == source.strip() for source, target in pairs)
