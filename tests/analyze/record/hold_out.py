"""Records PyTorch traces of models that no formula of `analyze` was written for: what it misses here, it misses.

    python3 tests/analyze/record/hold_out.py FOLDER [NAME...]

Run in the root of the repository, like record.py, whose pieces it uses. Sizes are odd on purpose: prompts that are no power
of two, one sequence, few layers.
"""
import contextlib

import torch
import torch.nn.functional as F
from torch.profiler import record_function

import record
from record import case, generation, quick, recorded

record.CASES.clear()
SIZES = dict(vocab_size=20011, hidden_size=768, intermediate_size=2304, num_hidden_layers=3, num_attention_heads=12,
             num_key_value_heads=4, max_position_embeddings=2048)


@case
def olmoe():
    from transformers import OlmoeConfig
    generation("olmoe", quick(OlmoeConfig(**SIZES, num_experts=24, num_experts_per_tok=3)), batch=1, prompt=337, steps=3)


@case
def granite_moe():
    from transformers import GraniteMoeConfig
    generation("granite_moe", quick(GraniteMoeConfig(**SIZES, num_local_experts=6, num_experts_per_tok=2)), batch=3, prompt=75)


@case
def glm4_moe():
    from transformers import Glm4MoeConfig
    config = Glm4MoeConfig(**SIZES, head_dim=64, n_routed_experts=12, num_experts_per_tok=3, n_shared_experts=1,
                           moe_intermediate_size=384, first_k_dense_replace=1, attention_bias=True)
    generation("glm4_moe", quick(config), batch=1, prompt=190)


@case
def llama4():
    from transformers import Llama4TextConfig
    sizes = {**SIZES, "num_hidden_layers": 4}
    config = Llama4TextConfig(**sizes, intermediate_size_mlp=2304, head_dim=64, num_local_experts=4,
                              num_experts_per_tok=1, interleave_moe_layer_step=2, attention_chunk_size=64)
    generation("llama4", quick(config), batch=2, prompt=150)


@case
def dbrx():
    from transformers import DbrxConfig
    config = DbrxConfig(d_model=768, n_heads=12, n_layers=3, max_seq_len=2048, vocab_size=20011,
                        attn_config=dict(kv_n_heads=4, clip_qkv=8.0, rope_theta=10000.0),
                        ffn_config=dict(ffn_hidden_size=1024, moe_num_experts=6, moe_top_k=2, hidden_size=768))
    generation("dbrx", quick(config), batch=2, prompt=90)


@case
def phimoe():
    from transformers import PhimoeConfig
    config = PhimoeConfig(**SIZES, num_local_experts=6, num_experts_per_tok=2, attention_bias=True, lm_head_bias=True)
    generation("phimoe", quick(config, dtype=torch.float16), batch=2, prompt=99)


@case
def jamba():
    from transformers import JambaConfig
    config = JambaConfig(**{**SIZES, "num_hidden_layers": 4}, use_mamba_kernels=False, num_experts=4,
                         num_experts_per_tok=2, attn_layer_period=4, attn_layer_offset=2, expert_layer_period=2,
                         expert_layer_offset=1, pad_token_id=0)
    generation("jamba", quick(config), batch=2, prompt=40)


@case
def qwen3_next():
    from transformers import Qwen3NextConfig
    config = Qwen3NextConfig(**{**SIZES, "num_hidden_layers": 4}, head_dim=64, linear_num_value_heads=8,
                             linear_num_key_heads=4, linear_key_head_dim=64, linear_value_head_dim=64, num_experts=8,
                             num_experts_per_tok=2, moe_intermediate_size=256, shared_expert_intermediate_size=256)
    generation("qwen3_next", quick(config), batch=1, prompt=130)


@case
def deepseek_v2_eager():
    from transformers import DeepseekV2Config
    config = DeepseekV2Config(vocab_size=20011, hidden_size=768, intermediate_size=1536, moe_intermediate_size=384,
                              num_hidden_layers=3, num_attention_heads=12, num_key_value_heads=12, n_routed_experts=8,
                              num_experts_per_tok=2, n_shared_experts=1, first_k_dense_replace=1, q_lora_rank=None,
                              kv_lora_rank=192, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64, n_group=1,
                              topk_group=1, head_dim=32)
    generation("deepseek_v2_eager", quick(config, attn_implementation="eager"), batch=2, prompt=77)


