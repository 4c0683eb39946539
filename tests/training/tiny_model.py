"""A random model small enough to train in a test, with a byte tokenizer."""
import torch
from transformers import (LlamaConfig, LlamaForCausalLM, Qwen3Config,
                          Qwen3ForCausalLM)

from training import routing
from training.byte_tokenizer import EOS, VOCAB_SIZE, byte_tokenizer

routing.register()

NUM_LAYERS = 6


def config(kind=LlamaConfig):
    return kind(vocab_size=VOCAB_SIZE, hidden_size=64, intermediate_size=96,
                num_hidden_layers=NUM_LAYERS, num_attention_heads=4,
                num_key_value_heads=2, head_dim=16,
                max_position_embeddings=512, eos_token_id=EOS,
                tie_word_embeddings=kind is LlamaConfig,
                attn_implementation=routing.ATTENTION)


def save(folder, seed=0, qwen3=False):
    """Writes model and tokenizer to `folder`."""
    torch.manual_seed(seed)
    model = (Qwen3ForCausalLM(config(Qwen3Config)) if qwen3
             else LlamaForCausalLM(config()))
    # Norms that differ from 1: losing one shows.
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.data += 0.2 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
