"""Records PyTorch traces of what neither record.py, hold_out.py nor unseen.py holds: newer architectures, models that see
pictures, attention over packed or paged sequences, weights in few bits, decodes that torch.compile put into graphs.

    python3 tests/analyze/record/further.py FOLDER [NAME...]

Run in the root of the repository, like unseen.py, whose pieces it uses.
"""
import contextlib

import torch
import torch.nn.functional as F
from torch.profiler import record_function

import record
from record import case, quick, recorded
from unseen import SIZES, counted

record.CASES.clear()


def made(kind, dtype=torch.bfloat16, drop=(), **more):
    from transformers import AutoConfig
    extra = {key: more.pop(key) for key in ("attn_implementation",) if key in more}
    sizes = {k: v for k, v in {**SIZES, **more}.items() if k not in drop}
    return quick(AutoConfig.for_model(kind, **sizes), dtype=dtype, **extra)


def passes(name, model, batch=2, prompt=83, steps=2, named=True, **more):
    """A prompt and some tokens through the model itself."""
    ids = torch.randint(3, 1000, (batch, prompt), device="cuda")

    def part(label):
        return record_function(label) if named else contextlib.nullcontext()

    def body():
        with torch.no_grad():
            with part("prefill"):
                out = model(input_ids=ids, use_cache=True, **more)
            for i in range(steps):
                with part(f"decode_{i}"):
                    out = model(input_ids=ids[:, :1], past_key_values=out.past_key_values, use_cache=True)
            torch.cuda.synchronize()

    counted(name, body)


# ------------------------------------------------------------------------------------------------- newer architectures

@case
def minimax_m2():
    passes("minimax_m2", made("minimax_m2", head_dim=64, num_local_experts=8, num_experts_per_tok=2,
                              intermediate_size=384))


@case
def glm4_moe_lite():
    """Latent attention, one dense layer, grouped experts."""
    model = made("glm4_moe_lite", num_key_value_heads=12, q_lora_rank=256, kv_lora_rank=128, qk_nope_head_dim=48,
                 qk_rope_head_dim=32, v_head_dim=64, n_routed_experts=8, num_experts_per_tok=2,
                 moe_intermediate_size=384, mlp_layer_types=["dense", "sparse", "sparse"])
    passes("glm4_moe_lite", model, batch=3, prompt=70)


@case
def deepseek_v32():
    """An indexer picks what attention sees."""
    model = made("deepseek_v32", num_key_value_heads=12, q_lora_rank=256, kv_lora_rank=128, qk_nope_head_dim=48,
                 qk_rope_head_dim=32, v_head_dim=64, head_dim=32, index_head_dim=64, index_n_heads=4, index_topk=32,
                 n_routed_experts=8, num_experts_per_tok=2, n_group=1, topk_group=1, moe_intermediate_size=384,
                 first_k_dense_replace=1, mlp_layer_types=["dense", "sparse", "sparse"])
    passes("deepseek_v32", model, batch=1, prompt=96)


@case
def kimi_linear():
    model = made("kimi_linear", num_hidden_layers=4, num_key_value_heads=12, kv_lora_rank=128, qk_nope_head_dim=48,
                 qk_rope_head_dim=32, v_head_dim=64, linear_head_dim=64, linear_num_heads=12, num_experts=8,
                 num_experts_per_token=2, moe_intermediate_size=384,
                 layer_types=["linear_attention", "linear_attention", "linear_attention", "full_attention"],
                 mlp_layer_types=["dense", "sparse", "sparse", "sparse"])
    passes("kimi_linear", model)


@case
def olmo_hybrid():
    model = made("olmo_hybrid", num_hidden_layers=4, num_key_value_heads=12, linear_key_head_dim=48,
                 linear_value_head_dim=96, linear_num_key_heads=8, linear_num_value_heads=8,
                 layer_types=["linear_attention", "linear_attention", "linear_attention", "full_attention"])
    passes("olmo_hybrid", model)


@case
def nemotron_h():
    """Every block is a layer of its own: a state space, experts, attention, a feed-forward block."""
    model = made("nemotron_h", drop=("num_hidden_layers",), head_dim=64, mamba_num_heads=24, mamba_head_dim=64,
                 n_groups=2, ssm_state_size=64, chunk_size=64, n_routed_experts=4, moe_intermediate_size=512,
                 moe_shared_expert_intermediate_size=512,
                 layers_block_type=["linear_attention", "moe", "full_attention", "mlp", "linear_attention", "mlp"])
    passes("nemotron_h", model, prompt=64)