@case
def qwen2_padded():
    """Biased projections, a tied head, sequences of several lengths padded on the left."""
    from transformers import Qwen2Config
    model = quick(Qwen2Config(**SIZES, tie_word_embeddings=True), dtype=torch.float16)
    ids = torch.randint(3, 1000, (3, 117), device="cuda")
    mask = torch.ones_like(ids)
    mask[0, :40] = 0
    mask[2, :7] = 0

    def body():
        with torch.no_grad():
            model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=4, do_sample=False, pad_token_id=0)

    recorded("qwen2_padded", body)


@case
def stablelm():
    from transformers import StableLmConfig
    generation("stablelm", quick(StableLmConfig(**SIZES, use_qkv_bias=True)), batch=1, prompt=211)


@case
def gpt_bigcode():
    """One key-value head, GELU, biases, a tied head."""
    from transformers import GPTBigCodeConfig
    config = GPTBigCodeConfig(vocab_size=20011, n_embd=768, n_layer=3, n_head=12, n_positions=2048)
    generation("gpt_bigcode", quick(config, dtype=torch.float16), batch=5, prompt=61)


@case
def gptj():
    from transformers import GPTJConfig
    config = GPTJConfig(vocab_size=20011, n_embd=768, n_layer=3, n_head=12, n_positions=2048, rotary_dim=32)
    generation("gptj", quick(config, dtype=torch.float16), batch=2, prompt=99)


@case
def codegen():
    from transformers import CodeGenConfig
    config = CodeGenConfig(vocab_size=20011, n_embd=1024, n_layer=3, n_head=16, n_positions=2048, rotary_dim=32)
    generation("codegen", quick(config, dtype=torch.float16), batch=2, prompt=99)


@case
def gpt_neo():
    from transformers import GPTNeoConfig
    config = GPTNeoConfig(vocab_size=20011, hidden_size=768, num_layers=4, num_heads=12, window_size=64,
                          attention_types=[[["global", "local"], 2]])
    generation("gpt_neo", quick(config, dtype=torch.float32), batch=2, prompt=99)


@case
def mpt():
    from transformers import MptConfig
    config = MptConfig(d_model=768, n_heads=12, n_layers=3, vocab_size=20011)
    generation("mpt", quick(config), batch=2, prompt=99)


@case
def nemotron():
    """LayerNorm1P and a squared ReLU."""
    from transformers import NemotronConfig
    generation("nemotron", quick(NemotronConfig(**SIZES, head_dim=64)), batch=2, prompt=99)


@case
def persimmon():
    from transformers import PersimmonConfig
    sizes = {**SIZES}
    sizes.pop("num_key_value_heads")
    generation("persimmon", quick(PersimmonConfig(**sizes)), batch=1, prompt=99)


@case
def smollm3():
    from transformers import SmolLM3Config
    generation("smollm3", quick(SmolLM3Config(**{**SIZES, "num_hidden_layers": 4}, pad_token_id=0)), batch=1, prompt=513)


@case
def olmo2_static():
    """A static cache, no compiler."""
    from transformers import Olmo2Config, StaticCache
    config = Olmo2Config(**SIZES)
    model = quick(config)
    cache = StaticCache(config=config, max_cache_len=192)
    ids = torch.randint(3, 1000, (2, 99), device="cuda")
    one = torch.randint(3, 1000, (2, 1), device="cuda")

    def body():
        with torch.no_grad():
            cache.reset()
            with record_function("prefill"):
                model(input_ids=ids, past_key_values=cache, cache_position=torch.arange(99, device="cuda"))
            for i in range(3):
                with record_function(f"decode_{i}"):
                    model(input_ids=one, past_key_values=cache, cache_position=torch.tensor([99 + i], device="cuda"))
            torch.cuda.synchronize()

    recorded("olmo2_static", body)


@case
def xglm():
    from transformers import XGLMConfig
    config = XGLMConfig(vocab_size=20011, d_model=768, ffn_dim=3072, num_layers=3, attention_heads=12)
    generation("xglm", quick(config, dtype=torch.float16), batch=2, prompt=99)


