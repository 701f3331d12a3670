"""Records plain decodes whose configs lie beside them (NAME.config.json), for holding predictions against, and kinds of runs
that no other script here holds.

    python3 tests/analyze/record/joined.py FOLDER [NAME...]

Run in the root of the repository, like record.py, whose pieces it uses.
"""
import json
import os
import threading
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function

import record
from record import case, quick, say
from unseen import SIZES, graphed

record.CASES.clear()


def plain(name, config, batch, prompt, steps=3, dtype=torch.bfloat16, thread=False, keep=1, **how):
    """A prompt, then tokens that are chosen greedily, appended to the cache that transformers makes by itself."""
    extra = {key: how.pop(key) for key in ("attn_implementation",) if key in how}
    model = quick(config, dtype=dtype, **extra)
    ids = torch.randint(3, 1000, (batch, prompt), device="cuda")

    def body():
        with torch.no_grad():
            with record_function("prefill"):
                out = model(input_ids=ids, use_cache=True, **({"logits_to_keep": keep} if keep else {}))
                token = out.logits[:, -1:].argmax(-1)
                torch.cuda.synchronize()
            for i in range(steps):
                with record_function(f"decode_step_{i}"):
                    out = model(input_ids=token, past_key_values=out.past_key_values, use_cache=True)
                    token = out.logits[:, -1:].argmax(-1)
                    torch.cuda.synchronize()

    def run():
        if not thread:
            return body()
        other = threading.Thread(target=body)
        other.start()
        other.join()

    run()
    torch.cuda.synchronize()
    how.setdefault("record_shapes", True)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], **how) as prof:
        run()
        torch.cuda.synchronize()
    path = os.path.join(record.OUT, name + ".json.gz")
    prof.export_chrome_trace(path)
    with open(os.path.join(record.OUT, name + ".config.json"), "w") as file:
        json.dump(config.to_dict(), file, indent=1, default=str)
    say(f"{name} {os.path.getsize(path)} {time.time() - record.START:.1f}s batch {batch} prompt {prompt}")


def llama_8b():
    from transformers import LlamaConfig
    return LlamaConfig(vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=4,
                       num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=32768)


@case
def llama_b1_k1000():
    plain("llama_b1_k1000", llama_8b(), 1, 1000)


@case
def llama_b8_k4096():
    plain("llama_b8_k4096", llama_8b(), 8, 4096)


@case
def llama_b32_k1024():
    plain("llama_b32_k1024", llama_8b(), 32, 1024)


@case
def qwen2_b4_k2048():
    from transformers import Qwen2Config
    plain("qwen2_b4_k2048", Qwen2Config(vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=4,
                                        num_attention_heads=28, num_key_value_heads=4), 4, 2048)


@case
def gpt2_b8_k900():
    from transformers import GPT2Config
    plain("gpt2_b8_k900", GPT2Config(n_embd=1280, n_layer=4, n_head=20), 8, 900)


@case
def mixtral_b4_k1500():
    from transformers import MixtralConfig
    plain("mixtral_b4_k1500", MixtralConfig(vocab_size=32000, hidden_size=4096, intermediate_size=14336,
                                            num_hidden_layers=2, num_attention_heads=32, num_key_value_heads=8,
                                            num_local_experts=8, num_experts_per_tok=2), 4, 1500)


@case
def gemma2_b2_k3000():
    """A window of which nothing is copied beyond its end."""
    from transformers import Gemma2Config
    plain("gemma2_b2_k3000", Gemma2Config(vocab_size=256000, hidden_size=3584, intermediate_size=14336, num_hidden_layers=4,
                                          num_attention_heads=16, num_key_value_heads=8, head_dim=256,
                                          sliding_window=1024), 2, 3000)


@case
def neox_fp16_b16_k512():
    from transformers import GPTNeoXConfig
    plain("neox_fp16_b16_k512", GPTNeoXConfig(vocab_size=50432, hidden_size=2560, intermediate_size=10240,
                                              num_hidden_layers=4, num_attention_heads=32, rotary_pct=0.25,
                                              tie_word_embeddings=False), 16, 512, dtype=torch.float16)


# --------------------------------------------------------------------------- other models and ways to record, all together

def of(kind, **more):
    from transformers import AutoConfig
    drop = more.pop("drop", ())
    return AutoConfig.for_model(kind, **{k: v for k, v in {**SIZES, **more}.items() if k not in drop})


@case
def starcoder2():
    plain("starcoder2", of("starcoder2", sliding_window=None), 4, 512, keep=0, profile_memory=True, with_stack=True)


@case
def arcee():
    plain("arcee", of("arcee"), 4, 512, keep=0)


@case
def seed_oss():
    plain("seed_oss", of("seed_oss", head_dim=64, attention_bias=True), 3, 200, with_modules=True)


@case
def granite():
    plain("granite", of("granite", tie_word_embeddings=True), 4, 512, keep=0, with_flops=True)


@case
def cohere():
    plain("cohere", of("cohere", logit_scale=0.1), 4, 512, dtype=torch.float16)


@case
def gemma():
    plain("gemma", of("gemma", head_dim=128), 4, 512, keep=0)


@case
def lfm2_moe():
    plain("lfm2_moe", of("lfm2_moe", num_hidden_layers=4, num_dense_layers=1, num_experts=8, num_experts_per_tok=2,
                         moe_intermediate_size=384,
                         layer_types=["conv", "full_attention", "conv", "full_attention"]), 2, 130)


@case
def jetmoe():
    plain("jetmoe", of("jetmoe", num_key_value_heads=4, kv_channels=64, num_local_experts=4, num_experts_per_tok=2,
                       drop=("num_attention_heads",)), 4, 512)


@case
def nanochat():
    plain("nanochat", of("nanochat"), 4, 512, keep=0)


@case
def biogpt():
    plain("biogpt", of("biogpt", hidden_act="gelu", drop=("num_key_value_heads",)), 4, 512, keep=0)


@case
def no_shapes_olmo():
    plain("no_shapes_olmo", of("olmo"), 4, 512, record_shapes=False)


@case
def graph_qwen3_moe():
    model = quick(of("qwen3_moe", head_dim=64, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=384))
    model.set_experts_implementation("batched_mm")
    graphed("graph_qwen3_moe", model, 4, 64)


@case
def other_thread():
    """The model runs in a thread that was not there when the profiler began."""
    plain("other_thread", of("llama"), 2, 100, thread=True)


@case
def all_threads():
    from torch._C._profiler import _ExperimentalConfig
    plain("all_threads", of("llama"), 2, 100, thread=True,
          experimental_config=_ExperimentalConfig(profile_all_threads=True))


@case
def deepseek_batch():
    plain("deepseek_batch", of("deepseek_v3", num_key_value_heads=12, q_lora_rank=256, kv_lora_rank=128,
                               qk_nope_head_dim=48, qk_rope_head_dim=32, v_head_dim=64, n_routed_experts=8,
                               num_experts_per_tok=2, n_group=1, topk_group=1, moe_intermediate_size=384,
                               first_k_dense_replace=1, num_nextn_predict_layers=0), 4, 512, keep=0)


@case
def mixed_eager_graph():
    """Nothing is named."""
    graphed("mixed_eager_graph", quick(of("llama")), 4, 60, launched=3)


if __name__ == "__main__":
    record.main()
