"""A tokenizer of bytes, for models that are made here from nothing."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

EOS = 256
VOCAB_SIZE = 257


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A token for each byte, and one for the end of a text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {text: index for index, text in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocabulary | {"<eos>": EOS}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<eos>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<eos>"
    )