@case
def gpt2_chunks():
    """A prompt in three pieces, then four tokens; nothing is named."""
    from transformers import GPT2Config
    model = quick(GPT2Config(n_embd=768, n_layer=4, n_head=12), dtype=torch.float16)
    ids = torch.randint(3, 1000, (1, 300), device="cuda")
    one = torch.randint(3, 1000, (1, 1), device="cuda")

    def body():
        with torch.no_grad():
            cache = None
            for i in range(3):
                cache = model(input_ids=ids[:, 100 * i:100 * i + 100], past_key_values=cache,
                              use_cache=True).past_key_values
            for _ in range(4):
                cache = model(input_ids=one, past_key_values=cache, use_cache=True).past_key_values
            torch.cuda.synchronize()

    recorded("gpt2_chunks", body)


@case
def gpt2_beams():
    from transformers import GPT2Config
    model = quick(GPT2Config(n_embd=768, n_layer=3, n_head=12), dtype=torch.float16)
    ids = torch.randint(3, 1000, (1, 45), device="cuda")

    def body():
        with torch.no_grad():
            model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=4, num_beams=3,
                           pad_token_id=0)

    recorded("gpt2_beams", body)


class Block(torch.nn.Module):
    """A block as people write it themselves: LayerNorm, one fused projection, GELU, biases."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first = torch.nn.LayerNorm(width)
        self.second = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.first(x)).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(batch, length, width))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


class Small(torch.nn.Module):
    def __init__(self, width=768, heads=12, layers=3, words=20011):
        super().__init__()
        self.words = torch.nn.Embedding(words, width)
        self.places = torch.nn.Embedding(1024, width)
        self.blocks = torch.nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.last = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))


@case
def by_hand_recomputed():
    """No cache: every token runs the whole text again."""
    model = Small().to("cuda", torch.bfloat16).eval()

    def body():
        with torch.no_grad():
            ids = torch.randint(3, 1000, (2, 70), device="cuda")
            for _ in range(4):
                logits = model(ids)
                ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], 1)
            torch.cuda.synchronize()

    recorded("by_hand_recomputed", body)


@case
def by_hand_trained():
    model = Small().to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(3, 1000, (4, 129), device="cuda")

    def body():
        for i in range(2):
            with record_function(f"train_{i}"):
                with torch.autocast("cuda", torch.bfloat16):
                    logits = model(ids[:, :-1])
                    loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), ids[:, 1:].reshape(-1))
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        torch.cuda.synchronize()

    recorded("by_hand_trained", body)


@case
def llama_autocast():
    """Weights in fp32, products in fp16."""
    from transformers import LlamaConfig
    model = quick(LlamaConfig(**SIZES), dtype=torch.float32)
    ids = torch.randint(3, 1000, (2, 99), device="cuda")
    one = torch.randint(3, 1000, (2, 1), device="cuda")

    def body():
        with torch.no_grad(), torch.autocast("cuda", torch.float16):
            with record_function("prefill"):
                cache = model(input_ids=ids, use_cache=True).past_key_values
            for i in range(2):
                with record_function(f"decode_{i}"):
                    cache = model(input_ids=one, past_key_values=cache, use_cache=True).past_key_values
            torch.cuda.synchronize()

    recorded("llama_autocast", body)


@case
def torch_encoder():
    """PyTorch's own encoder with its fast path, and its own decoder layer."""
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 3).to("cuda", torch.float16).eval()
    decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(768, 12, 3072, batch_first=True), 2)
    decoder = decoder.to("cuda", torch.float16).eval()
    x = torch.randn(3, 90, 768, device="cuda", dtype=torch.float16)

    def body():
        with torch.no_grad():
            with record_function("encode"):
                memory = encoder(x)
            with record_function("decode"):
                decoder(x[:, :20], memory)
        torch.cuda.synchronize()

    recorded("torch_encoder", body)


@case
def roberta():
    from transformers import RobertaConfig, RobertaForMaskedLM
    with torch.device("cuda"):
        model = RobertaForMaskedLM(RobertaConfig(vocab_size=20011, hidden_size=768, num_hidden_layers=3,
                                                 num_attention_heads=12, intermediate_size=3072)).eval()
    ids = torch.randint(3, 1000, (3, 90), device="cuda")
    mask = torch.ones_like(ids)
    mask[1, 50:] = 0

    def body():
        with torch.no_grad():
            for _ in range(2):
                model(input_ids=ids, attention_mask=mask)
            torch.cuda.synchronize()

    recorded("roberta", body)


