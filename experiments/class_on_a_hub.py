"""A class on one server: seconds and memory per student, and whether their files are private.

``python experiments/class_on_a_hub.py`` starts ``hub/jupyterhub_config.py`` on loopback, as root. Ten students log in
at once with the class's password, open lesson 02 and run it to the end, each in a server of their own. Then the first
one tries to read the second one's folder, from a cell and through the web. It writes ``class_on_a_hub.json`` and
removes the accounts it made. ``configurable-http-proxy`` (npm) has to be on the ``PATH``.
"""

import argparse
import json
import os
import pwd
import runpy
import secrets
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import psutil
import requests
import websocket

from course_utils.claims.stored import store

HERE = Path(__file__).resolve().parent
ADDRESS = "http://127.0.0.1:8890"
CONFIG = HERE.parent / "hub" / "jupyterhub_config.py"
FOLDER = f"{runpy.run_path(str(CONFIG))['FOLDER']}/notebooks"
PRIVATE = "mine.txt"


class Student:
    """A browser that has logged in, and its server."""

    def __init__(self, name: str, password: str):
        self.name, self.web = name, requests.Session()
        self.web.get(f"{ADDRESS}/hub/login").raise_for_status()
        form = {"username": name, "password": password, "_xsrf": self.web.cookies["_xsrf"]}
        self.web.post(f"{ADDRESS}/hub/login", data=form).raise_for_status()

    def url(self, path: str, of: str | None = None) -> str:
        """An address of the student's server, or of another's."""
        return f"{ADDRESS}/user/{of or self.name}/{path}"

    def token(self) -> dict[str, str]:
        """What a page of the server sends along with a change."""
        cookies = {cookie.path: cookie.value for cookie in self.web.cookies if cookie.name == "_xsrf"}
        return {"X-XSRFToken": cookies[f"/user/{self.name}/"]}

    def wait(self) -> None:
        """Until the server answers.

        Raises:
            TimeoutError: after five minutes; what the hub said is in its log.
        """
        for _ in range(600):
            answer = self.web.get(self.url("lab"))
            if answer.status_code == 200 and answer.url.startswith(self.url("")):
                return
            time.sleep(0.5)
        raise TimeoutError(f"the server of {self.name} did not come within five minutes: {answer.url}")

    def open(self, notebook: str) -> list[str]:
        """The code cells of a notebook in the student's folder, and a kernel for them."""
        content = self.web.get(self.url(f"api/contents/{FOLDER}/{notebook}"))
        content.raise_for_status()
        made = self.web.post(self.url("api/kernels"), json={"name": "python3", "path": f"{FOLDER}/{notebook}"},
                             headers=self.token())
        made.raise_for_status()
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.web.cookies)
        address = self.url(f"api/kernels/{made.json()['id']}/channels").replace("http", "ws", 1)
        self.kernel = websocket.create_connection(address, cookie=cookies, timeout=1800)
        cells = nbformat.from_dict(content.json()["content"]).cells
        return [cell.source for cell in cells if cell.cell_type == "code"]

    def run(self, code: str) -> str:
        """Run a cell; its printed text, or the error's."""
        asked, said = secrets.token_hex(8), []
        header = {"msg_id": asked, "msg_type": "execute_request", "version": "5.3", "session": "s", "username": ""}
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False, "stop_on_error": True}
        self.kernel.send(json.dumps({"header": header, "parent_header": {}, "metadata": {}, "content": content,
                                     "buffers": [], "channel": "shell"}))
        while True:
            message = self.kernel.recv()
            if isinstance(message, bytes):       # with buffers: how many parts, where each begins, the parts
                begin, end = (int.from_bytes(message[i:i + 4], "big") for i in (4, 8))
                message = message[begin:end]
            message = json.loads(message)
            if message["parent_header"].get("msg_id") != asked:
                continue
            if message["msg_type"] == "stream":
                said.append(message["content"]["text"])
            elif message["msg_type"] == "error":
                raise RuntimeError(f"{self.name}: {message['content']['ename']}: {message['content']['evalue']}")
            elif message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return "".join(said)


