"""Records the small PyTorch traces that the tests of `analyze` read. Needs a CUDA device, PyTorch and transformers.

    python3 tests/analyze/record/record.py FOLDER [NAME...]

Run in the root of the repository. Every model has random weights and few layers: what is wanted is the sequence of operators and kernels, not sense. Beside
each trace NAME.json.gz lies NAME.flops.json: what PyTorch itself counts, [operator, shapes, calls, FLOPs].
"""
import json
import os
import re
import sys
import time
import traceback

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, record_function

OUT = sys.argv[1]
WANTED = sys.argv[2:]
START = time.time()
LOG = open(os.path.join(OUT, "log.txt"), "a")


def say(text):
    print(text, flush=True)
    LOG.write(text + "\n")
    LOG.flush()


def recorded(name, body, with_flops=True):
    """Runs a body once to warm up and once under the profiler."""
    body()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True,
                 with_flops=with_flops) as prof:
        body()
        torch.cuda.synchronize()
    path = os.path.join(OUT, name + ".json.gz")
    prof.export_chrome_trace(path)
    counted = [[e.key, e.input_shapes, e.count, e.flops] for e in prof.key_averages(group_by_input_shape=True)
               if e.flops]
    with open(os.path.join(OUT, name + ".flops.json"), "w") as file:
        json.dump(counted, file)
    say(f"{name} {os.path.getsize(path)} {time.time() - START:.1f}s")


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def generation(name, model, batch=2, prompt=128, steps=2, vocabulary=1000, **more):
    """A prompt and a few tokens, as a server would do them."""
    ids = torch.randint(3, vocabulary, (batch, prompt), device="cuda")
    next_ids = torch.randint(3, vocabulary, (batch, 1), device="cuda")

    def body():
        with torch.no_grad():
            with record_function("prefill"):
                out = model(input_ids=ids, use_cache=True, **more)
            cache = out.past_key_values
            for i in range(steps):
                with record_function(f"decode_{i}"):
                    out = model(input_ids=next_ids, past_key_values=cache, use_cache=True, **more)
                    cache = out.past_key_values
            torch.cuda.synchronize()

    recorded(name, body)


def causal(config, dtype=torch.bfloat16, attention=None, experts=None):
    from transformers import AutoModelForCausalLM
    extra = {}
    if attention:
        extra["attn_implementation"] = attention
    if experts:
        extra["experts_implementation"] = experts
    try:
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, **extra)
    except TypeError:
        extra.pop("experts_implementation", None)
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, **extra)
        if experts:
            model.set_experts_implementation(experts)
    return model.to("cuda").eval()


def quick(config, dtype=torch.bfloat16, **extra):
    """As `causal`, with the weights made on the device: seconds faster."""
    from transformers import AutoModelForCausalLM
    with torch.device("cuda"):
        return AutoModelForCausalLM.from_config(config, dtype=dtype, **extra).eval()


LLAMA = dict(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=3, num_attention_heads=16,
             num_key_value_heads=4, max_position_embeddings=2048)


@case
def docs_snippet():
    """The PyTorch snippet of docs/tracing.md, as it stands there."""
    from transformers import LlamaConfig
    text = open("docs/tracing.md").read()
    snippet = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    model = causal(LlamaConfig(**LLAMA))
    ids = torch.randint(3, 1000, (2, 128), device="cuda")
    next_ids = torch.randint(3, 1000, (2, 1), device="cuda")
    here = os.getcwd()
    os.chdir(OUT)
    try:
        with torch.no_grad():
            exec(snippet, {"torch": torch, "model": model, "ids": ids, "next_ids": next_ids})
        os.rename("trace.json.gz", "docs_snippet.json.gz")
    finally:
        os.chdir(here)
    say(f"docs_snippet {time.time() - START:.1f}s")


@case
def mixtral_grouped():
    from transformers import MixtralConfig
    config = MixtralConfig(**LLAMA, num_local_experts=8, num_experts_per_tok=2)
    generation("mixtral_grouped", causal(config, experts="grouped_mm"))


@case
def mixtral_looped():
    from transformers import MixtralConfig
    config = MixtralConfig(**LLAMA, num_local_experts=8, num_experts_per_tok=2)
    generation("mixtral_looped", causal(config, experts="eager"))


