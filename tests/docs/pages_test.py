#!/usr/bin/python3 -B
"""Markdown of the tree: links lead somewhere, what is named exists.

That tables of flags, metrics and alerts are whole is tested where their truth
is: tests/deploy/readme_test.py, tests/monitoring.
"""

import functools
import os
import pathlib
import re
import subprocess
import sys
import unittest
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import markdown  # noqa: E402

# Past the links of the test's sandbox: all of the tree.
ROOT = pathlib.Path("docs/architecture.md").resolve().parents[1]
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
FOLDERS_OF_CODE = ("base", "client", "core", "kernels", "monitoring", "server")


def files(suffix: str, *folders: str) -> Iterator[pathlib.Path]:
    for folder in folders or (".",):
        for path, names, found in os.walk(ROOT / folder):
            names[:] = [name for name in names if name[0] != "." and not
                        (pathlib.Path(path) / name).is_symlink()]
            for name in found:
                if name.endswith(suffix):
                    yield pathlib.Path(path) / name


@functools.cache
def headers() -> list[str]:
    return [path.read_text() for suffix in (".h", "main.cc")
            for path in files(suffix, *FOLDERS_OF_CODE)]


def is_declared(name: str) -> bool:
    """TYPE, FUNCTION, or TYPE::MEMBER of one header."""
    scope, _, member = name.rpartition("::")
    for text in headers():
        if not re.search(rf"\b{member}\b", text):
            continue
        if not scope or re.search(rf"\b(class|struct|enum class) {scope}\b",
                                  text):
            return True
    return False


class LinksTest(unittest.TestCase):

    def test_they_lead_somewhere(self):
        pages = list(files(".md"))
        self.assertGreater(len(pages), 10)
        num_links = 0
        for page in pages:
            for link in markdown.links(page.read_text()):
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                num_links += 1
                with self.subTest(f"{page.relative_to(ROOT)}: {link}"):
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor,
                                      markdown.anchors(target.read_text()))
        self.assertGreater(num_links, 100)


class ArchitectureTest(unittest.TestCase):

    def test_its_names_are_declared(self):
        names = [span for span in markdown.code_spans(ARCHITECTURE)
                 if re.fullmatch(r"(\w+::)*[A-Z]\w+|k[A-Z]\w+", span)]
        self.assertGreater(len(names), 40)
        for name in names:
            with self.subTest(name):
                self.assertTrue(is_declared(name))

    def test_its_paths_exist(self):
        paths = re.findall(r"(?<![\w/.(])[a-z]+/[\w/]+\.(?:py|cc|h)\b",
                           re.sub(r"\[.*?\]\(.*?\)", "", ARCHITECTURE))
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(path):
                self.assertTrue((ROOT / path).exists())

    def test_its_links_say_where_they_lead(self):
        for text, target in re.findall(r"(?<!!)\[([^\]]*)\]\(([^)#]*)\)",
                                       ARCHITECTURE):
            with self.subTest(text):
                self.assertEqual(ROOT / text if "/" in target
                                 else ROOT / "docs" / text,
                                 (ROOT / "docs" / target).resolve())

    def test_every_header_of_core_and_server_is_found(self):
        words = set(re.findall(r"\w+", ARCHITECTURE))
        for folder in ("core", "server"):
            for path in (ROOT / folder).glob("*.h"):
                with self.subTest(path.name):
                    self.assertIn(path.stem, words)

    def test_its_picture_is_what_the_script_draws(self):
        drawn = subprocess.run([ROOT / "docs/architecture_svg.py"], text=True,
                               capture_output=True, check=True).stdout
        self.assertEqual(drawn, (ROOT / "docs/architecture.svg").read_text())

    def test_the_names_in_the_picture_are_declared(self):
        picture = (ROOT / "docs/architecture.svg").read_text()
        titles = re.findall(r'class="title">([^<]*)<', picture)
        for name in titles:
            if re.fullmatch(r"[A-Z]\S*", name):
                with self.subTest(name):
                    self.assertTrue(is_declared(name))


class TablesTest(unittest.TestCase):

    def test_every_flag_and_metric_says_what_to_do(self):
        for page, pattern, num_cells in (
                ("deploy/README.md", r"`--\w+`", 4),
                ("monitoring/README.md", r"`(strata|process)_\w+`", 5)):
            rows = markdown.rows((ROOT / page).read_text(), pattern)
            self.assertGreater(len(rows), 30)
            for cells in rows:
                with self.subTest(cells[0]):
                    self.assertEqual(len(cells), num_cells)
                    self.assertTrue(cells[-1])

    def test_every_event_of_the_log_and_no_other(self):
        page = (ROOT / "deploy/README.md").read_text()
        table = page.partition("\n## Log\n")[2].partition("\n## ")[0]
        listed = [name for cells in markdown.rows(table, "`")
                  for name in re.findall(r"`([^`]+)`", cells[0])]
        logged = {name for path in files(".cc", "server")
                  for name in re.findall(
                      r"(?:->|\.)(?:Info|Warning|Error)\(\s*\"([^\"]+)\"",
                      path.read_text())}
        self.assertEqual(sorted(listed), sorted(logged))

    def test_every_status_that_the_api_names(self):
        proto = (ROOT / "proto/strata.proto").read_text()
        named = re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b|\bUNAVAILABLE\b|"
                           r"\bCANCELLED\b|\bUNAUTHENTICATED\b|\bINTERNAL\b",
                           proto.partition("syntax")[0])
        page = (ROOT / "docs/clients.md").read_text()
        rows = markdown.rows(page, r"[A-Z_]+\b")
        listed = [code for cells in rows for code in cells[0].split(", ")]
        self.assertEqual(sorted(listed), sorted(named))


if __name__ == "__main__":
    unittest.main()
