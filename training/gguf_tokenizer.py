"""The tokenizer of a GGUF file as a `tokenizers.Tokenizer`.

transformers' own conversion loses the pre-tokenizer that the file names
(tokenizer.ggml.pre), and with it the tokens that the server makes.  Byte-level
BPE only, the pre-tokenizers that the server knows (core/text/pre_tokenizer.h).
"""

from gguf import GGUFReader
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models
from tokenizers import pre_tokenizers
from transformers import PreTrainedTokenizerFast

CONTROL, USER_DEFINED = 3, 4  # gguf TokenType

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def _split(pattern):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _pre_tokenizer(name):
    if name in ("llama-bpe", "llama3", "llama-v3"):
        return _split(_LLAMA3)
    if name == "qwen2":
        return _split(_QWEN2)
    if name == "smollm":
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )
    if name in ("gpt-2", "gpt2", "default"):
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    raise ValueError(
        f"pre-tokenizer '{name}' is not known; known are smollm, "
        "llama-bpe, qwen2, gpt-2"
    )


def read_tokenizer(path: str) -> PreTrainedTokenizerFast:
    """Raises ValueError where the file has none or one of another kind."""
    fields = GGUFReader(path).fields

    def value(name, default=None):
        field = fields.get("tokenizer." + name)
        return default if field is None else field.contents()

    if value("ggml.tokens") is None:
        raise ValueError(f"{path} has no tokenizer")
    if value("ggml.model") != "gpt2":
        raise ValueError(
            f"{path}: tokenizer '{value('ggml.model')}'; only "
            "byte-level BPE ('gpt2') is known"
        )
    texts, kinds = value("ggml.tokens"), value("ggml.token_type")
    vocabulary = {text: index for index, text in enumerate(texts)}
    merges = [tuple(merge.split(" ")) for merge in value("ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = _pre_tokenizer(value("ggml.pre", "default"))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [
            AddedToken(text, special=True, normalized=False)
            for text, kind in zip(texts, kinds)
            if kind == CONTROL
        ]
    )
    tokenizer.add_tokens(
        [
            AddedToken(text, normalized=False)
            for text, kind in zip(texts, kinds)
            if kind == USER_DEFINED
        ]
    )
    eos = value("ggml.eos_token_id")
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=None if eos is None else texts[eos],
    )
    fast.chat_template = value("chat_template")
    return fast