@case
def bamba():
    passes("bamba", made("bamba", num_hidden_layers=4, attn_layer_indices=[2], mamba_n_heads=24, mamba_d_head=64,
                         mamba_d_state=64, mamba_chunk_size=64), prompt=64)


@case
def qwen3_5_moe():
    model = made("qwen3_5_moe_text", drop=("intermediate_size",), num_hidden_layers=4, head_dim=64, num_experts=8,
                 num_experts_per_tok=2, moe_intermediate_size=384, shared_expert_intermediate_size=384,
                 linear_num_key_heads=4, linear_num_value_heads=8, linear_key_head_dim=64, linear_value_head_dim=64,
                 layer_types=["linear_attention", "linear_attention", "linear_attention", "full_attention"])
    passes("qwen3_5_moe", model)


@case
def gemma4():
    model = made("gemma4_text", head_dim=64, hidden_size_per_layer_input=64, vocab_size_per_layer_input=20011,
                 sliding_window=32, layer_types=["sliding_attention", "sliding_attention", "full_attention"])
    passes("gemma4", model)


@case
def afmoe():
    model = made("afmoe", head_dim=64, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=384,
                 num_shared_experts=1, num_dense_layers=1, sliding_window=32,
                 layer_types=["sliding_attention", "sliding_attention", "full_attention"])
    passes("afmoe", model, named=False)


@case
def zamba():
    """A block of attention and feed-forward that several layers share."""
    model = made("zamba", num_hidden_layers=6, attention_hidden_size=1536, attention_head_dim=128,
                 num_key_value_heads=12, n_mamba_heads=2, mamba_d_state=16, mamba_dt_rank=48, use_mamba_kernels=False,
                 layers_block_type=["linear_attention", "linear_attention", "hybrid"] * 2)
    passes("zamba", model, prompt=24)


@case
def xlstm():
    from transformers import AutoConfig
    model = quick(AutoConfig.for_model("xlstm", vocab_size=20011, hidden_size=512, embedding_dim=512, num_heads=4,
                                       num_hidden_layers=2, num_blocks=2, pad_token_id=0, bos_token_id=1,
                                       eos_token_id=2))
    ids = torch.randint(3, 1000, (2, 64), device="cuda")

    def body():
        with torch.no_grad(), record_function("prefill"):
            model(input_ids=ids)
        torch.cuda.synchronize()

    counted("xlstm", body)


@case
def olmo3():
    passes("olmo3", made("olmo3", layer_types=["sliding_attention", "sliding_attention", "full_attention"],
                         sliding_window=32), named=False)


# ------------------------------------------------------------------------------------- pictures, encoders with decoders

def sees(name, config, pixels, places, image, batch=1, prompt=60, **more):
    """A prompt with a picture in it, then two tokens. `places` are the tokens that stand for the picture."""
    from transformers import AutoModelForImageTextToText
    with torch.device("cuda"):
        model = AutoModelForImageTextToText.from_config(config, dtype=torch.bfloat16).eval()
    ids = torch.randint(3, 1000, (batch, prompt), device="cuda")
    ids[:, 4:4 + places] = image
    if "mm_token_type_ids" in more:
        more["mm_token_type_ids"] = (ids == image).int()

    def body():
        with torch.no_grad():
            out = model(input_ids=ids, pixel_values=pixels, use_cache=True, **more)
            for _ in range(2):
                out = model(input_ids=ids[:, :1], past_key_values=out.past_key_values, use_cache=True)
        torch.cuda.synchronize()

    counted(name, body)


@case
def qwen3_vl():
    from transformers import AutoConfig
    text = {**SIZES, "head_dim": 64, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                                                         "mrope_section": [8, 12, 12]}}
    config = AutoConfig.for_model("qwen3_vl", text_config=text, image_token_id=20000, video_token_id=20003,
                                  vision_start_token_id=20001, vision_end_token_id=20002,
                                  vision_config=dict(depth=3, hidden_size=320, num_heads=4, intermediate_size=800,
                                                     out_hidden_size=768, num_position_embeddings=256,
                                                     deepstack_visual_indexes=[1]))
    sees("qwen3_vl", config, torch.randn(64, 3 * 2 * 16 * 16, device="cuda", dtype=torch.bfloat16), 16, 20000,
         image_grid_thw=torch.tensor([[1, 8, 8]], device="cuda"), mm_token_type_ids=None)


