"""Loading what is trained: a Hugging Face directory or a GGUF file."""

import os
import pathlib

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers import logging as transformers_logging

from training import routing
from training.gguf_tokenizer import read_tokenizer

ARCHITECTURES = ("llama", "mistral", "qwen2", "qwen3")  # as the server


class ModelError(ValueError):
    """A model that cannot be used; the message is for users."""


def load(path: str, dtype: torch.dtype):
    """The (model, tokenizer) at `path`, with routable attention."""
    routing.register()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    if os.path.isfile(path):
        with open(path, "rb") as start:
            if start.read(4) != b"GGUF":
                raise ModelError(f"--model={path} is no GGUF file")
        folder, file = os.path.split(os.path.abspath(path))
        source, extra = folder, {"gguf_file": file}
    else:
        source, extra = path, {}
    if not extra and not os.path.exists(os.path.join(path, "tokenizer.json")):
        raise ModelError(f"--model={path} has no tokenizer.json")
    # What is in the files can make these libraries raise anything.
    try:
        tokenizer = (
            read_tokenizer(path)
            if extra
            else AutoTokenizer.from_pretrained(path)
        )
    except Exception as error:  # pylint: disable=broad-except
        raise ModelError(
            f"--model={path} has no tokenizer: {_in_a_line(error)}"
        ) from None
    try:
        model, info = AutoModelForCausalLM.from_pretrained(
            source,
            dtype=dtype,
            attn_implementation=routing.ATTENTION,
            output_loading_info=True,
            **extra,
        )
    except Exception as error:  # pylint: disable=broad-except
        raise ModelError(f"--model={path}: {_in_a_line(error)}") from None
    if model.config.model_type not in ARCHITECTURES:
        raise ModelError(
            f"--model={path} is a {model.config.model_type}; "
            f"the server loads {', '.join(ARCHITECTURES)}"
        )
    if info["missing_keys"]:  # transformers would train random numbers
        raise ModelError(
            f"--model={path} lacks the tensor {min(info['missing_keys'])}"
        )
    model.config.use_cache = False
    return model, tokenizer


def _in_a_line(error):
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 300 else text[:297] + "..."


def add_lora(model, rank: int, train_norms: bool):
    """Freezes `model` and adds a LoRA to every linear layer but the head."""
    norms = sorted(
        {
            name.rsplit(".", 1)[-1]
            for name, module in model.named_modules()
            if "Norm" in type(module).__name__
        }
    )
    config = LoraConfig(
        r=rank,
        lora_alpha=rank,
        target_modules="all-linear",
        bias="none",
        modules_to_save=norms if train_norms else None,
        task_type="CAUSAL_LM",
    )
    lora = get_peft_model(model, config)
    for parameter in lora.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    return lora


def export(model, state, tokenizer, folder: str, base: str):
    """Writes a PEFT adapter or a Hugging Face directory, in bf16.  `state`:
    all tensors of the model.  Raises OSError."""
    try:
        _export(model, state, tokenizer, folder, base)
        _open_to_others(folder)
    except SafetensorError as error:
        raise OSError(f"{folder} cannot be written: {error}") from error


def _open_to_others(folder):
    """safetensors makes files that their owner alone can read, whatever the
    umask; a server may run as somebody else."""
    umask = os.umask(0)
    os.umask(umask)
    for path in pathlib.Path(folder).glob("*.safetensors"):
        path.chmod(0o666 & ~umask)


def _export(model, state, tokenizer, folder, base):
    state = {name: tensor.bfloat16() for name, tensor in state.items()}
    if isinstance(model, PeftModel):
        # The name alone: a path of this machine means nothing elsewhere.
        config = model.peft_config["default"]
        config.base_model_name_or_path = os.path.basename(os.path.abspath(base))
        model.create_or_update_model_card = lambda _: None  # a blank one
        model.save_pretrained(
            folder, state_dict=state, save_embedding_layers=False
        )
        return
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    model.config.dtype = torch.bfloat16
    model.save_pretrained(folder, state_dict=state)
    tokenizer.save_pretrained(folder)
