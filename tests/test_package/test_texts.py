"""What code and texts must not do: depend on a machine's encoding, promise other systems, claim speed."""

import ast
import re
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parents[2]
SOURCES = [path for folder in ('mmssl', 'tools', 'benchmarks') for path in sorted((REPO_ROOT / folder).rglob('*.py'))
           if 'configs' not in path.parts and '.mim' not in path.parts] + [REPO_ROOT / 'setup.py']  # yapf: disable


def test_text_files_are_read_and_written_as_utf8():
    assert len(SOURCES) > 50
    found = []
    for path in SOURCES:
        for call in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, 'attr', None) or getattr(call.func, 'id', None)
            mode = call.args[1] if len(call.args) > 1 else None
            text_open = isinstance(call.func, ast.Name) and name == 'open' and 'b' not in getattr(mode, 'value', 'r')
            if (name in ('read_text', 'write_text') or text_open) and all(k.arg != 'encoding' for k in call.keywords):
                found.append(f'{path.relative_to(REPO_ROOT)}:{call.lineno}')
    assert not found


def test_only_posix_is_promised():
    # The proof harness and the demo need fcntl and process groups.
    text = (REPO_ROOT / 'setup.py').read_text(encoding='utf-8')
    assert re.findall(r'Operating System :: ([\w :]+)', text) == ['POSIX']


def test_speed_is_claimed_only_where_it_is_measured():
    claim = re.compile(
        r'times (faster|slower)|order of magnitude|quarter of an hour|price of|costs seconds|the least in')
    files = [path for path in SOURCES if 'benchmarks' not in path.parts]
    files += [REPO_ROOT / 'Makefile', *sorted((REPO_ROOT / 'configs/_base_').rglob('*.py'))]
    files += [REPO_ROOT / 'README.md', *sorted((REPO_ROOT / 'docs').glob('*.md'))]
    found = [f'{path.relative_to(REPO_ROOT)}: {match.group()}' for path in files
             for match in claim.finditer(path.read_text(encoding='utf-8'))]
    assert not found
