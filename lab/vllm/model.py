"""Makes a small Llama without weights, and LoRA adapters for it: model.py FOLDER.

The tokenizer is trained on made-up words. With --load-format dummy vLLM fills the weights at
random. 8 layers of 768 make steps of 20 to 60 ms on one processor core: long enough that the
scheduler, and not the client, decides what a request waits for.
"""

import json
import pathlib
import random
import sys

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

LAYERS, HIDDEN, RANK, ADAPTERS = 8, 768, 8, 4
HEADS = HIDDEN // 64
MODEL_LENGTH = 8192


def write(path, value):
    path.write_text(json.dumps(value, indent=1))


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(1)
    parts = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    words = ["".join(chance.choices(parts, k=chance.randint(1, 3))) for _ in range(3000)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        (" ".join(chance.choices(words, k=50)) for _ in range(2000)),
        trainers.BpeTrainer(
            vocab_size=4096, special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
        ),
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    write(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|end|>", "eos_token": "<|end|>",
        "model_max_length": MODEL_LENGTH,
        "chat_template": "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: ",
    })
    write(folder / "generation_config.json", {"bos_token_id": 0, "eos_token_id": 0})
    write(folder / "config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
        "hidden_size": HIDDEN, "intermediate_size": 3 * HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": HEADS // 2, "head_dim": 64,
        "vocab_size": (tokenizer.get_vocab_size() + 63) // 64 * 64, "max_position_embeddings": MODEL_LENGTH,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True,
        "bos_token_id": 0, "eos_token_id": 0, "attention_bias": False,
    })
    for number in range(1, ADAPTERS + 1):
        adapter = folder / f"adapter-{number}"
        adapter.mkdir(exist_ok=True)
        write(adapter / "adapter_config.json", {
            "peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": ["q_proj", "v_proj"],
            "bias": "none", "task_type": "CAUSAL_LM", "base_model_name_or_path": "tiny",
        })
        torch.manual_seed(number)
        tensors = {}
        for layer in range(LAYERS):
            for module, width in (("q_proj", HIDDEN), ("v_proj", HIDDEN // 2)):
                name = f"base_model.model.model.layers.{layer}.self_attn.{module}"
                tensors[f"{name}.lora_A.weight"] = torch.randn(RANK, HIDDEN, dtype=torch.bfloat16) * 0.01
                tensors[f"{name}.lora_B.weight"] = torch.randn(width, RANK, dtype=torch.bfloat16) * 0.01
        save_file(tensors, str(adapter / "adapter_model.safetensors"))


main(pathlib.Path(sys.argv[1]))
