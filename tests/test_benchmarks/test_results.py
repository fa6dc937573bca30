"""The committed results: every table says what its files say, and no config changed after its run."""

from pathlib import Path

import bench_table
import pytest
from proof_harness import report
from proof_harness.grid import grid_names, load_grid

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize('name', grid_names(PROJECT))
def test_tables_configs_and_result_files_agree(name: str) -> None:
    assert report.check(load_grid(name, PROJECT)) == []


def test_every_result_folder_belongs_to_a_grid() -> None:
    folders = {path.name for path in (PROJECT / 'benchmarks/results').glob('*') if path.is_dir()}
    assert folders <= {*grid_names(PROJECT), 'bench'}


def test_the_page_of_benchmarks_says_what_their_files_say() -> None:
    assert bench_table.main(['--check']) == 0