@case
def qwen2_moe():
    """With a shared expert."""
    from transformers import Qwen2MoeConfig
    config = Qwen2MoeConfig(**LLAMA, num_experts=16, num_experts_per_tok=4, moe_intermediate_size=512,
                            shared_expert_intermediate_size=1024, decoder_sparse_step=1)
    generation("qwen2_moe", causal(config, experts="batched_mm"))


@case
def qwen3_moe():
    from transformers import Qwen3MoeConfig
    config = Qwen3MoeConfig(**LLAMA, head_dim=64, num_experts=32, num_experts_per_tok=4, moe_intermediate_size=512)
    generation("qwen3_moe", causal(config))


@case
def deepseek_v3():
    """Latent attention, shared and routed experts, a dense first layer."""
    from transformers import DeepseekV3Config
    config = DeepseekV3Config(vocab_size=32000, hidden_size=1024, intermediate_size=2048, moe_intermediate_size=512,
                              num_hidden_layers=3, num_attention_heads=16, num_key_value_heads=16, n_routed_experts=16,
                              n_group=4, topk_group=2, num_experts_per_tok=4, first_k_dense_replace=1, q_lora_rank=384,
                              kv_lora_rank=256, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64)
    generation("deepseek_v3", causal(config))


@case
def gpt_oss():
    """Attention sinks, alternating windows, biased experts."""
    from transformers import GptOssConfig
    config = GptOssConfig(vocab_size=32000, hidden_size=1024, intermediate_size=1024, num_hidden_layers=4,
                          num_attention_heads=16, num_key_value_heads=4, head_dim=64, num_local_experts=8,
                          num_experts_per_tok=2, sliding_window=64,
                          layer_types=["sliding_attention", "full_attention"] * 2)
    generation("gpt_oss", causal(config))


@case
def opt():
    from transformers import OPTConfig
    config = OPTConfig(vocab_size=32000, hidden_size=1024, ffn_dim=4096, num_hidden_layers=3, num_attention_heads=16,
                       max_position_embeddings=2048, word_embed_proj_dim=1024)
    generation("opt", causal(config, dtype=torch.float16))


@case
def gpt2():
    from transformers import GPT2Config
    generation("gpt2", causal(GPT2Config(n_embd=1024, n_layer=3, n_head=16), dtype=torch.float16))


@case
def gpt_neox():
    """Attention and feed-forward side by side."""
    from transformers import GPTNeoXConfig
    config = GPTNeoXConfig(vocab_size=32000, hidden_size=1024, intermediate_size=4096, num_hidden_layers=3,
                           num_attention_heads=16)
    generation("gpt_neox", causal(config, dtype=torch.float16))


@case
def phi():
    from transformers import PhiConfig
    config = PhiConfig(vocab_size=32000, hidden_size=1024, intermediate_size=4096, num_hidden_layers=3,
                       num_attention_heads=16)
    generation("phi", causal(config, attention="eager"))


@case
def phi3():
    """Fused qkv and gate-up products."""
    from transformers import Phi3Config
    generation("phi3", causal(Phi3Config(**LLAMA, pad_token_id=0)))


@case
def falcon_alibi():
    from transformers import FalconConfig
    config = FalconConfig(vocab_size=32000, hidden_size=1024, num_hidden_layers=3, num_attention_heads=16, alibi=True,
                          multi_query=False, new_decoder_architecture=False, bias=True, parallel_attn=False)
    generation("falcon_alibi", causal(config))


@case
def falcon_multi_query():
    from transformers import FalconConfig
    config = FalconConfig(vocab_size=32000, hidden_size=1024, num_hidden_layers=3, num_attention_heads=16)
    generation("falcon_multi_query", causal(config))


@case
def bloom():
    from transformers import BloomConfig
    config = BloomConfig(vocab_size=32000, hidden_size=1024, n_layer=3, n_head=16)
    generation("bloom", causal(config, dtype=torch.float16))


@case
def gemma3():
    """Windows of 64 tokens but for every second layer, norms on every side, a tied head."""
    from transformers import Gemma3TextConfig
    config = Gemma3TextConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=4,
                              num_attention_heads=8, num_key_value_heads=4, head_dim=128, sliding_window=64,
                              layer_types=["sliding_attention", "full_attention"] * 2)
    generation("gemma3", causal(config))


@case
def mistral_eager():
    from transformers import MistralConfig
    generation("mistral_eager", causal(MistralConfig(**LLAMA, sliding_window=64), attention="eager"))