@case
def vit():
    from transformers import ViTConfig, ViTModel
    with torch.device("cuda"):
        model = ViTModel(ViTConfig(num_hidden_layers=3)).to(torch.float16).eval()
    pixels = torch.randn(4, 3, 224, 224, device="cuda", dtype=torch.float16)

    def body():
        with torch.no_grad():
            model(pixel_values=pixels)
            torch.cuda.synchronize()

    recorded("vit", body)


def heard(take, named):
    """Sound through an encoder, then three words; `take` records the body."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    config = WhisperConfig(vocab_size=20011, encoder_layers=2, decoder_layers=2, d_model=512, encoder_attention_heads=8,
                           decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048, pad_token_id=0,
                           bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    with torch.device("cuda"):
        model = WhisperForConditionalGeneration(config).to(torch.float16).eval()
    sound = torch.randn(1, 80, 3000, device="cuda", dtype=torch.float16)
    one = torch.ones((1, 1), dtype=torch.long, device="cuda")

    def part(label):
        return record_function(label) if named else contextlib.nullcontext()

    def body():
        with torch.no_grad():
            with part("encode"):
                encoded = model.model.encoder(sound)
            cache = None
            for i in range(3):
                with part(f"decode_{i}"):
                    cache = model(encoder_outputs=encoded, decoder_input_ids=one, past_key_values=cache,
                                  use_cache=True).past_key_values
            torch.cuda.synchronize()

    take("whisper", body)


@case
def whisper():
    heard(recorded, named=True)


@case
def neox_graph_static():
    """Decode steps captured by hand in a CUDA graph over a static cache."""
    from transformers import GPTNeoXConfig, StaticCache
    config = GPTNeoXConfig(vocab_size=20011, hidden_size=768, intermediate_size=3072, num_hidden_layers=3,
                           num_attention_heads=12, max_position_embeddings=2048)
    model = quick(config, dtype=torch.float16)
    cache = StaticCache(config=config, max_cache_len=128)
    ids = torch.randint(3, 1000, (2, 50), device="cuda")
    one = torch.randint(3, 1000, (2, 1), device="cuda")
    place = torch.tensor([50], device="cuda")
    with torch.no_grad():
        model(input_ids=ids, past_key_values=cache, cache_position=torch.arange(50, device="cuda"))
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                model(input_ids=one, past_key_values=cache, cache_position=place)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(input_ids=one, past_key_values=cache, cache_position=place)

    def body():
        with torch.no_grad():
            cache.reset()
            model(input_ids=ids, past_key_values=cache, cache_position=torch.arange(50, device="cuda"))
            for i in range(4):
                place.fill_(50 + i)
                graph.replay()
            torch.cuda.synchronize()

    recorded("neox_graph_static", body)


def compiled_passes(name, model, batch, prompt, **how):
    compiled = torch.compile(model, **how)
    ids = torch.randint(3, 1000, (batch, prompt), device="cuda")
    one = torch.randint(3, 1000, (batch, 1), device="cuda")

    def body():
        with torch.no_grad():
            with record_function("prefill"):
                cache = compiled(input_ids=ids, use_cache=True).past_key_values
            for i in range(3):
                with record_function(f"decode_{i}"):
                    cache = compiled(input_ids=one, past_key_values=cache, use_cache=True).past_key_values
            torch.cuda.synchronize()

    body()
    body()
    recorded(name, body)


@case
def mixtral_compiled():
    from transformers import MixtralConfig
    compiled_passes("mixtral_compiled", quick(MixtralConfig(**{**SIZES, "num_hidden_layers": 2}, num_local_experts=4,
                                                            num_experts_per_tok=2)), 2, 90)


@case
def gpt2_compiled():
    from transformers import GPT2Config
    compiled_passes("gpt2_compiled", quick(GPT2Config(n_embd=768, n_layer=2, n_head=12), dtype=torch.float16), 3, 77,
                    dynamic=True)


@case
def generate_static():
    """model.generate with a static cache, which compiles decode steps by itself."""
    from transformers import Qwen3Config
    model = quick(Qwen3Config(**{**SIZES, "num_hidden_layers": 2}, head_dim=64))
    ids = torch.randint(3, 1000, (1, 57), device="cuda")

    def body():
        with torch.no_grad():
            model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False,
                           cache_implementation="static", pad_token_id=0)

    body()
    recorded("generate_static", body)


if __name__ == "__main__":
    record.main()