def memory(names: set[str]) -> dict[str, float]:
    """Megabytes of each student's processes; what they share is divided among them."""
    found = dict.fromkeys(names, 0.0)
    for process in psutil.process_iter(["username"]):
        if process.info["username"] in names:
            found[process.info["username"]] += process.memory_full_info().pss / 1e6
    return found


def lesson(name: str, password: str, notebook: str) -> tuple[Student, dict[str, float]]:
    """One student's hour: seconds until the server is there, the first cell has run, the lesson has run."""
    start = time.monotonic()
    student, seconds = Student(name, password), {}
    student.wait()
    seconds["to the server"] = time.monotonic() - start
    start = time.monotonic()
    first, *others = student.open(notebook)
    student.run(first)
    seconds["to the first cell"] = time.monotonic() - start
    start = time.monotonic()
    for source in others:
        student.run(source)
    seconds["of the lesson"] = time.monotonic() - start
    return student, seconds


def tries_to_read(thief: Student, owner: str) -> dict[str, bool]:
    """Whether another's file was read, by two ways in."""
    home = pwd.getpwnam(owner).pw_dir
    code = f"try:\n    print(open('{home}/{PRIVATE}').read())\nexcept PermissionError:\n    print('refused')"
    web = thief.web.get(thief.url(f"api/contents/{PRIVATE}", of=owner))
    return {"from a cell": "secret" in thief.run(code), "through the web": web.ok and "secret" in web.text}


def main(arguments: list[str] | None = None) -> None:
    """Start the hub, hold the class, store, clean up."""
    parser = argparse.ArgumentParser(description="A class on one server: seconds, memory, privacy.")
    parser.add_argument("--students", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--notebook", default="02_bahdanau_attention.ipynb", help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    names, password = [f"course-try-{i}" for i in range(options.students)], secrets.token_hex(12)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "jupyterhub", "-f", str(CONFIG),
                   "--JupyterHub.bind_url=" + ADDRESS]
        with (Path(folder) / "log").open("w") as log:
            hub = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log,
                                   env={**os.environ, "COURSE_PASSWORD": password})
        try:
            while True:
                try:
                    requests.get(f"{ADDRESS}/hub/health", timeout=5).raise_for_status()
                    break
                except requests.RequestException:
                    if hub.poll() is not None:
                        sys.exit("the hub has ended; its log is above")
                    time.sleep(0.5)
            of_the_hub = sum(p.memory_full_info().pss for p in [psutil.Process(hub.pid),
                             *psutil.Process(hub.pid).children(recursive=True)]) / 1e6
            with ThreadPoolExecutor(options.students) as pool:
                held = list(pool.map(lambda name: lesson(name, password, options.notebook), names))
            used = memory(set(names))
            owner, thief = names[-1], held[0][0]
            file = Path(pwd.getpwnam(owner).pw_dir, PRIVATE)
            file.write_text("secret")
            file.chmod(0o644)
            read = tries_to_read(thief, owner)
        except BaseException:
            print((Path(folder) / "log").read_text()[-4000:], file=sys.stderr)
            raise
        finally:
            hub.terminate()
            hub.wait(60)
            for name in names:
                subprocess.run(["pkill", "-u", name], check=False)
                subprocess.run(["userdel", "--remove", name], check=False, capture_output=True)
    seconds = {what: sorted(round(times[what], 1) for _, times in held) for what in held[0][1]}
    store(options.out, f"python experiments/class_on_a_hub.py --students {options.students} "
          f"--notebook {options.notebook}", [], {
        "students": options.students, "notebook": options.notebook, "seconds": seconds,
        "megabytes_per_student": sorted(round(mb) for mb in used.values()), "megabytes_of_the_hub": round(of_the_hub),
        "others_files_were_read": read})
    print(options.out.read_text())


if __name__ == "__main__":
    main()
