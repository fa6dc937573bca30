"""A supervised run resumes exactly: a stock model and preprocessor on one source of ours."""

import pytest


@pytest.mark.parametrize('workers', [pytest.param(0, marks=pytest.mark.slow), 2])
def test_supervised_run_on_one_source(lab, supervised, workers):
    config = lab.write(supervised, workers=workers)
    whole = lab.run(config, 'whole')
    assert 'source labeled: 4 images' in whole
    lab.killed(config, 'parts', at=7)
    lab.run(config, 'parts', '--resume')
    assert [entry['step'] for entry in lab.logged('whole') if 'loss' in entry] == list(range(1, 13))
    lab.assert_same('whole', 'parts')
