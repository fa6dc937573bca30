"""Formats and errors of lists of pairs."""

import pytest

from mmssl.utils.pairs_list import read_pairs


def pairs(tmp_path, text):
    path = tmp_path / 'pairs.txt'
    path.write_text(text, encoding='utf-8')
    return [(pair.first, pair.second, pair.same) for pair in read_pairs(path)]


@pytest.mark.parametrize('text, expected', [
    ('1\t1\nAbel_Pacheco\t1\t4\nAbdel\t1\tZoe_B\t12\n',
     [('Abel_Pacheco/Abel_Pacheco_0001.jpg', 'Abel_Pacheco/Abel_Pacheco_0004.jpg', True),
      ('Abdel/Abdel_0001.jpg', 'Zoe_B/Zoe_B_0012.jpg', False)]),
    ('1\r\nA 1 2\r\nA 1 B 1\r\n', [('A/A_0001.jpg', 'A/A_0002.jpg', True), ('A/A_0001.jpg', 'B/B_0001.jpg', False)]),
    ('# two paths\n\na/1.png b/2.png 0\na/1.png  a/2.png 1',
     [('a/1.png', 'b/2.png', False), ('a/1.png', 'a/2.png', True)]),
    ('my a.png\tmy b.png\t1\n', [('my a.png', 'my b.png', True)]),
    ('1 2 1\n', [('1', '2', True)]),
])  # fmt: skip
def test_formats(tmp_path, text, expected):
    assert pairs(tmp_path, text) == expected


@pytest.mark.parametrize('text, words', [
    ('', 'has no pair'),
    ('10 300\n', 'has no pair'),
    ('2 1\nA 1 2\nA 1 B 1\n', r'has 2 pairs, but its first line \(2 1\) says 4'),
    ('1 1\nA 1 2\na.jpg b.jpg 1 x\n', "line 3: expected `NAME 1 4`.*got 'a.jpg b.jpg 1 x'"),
    ('A 1 4\nA 1 B 2\n', 'line 1: expected `PATH PATH 1`.*a list of LFW starts with'),
    ('a.jpg b.jpg 2\n', 'line 1'),
    ('a.jpg b.jpg\n', 'line 1'),
])  # fmt: skip
def test_bad_lists(tmp_path, text, words):
    with pytest.raises(ValueError, match=words) as info:
        pairs(tmp_path, text)
    assert 'pairs.txt' in str(info.value) and 'ann_file' in str(info.value)


def test_missing_list(tmp_path):
    with pytest.raises(FileNotFoundError, match=r'my_key: there is no list .*none\.txt'):
        read_pairs(tmp_path / 'none.txt', owner='my_key')
