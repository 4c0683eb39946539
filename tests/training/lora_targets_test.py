"""tests/golden/lora_targets.json, which the server is tested with, is PEFT's."""
import pathlib
import runpy
import unittest

GOLDEN = pathlib.Path(__file__).absolute().parents[1] / "golden"


class LoraTargetsTest(unittest.TestCase):

    def test_the_modules_of_each_config_are_those_that_peft_takes(self):
        made = runpy.run_path(str(GOLDEN / "make_lora_targets.py"))
        self.assertEqual((GOLDEN / "lora_targets.json").read_text(),
                         made["text"]())


if __name__ == "__main__":
    unittest.main()
