#!/usr/bin/env python3
"""Makes the golden files of tests/core/text/testdata from the real things.

Needs tokenizers 0.22, jinja2, gguf, transformers 4.57 and numpy; MODEL is the demo model,
SmolLM2-135M-Instruct as GGUF.

    make_golden.py MODEL.gguf OUTPUT_DIRECTORY

corpus.json           texts, and bytes that are no UTF-8 as base64
NAME.tokenizer.json   byte-level BPE trained on the corpus and on random words of many scripts, for
                      each pre-tokenizer; with added tokens of every flag
NAME.ids.json         what the package makes of each text: "special" as it is, "plain" with
                      encode_special_tokens, "decoded" from the former without control tokens
chat.json             conversations, templates, and what Jinja renders; the templates but SmolLM2's are
                      written from memory of the published ones
utf8.json             bytes (base64) and what Python decodes with errors="replace"
nfc.json              marks in random order, and their normalisation form C
"""

import base64
import json
import random
import sys

import gguf
import jinja2.sandbox
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

from chat_golden import CONVERSATIONS, TEMPLATES

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

CORPUS = [
    "",
    " ",
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog. It's 12,345.67 o'clock; we'll see, they'RE here.",
    "I'M HE'S SHE'D WE'LL YOU'VE THEY'RE DON'T i'\u017f it'\u017f IT'\u017f \u2019s '\u212a",
    "   leading and trailing   ",
    "a\tb\t\tc\n\nd\r\ne\r\n\r\n  f \n g\u00a0h\u00a0\u00a0i\u3000j\u2003k\u2028l\u2029m\u0085n\u180eo\u200bp",
    " \n  \n\t\n   x\n\n\n",
    "\r\r\n\n\r   \r\n",
    "0 1 12 123 1234 12345 1234567890 3.14159 1e10 0xFF \u00bd \u00b2\u00b3 \u2167 \u3007 \u4e00\u4e8c\u4e09",
    "\u0661\u0662\u0663\u0664 \u0967\u0968\u0969 \u0e51\u0e52\u0e53 \uff11\uff12\uff13 \U0001d7d8\U0001d7d9 \u2460\u2461 \U00011de0\U00016ff4",
    "Sm\u00f8rrebr\u00f8d, na\u00efve caf\u00e9 \u2013 \u201equotes\u201c \u00abguillemets\u00bb \u2026 \u00df\u1e9e \u0130\u0131",
    "cafe\u0301 n\u0303 a\u0323\u0302 e\u0302\u0323 \u1100\u1161\u11a8 \u0958 \u2126 \u212b \ufb01 \u1e9b\u0323 q\u0307\u0323\u0307",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u0628\u0650\u0633\u0652\u0645\u0650 "
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 \u10e5\u10d0\u10e0\u10d7\u10e3\u10da\u10d8 \u1275\u130d\u122d\u129b",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3067\u3059\u3002\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8 \U00020000\U00031350",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea 1\ufe0f\u20e3 \u2764\ufe0f",
    "def f(x):\n    return {k: v**2 for k, v in x.items() if k != 'a'}  # comment\n\n\nclass A:\n\tpass\n",
    "int main(void) { printf(\"%d\\n\", 1 << 3); return 0; } /* ... */ // ===>>> !=--++",
    "\x00\x01\x02\x03\x04\x07\x08\x0b\x0c\x1b[31mred\x1b[0m\x1c\x1d\x1e\x1f\x7f\x80\x9f\ufeff\ufffe\uffff\U0010ffff",
    "a" * 300,
    "ab" * 500 + "\u00e9" * 200,
    " " * 257 + "x" + " " * 31 + "\n" + " " * 33,
    "\u4e2d" * 100 + "!" * 100 + "1" * 100,
    "https://example.org/a_b-c?d=e&f=%20#g user.name+tag@mail.example",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "x<|im_end|>y <|im_end|> z<|im_end|><|im_end|>\n\n<|im_end",
    "<<|im_end|>> <|im_end|> <|im_|> <|im_start|><think>\nhm\n</think>\n",
    "left<lstrip> both <lstrip>  <lstrip> \t\u3000<lstrip>|<rstrip> <rstrip>  x<rstrip>\n\n y",
    "word singleword word,singleword.singleword singlewords _singleword \u00e9singleword \u0301singleword",
    "<norm\u00e9> <norme\u0301> <norm>  <norm><norm>x",
    "overlap<ab><abc><abcd>bcd><a",
    "\U000105c0\U00010d40\U0001e030\U00011f50\u1c89\ua7da letters of Unicode 15 and 16",
]
BYTES = [
    b"\xff", b"\x80\x80", b"a\xc3", b"a\xc3(b", b"\xe2\x82 x", b"\xed\xa0\x80", b"\xf0\x9f\x98",
    b"caf\xe9 au lait", b"\xf4\x90\x80\x80<|im_end|>\xc0\xaf 12",
]
SCRIPTS = [(0x61, 0x7a), (0x41, 0x5a), (0x30, 0x39), (0xe0, 0xff), (0x400, 0x44f), (0x3b1, 0x3c9),
           (0x5d0, 0x5ea), (0x627, 0x64a), (0x905, 0x939), (0xe01, 0xe2e), (0x3041, 0x3096),
           (0x4e00, 0x4e60), (0xac00, 0xac60), (0x1f600, 0x1f640), (0x21, 0x2f), (0x300, 0x30f)]