@case
def starcoder2():
    """Biased everywhere, LayerNorm, plain GELU, tied."""
    from transformers import Starcoder2Config
    generation("starcoder2", causal(Starcoder2Config(**LLAMA, use_bias=True, tie_word_embeddings=True)))


@case
def cohere():
    from transformers import CohereConfig
    generation("cohere", causal(CohereConfig(**LLAMA)))


@case
def mamba():
    from transformers import MambaConfig
    config = MambaConfig(vocab_size=32000, hidden_size=512, num_hidden_layers=2, state_size=16)
    model = causal(config)
    ids = torch.randint(3, 1000, (2, 32), device="cuda")

    def body():
        with torch.no_grad(), record_function("prefill"):
            model(input_ids=ids, use_cache=False)
            torch.cuda.synchronize()

    recorded("mamba", body)


@case
def bert():
    from transformers import AutoModel, BertConfig
    config = BertConfig(hidden_size=1024, num_hidden_layers=3, num_attention_heads=16, intermediate_size=4096)
    model = AutoModel.from_config(config, dtype=torch.float16).to("cuda").eval()
    ids = torch.randint(3, 1000, (4, 256), device="cuda")

    def body():
        with torch.no_grad():
            for i in range(2):
                with record_function(f"forward_{i}"):
                    model(input_ids=ids)
            torch.cuda.synchronize()

    recorded("bert", body)


@case
def t5():
    from transformers import T5Config, T5ForConditionalGeneration
    config = T5Config(d_model=512, d_ff=2048, num_layers=2, num_decoder_layers=2, num_heads=8, d_kv=64)
    model = T5ForConditionalGeneration(config).to(torch.bfloat16).to("cuda").eval()
    ids = torch.randint(3, 1000, (2, 128), device="cuda")
    one = torch.zeros((2, 1), dtype=torch.long, device="cuda")

    def body():
        with torch.no_grad():
            with record_function("prefill"):
                encoded = model.encoder(input_ids=ids)
            cache = None
            for i in range(3):
                with record_function(f"decode_{i}"):
                    out = model(encoder_outputs=encoded, decoder_input_ids=one, past_key_values=cache, use_cache=True)
                    cache = out.past_key_values
            torch.cuda.synchronize()

    recorded("t5", body)