@case
def paligemma():
    from transformers import AutoConfig
    text = {**SIZES, "model_type": "gemma", "head_dim": 64, "num_image_tokens": 16}
    vision = dict(model_type="siglip_vision_model", hidden_size=320, intermediate_size=800, num_hidden_layers=3,
                  num_attention_heads=4, image_size=56, patch_size=14, projection_dim=768, vision_use_head=False)
    config = AutoConfig.for_model("paligemma", text_config=text, vision_config=vision, image_token_index=20000,
                                  projection_dim=768, hidden_size=768)
    sees("paligemma", config, torch.randn(2, 3, 56, 56, device="cuda", dtype=torch.bfloat16), 16, 20000, batch=2)


def translates(name, config, batch=2, prompt=75, steps=3):
    from transformers import AutoModelForSeq2SeqLM
    with torch.device("cuda"):
        model = AutoModelForSeq2SeqLM.from_config(config, dtype=torch.float16).eval()
    ids = torch.randint(3, 1000, (batch, prompt), device="cuda")
    one = torch.ones((batch, 1), dtype=torch.long, device="cuda")

    def body():
        with torch.no_grad():
            encoded = model.get_encoder()(input_ids=ids)
            cache = None
            for _ in range(steps):
                out = model(encoder_outputs=encoded, decoder_input_ids=one, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
        torch.cuda.synchronize()

    counted(name, body)


@case
def m2m_100():
    from transformers import AutoConfig
    config = AutoConfig.for_model("m2m_100", vocab_size=20011, d_model=512, encoder_layers=3, decoder_layers=2,
                                  encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048,
                                  decoder_ffn_dim=2048, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    translates("m2m_100", config)


@case
def switch_transformers():
    from transformers import AutoConfig
    config = AutoConfig.for_model("switch_transformers", vocab_size=20011, d_model=512, d_ff=1024, num_heads=8,
                                  num_layers=2, num_decoder_layers=2, num_sparse_encoder_layers=1,
                                  num_sparse_decoder_layers=1, num_experts=4, pad_token_id=0, eos_token_id=2,
                                  decoder_start_token_id=0)
    translates("switch_transformers", config)


# ------------------------------------------------------------------------------------------------- ways to run a model

@case
def packed():
    """Sequences of several lengths behind one another: PyTorch's own attention for that, and nested tensors."""
    from torch.nn.attention.varlen import varlen_attn
    g = dict(device="cuda", dtype=torch.bfloat16)
    lengths = [100, 37, 200, 63]
    ends = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], device="cuda", dtype=torch.int32)
    q = torch.randn(sum(lengths), 16, 64, **g)
    k, v = (torch.randn(sum(lengths), 16, 64, **g) for _ in range(2))
    parts = [torch.randn(n, 512, **g) for n in lengths]
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, activation="gelu").to(**g).eval()

    def body():
        with torch.no_grad():
            varlen_attn(q, k, v, ends, ends, max(lengths), max(lengths))
            nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
            heads = nested.unflatten(-1, [8, 64]).transpose(1, 2)
            F.scaled_dot_product_attention(heads, heads, heads)
            F.linear(nested, layer.linear1.weight, layer.linear1.bias)
            layer(torch.nested.nested_tensor(parts))
        torch.cuda.synchronize()

    recorded("packed", body, with_flops=False)


@case
def continuous():
    """Batches of transformers itself, keys and values in pages."""
    from transformers import GenerationConfig
    model = made("qwen3", head_dim=64, attn_implementation="sdpa")
    inputs = [torch.randint(3, 1000, (n,)).tolist() for n in (40, 25, 60)]
    config = GenerationConfig(max_new_tokens=4, do_sample=False, pad_token_id=0, eos_token_id=-1, num_blocks=64,
                              max_batch_tokens=256)

    def body():
        model.generate_batch(inputs=inputs, generation_config=config, progress_bar=False)
        torch.cuda.synchronize()

    recorded("continuous", body, with_flops=False)


class FewBits(torch.nn.Module):
    """Weights of 8 bits, or two of 4 in a byte, made whole before the product."""

    def __init__(self, linear, bits):
        super().__init__()
        self.bits = bits
        weight = linear.weight.float()
        largest = weight.abs().amax(1, keepdim=True) / (127 if bits == 8 else 7)
        whole = (weight / largest).round().to(torch.int8)
        if bits == 4:
            whole = ((whole[:, ::2] + 8) << 4 | (whole[:, 1::2] + 8)).to(torch.uint8)
        self.register_buffer("whole", whole)
        self.register_buffer("scale", largest.to(torch.bfloat16))

    def forward(self, x):
        if self.bits == 8:
            return F.linear(x, self.whole.to(x.dtype)) * self.scale.T
        pair = torch.stack(((self.whole >> 4).to(torch.int8) - 8, (self.whole & 15).to(torch.int8) - 8), -1)
        return F.linear(x, pair.flatten(1).to(x.dtype) * self.scale)


