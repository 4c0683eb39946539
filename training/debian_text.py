"""English prose that Debian packages ship, as training text.

    PYTHONPATH=. python3 -m training.debian_text --out=FILE.txt

Two packages, of each as many characters: dict-foldoc (a dictionary of
computing) and anarchism (a book of questions and answers about politics and
history), both under the GNU FDL.  What they say matters little to a
distillation, which learns the model's own next word; that people wrote them
does (README.md, "What was tried").  The same seed and packages make the same
file.
"""

import argparse
import gzip
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from evaluation.failure import told

PARAGRAPHS_PER_DOCUMENT = 8


def paragraphs_of(text: str) -> list[str]:
    """What empty lines separate, each on one line."""
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return [part for part in parts if part]


def read_foldoc(root: pathlib.Path) -> list[str]:
    """An entry: unindented head words, indented text with {links}."""
    path = root / "usr/share/dictd/foldoc.dict.dz"
    documents, head, lines = [], "", []
    for line in gzip.open(path, "rt", encoding="utf-8"):
        if line.strip() and not line.startswith((" ", "{")):
            if lines:
                documents.append([head, *paragraphs_of("".join(lines))])
                lines = []
            head = line.strip()
        else:
            lines.append(line.replace("{", "").replace("}", ""))
    texts = ("\n\n".join(document) for document in documents)
    return [text for text in texts if len(text) > 200]


def read_anarchism(root: pathlib.Path) -> list[str]:
    """Sections in Markdown, without links, emphasis and headings."""
    documents = []
    folder = root / "usr/share/doc/anarchism/markdown"
    for path in sorted(folder.glob("sec*.md.gz")):
        text = gzip.open(path, "rt", encoding="utf-8").read()
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
        text = re.sub(r"[*_#>]", "", text)
        parts = [part for part in paragraphs_of(text) if len(part) > 80]
        for begin in range(0, len(parts), PARAGRAPHS_PER_DOCUMENT):
            part = parts[begin : begin + PARAGRAPHS_PER_DOCUMENT]
            documents.append("\n\n".join(part))
    return documents


READERS = {"dict-foldoc": read_foldoc, "anarchism": read_anarchism}


def fetch(package: str, folder: str) -> pathlib.Path:
    """The package's files, not installed."""
    subprocess.run(
        ["apt-get", "download", "-qq", package], cwd=folder, check=True
    )
    (deb,) = pathlib.Path(folder).glob(f"{package}_*.deb")
    root = pathlib.Path(folder, package)
    subprocess.run(["dpkg", "-x", deb, root], check=True)
    return root


def chosen(documents: list[str], num_chars: int, seed: int) -> list[str]:
    """Documents by chance, until they have `num_chars`."""
    order = list(documents)
    random.Random(seed).shuffle(order)
    taken = []
    while order and num_chars > 0:
        taken.append(order.pop())
        num_chars -= len(taken[-1])
    return taken


def main():
    parser = argparse.ArgumentParser(
        prog="python3 -m training.debian_text",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument(
        "--num_chars", type=int, default=1_200_000, help="of each package"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    documents = []
    with tempfile.TemporaryDirectory() as folder:
        for package, read in READERS.items():
            try:
                root = fetch(package, folder)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"debian_text: {package}: {error}", file=sys.stderr)
                return 1
            documents += chosen(read(root), options.num_chars, options.seed)
    try:
        options.out.write_text(
            "\n\n\n".join(documents) + "\n", encoding="utf-8"
        )
    except OSError as error:
        print(f"debian_text: {told(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
