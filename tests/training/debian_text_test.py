"""training/debian_text.py on files as the packages have them."""
import gzip
import pathlib
import tempfile
import unittest

from training import debian_text

ENTRY = """tune

   <jargon> To optimise a {program} or
   system.

   Compare {hack}.

short

   Too short.
"""
SECTION = """# B.1 Heading

Some _text_ with a [link](secH.md#x) that is long enough to be taken for a
paragraph of its own, as most of them are.

Short.
"""


class DebianTextTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True)
        path.write_bytes(gzip.compress(text.encode()))

    def test_entries_lose_links_and_line_breaks(self):
        text = ENTRY.replace("system.", "system. " + "Word by word. " * 20)
        self.write("usr/share/dictd/foldoc.dict.dz", text + "end\n")
        (entry,) = debian_text.read_foldoc(self.root)
        self.assertTrue(entry.startswith(
            "tune\n\n<jargon> To optimise a program or system. Word"), entry)
        self.assertTrue(entry.endswith("\n\nCompare hack."), entry)

    def test_sections_lose_markup(self):
        self.write("usr/share/doc/anarchism/markdown/secB.md.gz", SECTION)
        self.assertEqual(
            debian_text.read_anarchism(self.root),
            ["Some text with a link that is long enough to be taken for a "
             "paragraph of its own, as most of them are."])

    def test_choice_depends_on_the_seed_alone(self):
        documents = [str(number) * 10 for number in range(10, 60)]
        one = debian_text.chosen(documents, 95, seed=1)
        self.assertEqual(len(one), 5)
        self.assertEqual(one, debian_text.chosen(documents, 95, seed=1))
        self.assertNotEqual(one, debian_text.chosen(documents, 95, seed=2))
        self.assertCountEqual(debian_text.chosen(documents, 10**6, 1),
                              documents)


if __name__ == "__main__":
    unittest.main()