def training_texts():
    generator = random.Random(1)
    words = []
    for _ in range(400):
        low, high = generator.choice(SCRIPTS)
        words.append("".join(chr(generator.randint(low, high))
                             for _ in range(generator.randint(1, 8))))
    for _ in range(1500):
        yield generator.choice(["", " ", "\n", "  "]).join(
            words[int(len(words) * generator.random() ** 2)] for _ in range(8)) + generator.choice(
                [".", "!\n", "\n\n", "\t", "'s ", "12"])
    for text in CORPUS:
        for _ in range(20):
            yield text


def added_tokens():
    yield AddedToken("<|endoftext|>", special=True, normalized=False)
    yield AddedToken("<|im_start|>", special=True, normalized=False)
    yield AddedToken("<|im_end|>", special=True, normalized=False)
    yield AddedToken("<think>", special=False, normalized=False)
    yield AddedToken("</think>", special=False, normalized=False)
    yield AddedToken("<lstrip>", special=False, normalized=False, lstrip=True)
    yield AddedToken("<rstrip>", special=True, normalized=False, rstrip=True)
    yield AddedToken("singleword", special=False, normalized=False, single_word=True)
    yield AddedToken("<norm\u00e9>", special=False, normalized=True)
    yield AddedToken("<norm>", special=False, normalized=True, lstrip=True, rstrip=True)
    yield AddedToken("<ab>", special=False, normalized=True)
    yield AddedToken("<abc>", special=False, normalized=False)
    yield AddedToken("<abcd>bc", special=False, normalized=False)


def trained(name, pre_tokenizer, vocab_size, normalizer=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    # GPT-2's keeps to the bytes that occurred, so that some have no token.
    alphabet = [] if name == "gpt2" else pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(training_texts(), trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False))
    for token in added_tokens():
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    if name == "llama3":
        bos = tokenizer.token_to_id("<|endoftext|>")
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<|endoftext|> $A",
                                          pair="<|endoftext|> $A <|endoftext|> $B",
                                          special_tokens=[("<|endoftext|>", bos)])])
    if ignore_merges:
        tokenizer = with_unreachable_words(tokenizer)
    return tokenizer


def with_unreachable_words(tokenizer):
    """Drops every tenth merge that others do not need, so that ignore_merges matters."""
    spec = json.loads(tokenizer.to_str())
    merges = spec["model"]["merges"]
    needed = {part for pair in merges for part in pair}
    spec["model"]["merges"] = [pair for i, pair in enumerate(merges)
                               if i % 10 != 5 or "".join(pair) in needed]
    return Tokenizer.from_str(json.dumps(spec))