def in_few_bits(bits, **sizes):
    model = made("llama", **sizes)
    for layer in model.model.layers:
        for block in (layer.self_attn, layer.mlp):
            for name, child in list(block.named_children()):
                if isinstance(child, torch.nn.Linear):
                    setattr(block, name, FewBits(child, bits))
    return model


@case
def int8_weights():
    passes("int8_weights", in_few_bits(8))


@case
def int4_weights():
    passes("int4_weights", in_few_bits(4))


@case
def fp8_rows():
    """Scaled products with a scale per row, per tensor and per block, quantised on the way."""
    g = dict(device="cuda")
    x = torch.randn(128, 1024, **g, dtype=torch.bfloat16)
    w = torch.randn(2048, 1024, **g).to(torch.float8_e4m3fn)
    by_row, by_block = torch.rand(1, 2048, **g), torch.rand(16, 8, **g)

    def body():
        with torch.no_grad():
            largest = x.abs().amax(1, keepdim=True).float() / 448
            small = (x / largest).to(torch.float8_e4m3fn)
            torch._scaled_mm(small, w.T, largest, by_row, out_dtype=torch.bfloat16)
            torch._scaled_mm(small, w.T, largest.amax().reshape(1), by_row.amax().reshape(1), out_dtype=torch.bfloat16,
                             use_fast_accum=True)
            if hasattr(F, "scaled_mm"):
                kinds = F.ScalingType if hasattr(F, "ScalingType") else torch.nn.functional.ScalingType
                F.scaled_mm(small, w.T, largest, kinds.RowWise, by_row, kinds.RowWise, output_dtype=torch.bfloat16)
                tiles = torch.rand(8, 128, **g).T
                F.scaled_mm(small, w.T, tiles, kinds.BlockWise1x128, by_block.T, kinds.BlockWise128x128,
                            output_dtype=torch.bfloat16)
        torch.cuda.synchronize()

    recorded("fp8_rows", body, with_flops=False)


@case
def muon_accumulated():
    """Two batches a step, their gradients summed; matrices by one optimizer, the rest by another."""
    model = made("qwen2", num_hidden_layers=2).train()
    ids = torch.randint(3, 1000, (2, 64), device="cuda")
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n and "head" not in n]
    rest = [p for p in model.parameters() if all(p is not m for m in matrices)]
    optimizers = [torch.optim.Muon(matrices, lr=1e-3), torch.optim.AdamW(rest, lr=1e-4)]

    def body():
        for _ in range(2):
            for _ in range(2):
                model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
        torch.cuda.synchronize()

    counted("muon_accumulated", body)


# --------------------------------------------------------------------------------------------------------- compiled

def compiled_decode(name, model, batch, prompt, steps=3):
    """The prompt eagerly, tokens by a compiled step in CUDA graphs over a static cache."""
    from transformers import StaticCache
    cache = StaticCache(config=model.config, max_cache_len=128)
    ids = torch.randint(3, 1000, (batch, prompt), device="cuda")
    one = torch.randint(3, 1000, (batch, 1), device="cuda")
    place = torch.tensor([prompt], device="cuda")
    fast = torch.compile(model, mode="reduce-overhead")

    def run(which):
        def body():
            with torch.no_grad():
                cache.reset()
                model(input_ids=ids, past_key_values=cache, cache_position=torch.arange(prompt, device="cuda"))
                for i in range(steps):
                    place.fill_(prompt + i)
                    torch.compiler.cudagraph_mark_step_begin()
                    which(input_ids=one, past_key_values=cache, cache_position=place)
            torch.cuda.synchronize()
        return body

    for _ in range(2):
        run(fast)()
    counted(name, run(fast), run(model))


@case
def compiled_decode_qwen2():
    compiled_decode("compiled_decode_qwen2", made("qwen2", num_hidden_layers=3), 4, 50)


@case
def compiled_decode_moe():
    model = made("olmoe", num_hidden_layers=2, num_experts=8, num_experts_per_tok=2)
    model.set_experts_implementation("grouped_mm")
    compiled_decode("compiled_decode_moe", model, 2, 40)


@case
def compiled_layers():
    """Each layer compiled by itself, as trainers do it; activations of each computed again on the way back."""
    model = made("llama", num_hidden_layers=3).train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    for layer in model.model.layers:
        layer.compile()
    ids = torch.randint(3, 1000, (2, 96), device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def body():
        for _ in range(2):
            model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()

    body()
    recorded("compiled_layers", body, with_flops=False)


if __name__ == "__main__":
    record.main()
