"""Unpack the `.bin` files of face verification benchmarks into images and a list of pairs, as the configs read them.

    python tools/datasets/unpack_face_bin.py lfw.bin cfp_fp.bin agedb_30.bin --out data/face_pairs

`lfw.bin` becomes the folder `lfw` with the images `00000.jpg`, `00001.jpg`, ... (the bytes of the file, not encoded
anew) and `pairs.txt`. A `.bin` is a pickle, which can run code when it is loaded as usual: here it is not, and a file
that would need more than bytes, numbers and lists is refused.

What is there already stays: equal files are left alone, so that an interrupted run is continued by the same command,
and a file that differs is an error.
"""

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

from mmssl.utils.atomic import write_atomically
from mmssl.utils.cli import USER_ERRORS
from mmssl.utils.errors import one_line
from mmssl.utils.face_bin import image_suffix, read_face_bin


def write_once(path: Path, data: bytes) -> None:
    """Write a file that does not exist yet, or has this content already.

    Raises:
        FileExistsError: Its content is another.
    """
    if not path.exists():
        write_atomically(path, data)
    elif path.read_bytes() != data:
        raise FileExistsError(f'--out: {path} exists and differs; nothing is overwritten, choose another folder')


def unpack(source: Path, folder: Path) -> str:
    """Unpack one file.

    Args:
        source: The `.bin` file.
        folder: Where its images and list go.

    Returns:
        What was done.
    """
    content = read_face_bin(source, 'FILE')
    names = [f'{number:05d}{image_suffix(image)}' for number, image in enumerate(content.images)]
    for number, (name, image) in enumerate(zip(names, content.images, strict=True), 1):
        write_once(folder / name, image)
        if sys.stderr.isatty():
            print(f'\r{source.name}: {number}/{len(names)} ', end='', file=sys.stderr, flush=True)
    lines = ['# mmssl unpack_face_bin, version 1', f'# source: {source.name}',
             f'# source_sha256: {hashlib.sha256(source.read_bytes()).hexdigest()}']  # fmt: skip
    lines += [f'{names[2 * pair]} {names[2 * pair + 1]} {int(same)}' for pair, same in enumerate(content.same)]
    # Last, so that a list means that all images are there.
    write_once(folder / 'pairs.txt', ('\n'.join(lines) + '\n').encode())
    return f'{folder}: {len(content.same)} pairs, {sum(content.same)} of them of one person'


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog='unpack_face_bin.py'
    )
    parser.add_argument('files', nargs='+', type=Path, metavar='FILE', help='a .bin file')
    parser.add_argument('--out', required=True, type=Path, help='folder, in which each file gets a folder of its name')
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0, or 2 after an error of the user's.
    """
    args = build_parser().parse_args(argv)
    try:
        for source in args.files:
            print(unpack(source, args.out / source.stem))
    except USER_ERRORS as error:
        print(f'unpack_face_bin: error: {one_line(error)}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
