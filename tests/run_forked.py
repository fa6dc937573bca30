"""Runs jobs, each in a fork of one process, so that every job starts fresh but the imports are paid for once.

Usage: ``python run_forked.py jobs.json``, with ``dict(preload=[modules], blocked=[modules], jobs=[job, ...])``, where a
job is ``dict(name=..., code=..., argv=[...])`` or has ``script=path`` instead of ``code``. What is blocked cannot be
imported, as where it is not installed. Prints one JSON line: ``{name: dict(rc=..., output=...)}``.
"""

import importlib
import json
import os
import runpy
import sys
import tempfile
import traceback


class Blocked:
    """Import hook that hides packages."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in self.names:
            raise ModuleNotFoundError(f'{name} is blocked')


def run(job):
    """Run one job in a fork; its exit code and what it printed."""
    with tempfile.TemporaryFile('w+') as output:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                sys.argv = [job.get('script', job['name']), *job.get('argv', [])]
                if 'script' in job:
                    runpy.run_path(job['script'], run_name='__main__')
                else:
                    exec(compile(job['code'], job['name'], 'exec'), {'__name__': '__main__'})
                code = 0
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else int(error.code is not None)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        output.seek(0)
        return dict(rc=os.waitstatus_to_exitcode(status), output=output.read())


def main():
    """Run all jobs of the file."""
    with open(sys.argv[1]) as file:
        plan = json.load(file)
    sys.meta_path.insert(0, Blocked(plan.get('blocked', [])))
    for name in plan.get('preload', []):
        importlib.import_module(name)
    print(json.dumps({job['name']: run(job) for job in plan['jobs']}))


if __name__ == '__main__':
    main()