@case
def attention_backends():
    """Scaled dot-product attention by every backend, causal and not, with shared heads and without."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    shapes = [(2, 16, 16, 256, 256), (2, 16, 16, 1, 512), (2, 16, 4, 256, 256), (2, 16, 4, 1, 512)]
    backends = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.MATH]
    tensors = []
    for batch, heads, kv_heads, queries, keys in shapes:
        q = torch.randn(batch, heads, queries, 64, device="cuda", dtype=torch.bfloat16)
        k = torch.randn(batch, kv_heads, keys, 64, device="cuda", dtype=torch.bfloat16)
        tensors.append((q, k, torch.randn_like(k)))
    mask = torch.zeros(2, 1, 256, 256, device="cuda", dtype=torch.bfloat16)
    failed = set()

    def body():
        for backend in backends:
            for q, k, v in tensors:
                for style in ("causal", "full", "masked"):
                    if style == "masked" and q.shape[2] != 256:
                        continue
                    key = (backend, tuple(q.shape), tuple(k.shape), style)
                    if key in failed:
                        continue
                    name = f"sdpa {backend.name.lower()} {list(q.shape)} {list(k.shape)} {style}"
                    try:
                        with sdpa_kernel(backend), record_function(name):
                            F.scaled_dot_product_attention(q, k, v, attn_mask=mask if style == "masked" else None,
                                                           is_causal=style == "causal",
                                                           enable_gqa=q.shape[1] != k.shape[1])
                    except RuntimeError as error:
                        failed.add(key)
                        say(f"  {name}: {str(error).splitlines()[0]}")
        torch.cuda.synchronize()

    body()
    recorded("attention_backends", body)


@case
def flex_attention():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention as flex
    q = torch.randn(2, 16, 512, 64, device="cuda", dtype=torch.bfloat16)
    k = torch.randn(2, 4, 512, 64, device="cuda", dtype=torch.bfloat16)
    v = torch.randn_like(k)
    blocks = create_block_mask(lambda b, h, i, j: i >= j, None, None, 512, 512, device="cuda")
    compiled = torch.compile(flex)

    def body():
        compiled(q, k, v, block_mask=blocks, enable_gqa=True)
        compiled(q, k, v, enable_gqa=True)
        torch.cuda.synchronize()

    recorded("flex_attention", body)


@case
def quantised_products():
    """fp8, int8 and int4 products as PyTorch has them without further libraries."""
    rows, inner, columns = 64, 2048, 4096
    a8 = torch.randn(rows, inner, device="cuda").to(torch.float8_e4m3fn)
    b8 = torch.randn(columns, inner, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    row_scale = torch.ones(rows, 1, device="cuda")
    column_scale = torch.ones(1, columns, device="cuda")
    ai = torch.randint(-8, 8, (rows, inner), device="cuda", dtype=torch.int8)
    bi = torch.randint(-8, 8, (columns, inner), device="cuda", dtype=torch.int8).t()
    x = torch.randn(rows, inner, device="cuda", dtype=torch.bfloat16)
    experts8 = torch.randn(4, columns, inner, device="cuda").to(torch.float8_e4m3fn).transpose(-2, -1)
    offsets = torch.tensor([16, 32, 48, 64], device="cuda", dtype=torch.int32)
    nibbles = torch.randint(0, 255, (columns, inner // 2), device="cuda", dtype=torch.uint8)
    things = {
        "scaled_mm tensor": lambda: torch._scaled_mm(a8, b8, scale_a=one, scale_b=one, out_dtype=torch.bfloat16),
        "scaled_mm rows": lambda: torch._scaled_mm(a8, b8, scale_a=row_scale, scale_b=column_scale,
                                                   out_dtype=torch.bfloat16),
        "int_mm": lambda: torch._int_mm(ai, bi),
        "scaled_grouped_mm": lambda: torch._scaled_grouped_mm(
            a8, experts8, torch.ones(rows, device="cuda"), torch.ones(4, columns, device="cuda"), offs=offsets,
            out_dtype=torch.bfloat16),
        "grouped_mm": lambda: torch._grouped_mm(x, torch.ones(4, inner, columns, device="cuda",
                                                              dtype=torch.bfloat16), offs=offsets),
    }
    try:
        packed = torch._convert_weight_to_int4pack(nibbles, 8)
        scales = torch.ones(inner // 128, columns, 2, device="cuda", dtype=torch.bfloat16)
        things["int4pack"] = lambda: torch._weight_int4pack_mm(x, packed, 128, scales)
    except Exception as error:
        say(f"  int4: {str(error).splitlines()[0]}")
    wi = torch.randint(-8, 8, (columns, inner), device="cuda", dtype=torch.int8)
    things["int8pack"] = lambda: torch._weight_int8pack_mm(x, wi, torch.ones(columns, device="cuda",
                                                                            dtype=torch.bfloat16))
    failed = set()

    def body():
        for name, thing in things.items():
            if name in failed:
                continue
            try:
                with record_function(name):
                    thing()
            except Exception as error:
                failed.add(name)
                say(f"  {name}: {str(error).splitlines()[0]}")
        torch.cuda.synchronize()

    body()
    recorded("quantised_products", body)


class Fp8Linear(torch.nn.Module):
    """A linear layer as engines run it in fp8: the input is scaled row by row, then one scaled product."""

    def __init__(self, linear):
        super().__init__()
        self.weight = torch.nn.Parameter(linear.weight.data.to(torch.float8_e4m3fn), requires_grad=False)
        self.scale = torch.ones(1, linear.weight.shape[0], device="cuda")

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        scale = rows.abs().amax(dim=-1, keepdim=True).float() / 448.0
        small = (rows / scale).to(torch.float8_e4m3fn)
        out = torch._scaled_mm(small, self.weight.t(), scale_a=scale, scale_b=self.scale, out_dtype=torch.bfloat16)
        return out.reshape(*x.shape[:-1], -1)


@case
def llama_fp8():
    from transformers import LlamaConfig
    model = causal(LlamaConfig(**LLAMA))
    for layer in model.model.layers:
        for block in (layer.self_attn, layer.mlp):
            for name, child in list(block.named_children()):
                if isinstance(child, torch.nn.Linear):
                    setattr(block, name, Fp8Linear(child))
    generation("llama_fp8", model)


@case
def llama_compiled_tuned():
    """torch.compile with Triton templates for the products."""
    from transformers import LlamaConfig
    import torch._inductor.config as inductor
    model = causal(LlamaConfig(**{**LLAMA, "num_hidden_layers": 2}))
    ids = torch.randint(3, 1000, (2, 128), device="cuda")
    with inductor.patch(max_autotune_gemm=True, max_autotune_gemm_backends="TRITON"):
        compiled = torch.compile(model)

        def body():
            with torch.no_grad():
                for i in range(2):
                    with record_function(f"prefill_{i}"):
                        compiled(input_ids=ids, use_cache=False)
                torch.cuda.synchronize()

        body()
        recorded("llama_compiled_tuned", body)


@case
def llama_static_compiled():
    """A static cache and compiled decode steps in CUDA graphs: how transformers serves fast."""
    from transformers import LlamaConfig, StaticCache
    config = LlamaConfig(**{**LLAMA, "num_hidden_layers": 2})
    model = causal(config)
    compiled = torch.compile(model, mode="reduce-overhead", fullgraph=False)
    cache = StaticCache(config=config, max_cache_len=256)
    ids = torch.randint(3, 1000, (2, 128), device="cuda")
    one = torch.randint(3, 1000, (2, 1), device="cuda")

    def body():
        with torch.no_grad():
            cache.reset()
            with record_function("prefill"):
                model(input_ids=ids, past_key_values=cache, cache_position=torch.arange(128, device="cuda"))
            for i in range(3):
                torch.compiler.cudagraph_mark_step_begin()
                with record_function(f"decode_{i}"):
                    compiled(input_ids=one, past_key_values=cache,
                             cache_position=torch.tensor([128 + i], device="cuda"))
            torch.cuda.synchronize()

    body()
    body()
    recorded("llama_static_compiled", body)


@case
def gpt2_graph():
    """A captured CUDA graph, replayed."""
    from transformers import GPT2Config
    model = causal(GPT2Config(n_embd=1024, n_layer=3, n_head=16), dtype=torch.float16)
    ids = torch.randint(3, 1000, (4, 1), device="cuda")
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            model(input_ids=ids, use_cache=False)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        model(input_ids=ids, use_cache=False)

    def body():
        for i in range(3):
            with record_function(f"decode_{i}"):
                graph.replay()
        torch.cuda.synchronize()

    recorded("gpt2_graph", body)


@case
def all_logits():
    """The head over every token of a prompt, and sampling on the device."""
    from transformers import LlamaConfig
    model = causal(LlamaConfig(**{**LLAMA, "vocab_size": 128256}))
    ids = torch.randint(3, 1000, (4, 256), device="cuda")

    def body():
        with torch.no_grad():
            with record_function("prefill"):
                out = model(input_ids=ids, use_cache=True)
                token = torch.multinomial(torch.softmax(out.logits[:, -1].float() / 0.7, -1), 1)
            cache = out.past_key_values
            for i in range(2):
                with record_function(f"decode_{i}"):
                    out = model(input_ids=token, past_key_values=cache, use_cache=True)
                    values, places = torch.topk(out.logits[:, -1].float(), 50)
                    token = places.gather(-1, torch.multinomial(torch.softmax(values, -1), 1))
            torch.cuda.synchronize()

    recorded("all_logits", body)


@case
def last_logits():
    """The head over the last token only."""
    from transformers import LlamaConfig
    generation("last_logits", causal(LlamaConfig(**{**LLAMA, "vocab_size": 128256})), batch=4, prompt=256,
               logits_to_keep=1)


@case
def unannotated_generate():
    """model.generate, with no range named."""
    from transformers import LlamaConfig
    model = causal(LlamaConfig(**LLAMA))
    ids = torch.randint(3, 1000, (2, 128), device="cuda")

    def body():
        with torch.no_grad():
            model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=4, do_sample=True,
                           top_k=50, top_p=0.9, pad_token_id=0)

    recorded("unannotated_generate", body)


def main():
    import transformers
    say(f"torch {torch.__version__} transformers {transformers.__version__} {torch.cuda.get_device_name()}")
    torch.manual_seed(0)
    for name, function in list(CASES.items()):
        if WANTED and name not in WANTED:
            continue
        if time.time() - START > 260:
            say(f"{name}: no time left")
            continue
        try:
            function()
        except Exception:
            say(f"{name} FAILED\n" + traceback.format_exc()[-1500:])
        torch._dynamo.reset()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
