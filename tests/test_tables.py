"""The tables of experiments/README.md are those that are stored, and benchmarks store what they are made from."""

import importlib
import re
import sys

import pytest

from course_utils.claims.stored import EXPERIMENTS, store, stored

sys.path.insert(0, str(EXPERIMENTS))
tables = importlib.import_module("tables")


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.parent.name)
def test_a_page_has_what_is_stored(page):
    text = page.read_text(encoding="utf-8")
    assert tables.renew(text) == text, "run python experiments/tables.py"


@pytest.mark.parametrize("name", tables.TABLES)
def test_each_table_has_its_place_and_a_script(name):
    text = "".join(page.read_text(encoding="utf-8") for page in tables.PAGES)
    assert len(re.findall(f"<!-- {name} -->\n[^<]+\n<!-- end of {name} -->", text)) == 1
    assert (EXPERIMENTS / f"{name.split()[0]}.py").is_file()


def test_every_script_and_every_measurement_has_its_row():
    rows = [line for line in (EXPERIMENTS / "README.md").read_text(encoding="utf-8").splitlines() if line[0:1] == "|"]
    for script in EXPERIMENTS.glob("*.py"):
        row, = (row for row in rows if f"`python experiments/{script.name}`" in row)
        assert not script.with_suffix(".json").is_file() or row.endswith(f"| `{script.stem}.json` |")


def test_a_table_has_means_in_percent_and_a_gap_where_nothing_was_measured():
    rows = {"50": {"accuracy": {"a": [0.5, 0.6], "b": [0.25, 0.25]}, "cpu_seconds": [1.0, 2.0]},
            "2000": {"accuracy": {"a": [0.75, 0.75]}, "cpu_seconds": [60.0, 61.2]}}
    _, _, first, second = tables.real_reviews({"training_sentences": rows})
    assert first == "| 50 | 55.0 | 25.0 | 2 |"
    assert second == "| 2,000 | 75.0 |  | 61 |"


def test_the_tables_of_speed():
    quick, slow = {"seconds": 0.00123, "megabytes": 12.3}, {"seconds": 1.5, "megabytes": 1234.5}
    results = {"device": "CPU", "dtype": "float32", "lengths": [1024, 2048],
               "forward": {"dense": [quick, {"megabytes_needed": 2e6}]}, "backward": {"dense": [quick, slow]}}
    assert tables.efficient(results) == [
        "|  | n = 1,024 | n = 2,048 |", "|---|---:|---:|", "| dense | 1.2 / 12 | needs up to 2,000 GB |",
        "| dense, with backward | 1.2 / 12 | 1,500 / 1,234 |", "", "(CPU, float32.)"]
    row = {"ours": {"milliseconds": 116.4, "ratio": [1, 1, 1]}, "torch": {"milliseconds": 1, "ratio": [1.034, 1.1, 2]}}
    results = {"layers": {"encoder": {"0.0": row, "0.1": row}},
               "decoding": {"8": {"50": {"cached": 1.0, "reread": 1.84}, "100": {"cached": 0.5, "reread": 4.1}}}}
    assert tables.layers(results)[2:] == ["| encoder | 0 | 116 ms | 1.10 (1.03–2.00) |  |",
                                                    "| encoder | 0.1 | 116 ms | 1.10 (1.03–2.00) |  |"]
    assert tables.decoding(results) == ["| sentences at once | 50 words | 100 |", "|---|---|---|",
                                                  "| 8 | 1.8 | 8.2 |"]
    row = {"ours": 100.2, "transformers": 102.3, "ratio": [0.9, 1.02, 1.1]}
    assert tables.bert({"padded": row})[2] == "| padded | 100 ms | 102 ms | 1.02 (0.90–1.10) |"
    rows = {"AttentionView": {"megabytes": 0.284, "seconds": 0.12, "hover": 16.2, "head": 1284.0},
            "BertViz": {"megabytes": 3.29, "failed": "Timeout"}}
    assert tables.attention_view({"6 × 12 × 32": rows})[2:] == [
        "| 6 × 12 × 32 | AttentionView | 0.28 MB | 0.12 s | 16 ms | 1,284 ms |",
        "|  | BertViz | 3.29 MB | Timeout |  |  |"]


def test_only_what_is_stored_is_renewed(tmp_path):
    text = "a\n<!-- {0} -->\nold\n<!-- end of {0} -->\nb\n"
    page = text.format("bench_bert") + text.format("bench_efficient")
    row = {"ours": 1.0, "transformers": 1.0, "ratio": [1.0, 1.0, 1.0]}
    store(tmp_path / "bench_bert.json", "python experiments/bench_bert.py", [0], {"full": row})
    new = tables.renew(page, folder=tmp_path)
    assert new.endswith(text.format("bench_efficient"))
    assert re.search(r"^a\n<!-- bench_bert -->\n\| texts .*\n\| full .*\n\n\(Stored measurement of .*\)\n<!-- end of "
                     r"bench_bert -->\nb\n", new, re.DOTALL)
    assert tables.renew(new, folder=tmp_path) == new


SMALL = {"bench_transformer": {"B": 2, "T": 4, "D_MODEL": 8, "N_HEADS": 2, "D_FF": 8, "WARM_UP": 0, "ROUNDS": 2,
                               "BATCHES": (1, 2), "LENGTHS": (2, 3)},
         "bench_bert": {"B": 2, "T": 4, "WARM_UP": 0, "ROUNDS": 2},
         "bench_efficient": {"KINDS": {"sdpa": None}},
         "bench_attention_view": {"CASES": ((1, 1, 3),)}}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")                                        # transformers' own
@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_stores_what_its_tables_are_made_from(name, tmp_path, monkeypatch, capsys):
    benchmark = importlib.import_module(name)
    for size, value in SMALL[name].items():
        monkeypatch.setattr(benchmark, size, value)
    if name == "bench_transformer":
        monkeypatch.setattr(benchmark, "keep_freed_memory", lambda: None)
        monkeypatch.setattr(benchmark, "MODEL", benchmark.Config(8, 2, 1, 8))
    elif name == "bench_bert":
        monkeypatch.setattr(benchmark, "keep_freed_memory", lambda: None)
    options = ["--lengths", "256"] if name == "bench_efficient" else []
    benchmark.main([*options, "--out", str(tmp_path / f"{name}.json")])
    capsys.readouterr()
    result = stored(name, tmp_path)
    assert re.fullmatch(rf"python experiments/{name}\.py( .*)?", result.command)
    lines = [tables.TABLES[table](result.results) for table in tables.TABLES if table.split()[0] == name]
    assert all(len(table) > 2 and any(re.search(r"\d", line) for line in table[2:]) for table in lines)
    if name == "bench_efficient":
        monkeypatch.chdir(tmp_path)
        rows = result.results["forward"], result.results["backward"]
        monkeypatch.setattr(benchmark, "row", lambda kind, backward, *_: rows[backward][kind])   # measured once
        benchmark.main([*options, "--print"])                                 # lesson 06 shows it
        assert [file.name for file in tmp_path.iterdir()] == [f"{name}.json"]
        assert capsys.readouterr().out.splitlines() == lines[0]
