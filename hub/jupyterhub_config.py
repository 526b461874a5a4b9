"""JupyterHub for a class on one Linux server: each student has an account and a copy of the notebooks of their own.

As root, in an environment outside root's folder, in which the course and JupyterHub are installed (hub/README.md):

    COURSE_PASSWORD=... jupyterhub -f hub/jupyterhub_config.py

A name that logs in for the first time with the class's password gets an account of the system. Its folder is nobody
else's to read, and what is in it is never overwritten.
"""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

COURSE = Path(__file__).resolve().parents[1]
FOLDER = "attention-course"
SHOWN = ("notebooks", "figures")                 # what a student gets; the package is the server's


def copy_course(home: Path) -> None:
    """Put the course into one's own home folder. Files that are there already stay as they are."""
    home.chmod(0o700)
    for source in (path for name in SHOWN for path in (COURSE / name).rglob("*")):
        target = home / FOLDER / source.relative_to(COURSE)
        if source.suffix in (".ipynb", ".svg", ".png") and ".ipynb_checkpoints" not in source.parts:
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                shutil.copyfile(source, target)


def prepare(spawner) -> None:
    """Before a student's server starts: the account, if there is none, and the notebooks."""
    name = spawner.user.name
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        subprocess.run(["useradd", "--create-home", "--user-group", "--shell", "/bin/bash", name], check=True)
        account = pwd.getpwnam(name)
    if account.pw_uid < 1000:
        raise PermissionError(f"{name} is an account of the system; expected a student's name.")
    # as the student, not as root, who would follow a link that the student has put there
    subprocess.run([sys.executable, __file__, account.pw_dir], check=True, cwd="/", env={},
                   user=account.pw_uid, group=account.pw_gid, extra_groups=[])


if __name__ == "__main__":                       # started by `prepare`
    copy_course(Path(sys.argv[1]))
elif "get_config" in globals():                  # read by JupyterHub
    c = get_config()  # noqa: F821
    c.JupyterHub.authenticator_class = "shared-password"
    c.SharedPasswordAuthenticator.user_password = os.environ["COURSE_PASSWORD"]
    c.Authenticator.allow_all = True
    c.Authenticator.username_pattern = "[a-z][a-z0-9-]{1,30}"
    c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
    c.Spawner.pre_spawn_hook = prepare
    c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
    c.Spawner.default_url = f"/lab/tree/{FOLDER}/notebooks/00_start_here.ipynb"
    c.Spawner.environment = {"OMP_NUM_THREADS": "1"}      # a class shares the cores
    c.Spawner.start_timeout = c.Spawner.http_timeout = 180
    c.JupyterHub.concurrent_spawn_limit = 10              # the others of a class wait a moment instead of failing