def byte_level(use_regex=True):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def split(regex):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"),
                                    byte_level(use_regex=False)])


def smollm():
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()])


def ids_of(tokenizer):
    cases = []
    for text in CORPUS:
        tokenizer.encode_special_tokens = False
        special = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = True
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        cases.append({"special": special, "plain": plain,
                      "decoded": tokenizer.decode(special, skip_special_tokens=True)})
    return cases


def rendered(smollm2_template):
    """As transformers compiles chat templates (without its generation tag, which none has)."""
    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True,
                                                               lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    result = []
    for name, (family, bos, eos, source) in {
            "smollm2": ("chatml", "<|im_start|>", "<|im_end|>", smollm2_template),
            **TEMPLATES}.items():
        template = environment.from_string(source)
        cases = []
        for i, conversation in enumerate(CONVERSATIONS):
            for prompt in (False, True):
                try:
                    text = template.render(messages=conversation, add_generation_prompt=prompt,
                                           bos_token=bos, eos_token=eos)
                except jinja2.exceptions.TemplateError:
                    text = None
                cases.append({"conversation": i, "add_generation_prompt": prompt, "text": text})
        result.append({"name": name, "family": family, "bos": bos, "eos": eos,
                       "template": source, "cases": cases})
    return {"conversations": CONVERSATIONS, "templates": result}


def utf8_cases():
    generator = random.Random(2)
    parts = ["a", "\u00e9", "\u20ac", "\U0001f600", "\u0301"]
    for _ in range(200):
        data = bytearray("".join(generator.choices(parts, k=6)).encode())
        for _ in range(generator.randint(0, 4)):
            data[generator.randrange(len(data))] = generator.choice(
                [0x80, 0xbf, 0xc0, 0xc3, 0xe0, 0xe2, 0xed, 0xf0, 0xf4, 0xf5, 0xff, 0x41])
        yield bytes(data)
    yield from BYTES


def unicode_cases():
    generator = random.Random(3)
    marks = [0x300, 0x301, 0x302, 0x308, 0x323, 0x327, 0x328, 0x345, 0x591, 0x5b0, 0x64b, 0x3099,
             0x1100, 0x1161, 0x11a8, 0x93c, 0x9be, 0x1d165, 0x61, 0x65, 0x20, 0xac00, 0x41, 0x1ea5,
             0x915, 0x9c7, 0x304b, 0x2126, 0x958, 0xfb2a, 0x0]
    nfc = normalizers.NFC()
    texts = ["".join(chr(generator.choice(marks)) for _ in range(generator.randint(1, 12)))
             for _ in range(400)]
    return [[text, nfc.normalize_str(text)] for text in texts]


def main():
    path, out = sys.argv[1:]

    def write(name, value):
        with open(f"{out}/{name}", "w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=True, separators=(",", ":"))
            file.write("\n")

    write("corpus.json", {"texts": CORPUS,
                          "bytes": [base64.b64encode(b).decode() for b in BYTES]})
    for name, pre_tokenizer, vocab_size, options in [
            ("gpt2", byte_level(), 1500, {}),
            ("smollm", smollm(), 1000, {}),
            ("llama3", split(LLAMA3), 2000, {"ignore_merges": True}),
            ("qwen2", split(QWEN2), 1500, {"normalizer": normalizers.NFC()})]:
        tokenizer = trained(name, pre_tokenizer, vocab_size, **options)
        write(f"{name}.tokenizer.json", json.loads(tokenizer.to_str()))
        write(f"{name}.ids.json", ids_of(tokenizer))
    template = gguf.GGUFReader(path).fields["tokenizer.chat_template"].contents()
    write("chat.json", rendered(template))
    write("utf8.json", [[base64.b64encode(b).decode(), b.decode(errors="replace")]
                        for b in utf8_cases()])
    write("nfc.json", unicode_cases())


if __name__ == "__main__":
    main()
