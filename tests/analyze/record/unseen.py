"""Records PyTorch traces of kinds of runs beyond plain generation: trainings, graphs, encoders, compiled models, single
operators. Beside each trace NAME.json.gz lies NAME.counted.json: what torch.utils.flop_counter counts, by operator.

    python3 tests/analyze/record/unseen.py FOLDER [NAME...]

Run in the root of the repository, like record.py, whose pieces it uses.
"""
import json
import os

import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

import record
from hold_out import Small, heard
from record import case, quick, recorded

record.CASES.clear()
SIZES = dict(vocab_size=20011, hidden_size=768, intermediate_size=2048, num_hidden_layers=3, num_attention_heads=12,
             num_key_value_heads=4, max_position_embeddings=2048, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def counted(name, body, eager=None):
    """Counts what `eager` does, or the body itself where no graph or compiler hides it, then records the body."""
    body()
    counter = FlopCounterMode(display=False, depth=None)
    try:
        with counter:
            (eager or body)()
        flops = {str(k): v for k, v in counter.get_flop_counts().get("Global", {}).items()}
        with open(os.path.join(record.OUT, name + ".counted.json"), "w") as file:
            json.dump(flops, file)
    except AssertionError as error:  # of heads that share keys and values
        record.say(f"  {name}: not counted: {error}")
    body()
    recorded(name, body, with_flops=False)


def training(name, model, optimizer, loss_of, autocast, scaler=None, clip=None, steps=1):
    plain = getattr(model, "_orig_mod", model)

    def run(which):
        def body():
            for _ in range(steps):
                with torch.autocast("cuda", autocast):
                    loss = loss_of(which)
                (scaler.scale(loss) if scaler else loss).backward()
                if clip:
                    scaler.unscale_(optimizer)
                    torch.nn.utils.clip_grad_norm_(plain.parameters(), clip)
                scaler.step(optimizer) if scaler else optimizer.step()
                if scaler:
                    scaler.update()
                optimizer.zero_grad()
            torch.cuda.synchronize()
        return body

    counted(name, run(model), run(plain))


@case
def train_gpt2_amp():
    from transformers import GPT2Config
    model = quick(GPT2Config(vocab_size=20011, n_embd=768, n_layer=3, n_head=12), dtype=torch.float32).train()
    ids = torch.randint(3, 1000, (4, 96), device="cuda")
    training("train_gpt2_amp", model, torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True),
             lambda m: m(input_ids=ids, labels=ids, use_cache=False).loss, torch.float16, torch.amp.GradScaler("cuda"), 1.0)


@case
def convnet_training():
    nn = torch.nn

    def block(i, o, stride):
        return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))

    model = nn.Sequential(block(3, 64, 2), nn.MaxPool2d(2), block(64, 128, 2), block(128, 256, 1),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(256, 1000)).cuda()
    x = torch.randn(16, 3, 128, 128, device="cuda")
    y = torch.randint(0, 1000, (16,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    training("convnet_training", model, optimizer, lambda m: F.cross_entropy(m(x), y), torch.bfloat16)


@case
def compiled_train():
    plain = Small(width=512, heads=8, layers=2).cuda()
    ids = torch.randint(3, 1000, (4, 97), device="cuda")

    def loss_of(model):
        logits = model(ids[:, :-1])
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), ids[:, 1:].reshape(-1))

    training("compiled_train", torch.compile(plain), torch.optim.AdamW(plain.parameters(), lr=1e-4, fused=True), loss_of,
             torch.bfloat16, steps=2)


def graphed(name, model, batch, prompt, steps=4, launched=0):
    """A prompt and `launched` tokens launch by launch, then decode steps replayed from a captured graph."""
    from transformers import StaticCache
    cache = StaticCache(config=model.config, max_cache_len=128)
    ids = torch.randint(3, 1000, (batch, prompt), device="cuda")
    one = torch.randint(3, 1000, (batch, 1), device="cuda")
    place = torch.tensor([prompt], device="cuda")

    def first():
        model(input_ids=ids, past_key_values=cache, cache_position=torch.arange(prompt, device="cuda"))

    def step():
        model(input_ids=one, past_key_values=cache, cache_position=place)

    with torch.no_grad():
        first()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()

    def run(one_step):
        def body():
            with torch.no_grad():
                cache.reset()
                first()
                for i in range(launched + steps):
                    place.fill_(prompt + i)
                    step() if i < launched else one_step()
            torch.cuda.synchronize()
        return body

    counted(name, run(graph.replay), run(step))


@case
def graph_llama_decode():
    from transformers import LlamaConfig
    graphed("graph_llama_decode", quick(LlamaConfig(**SIZES)), 4, 60)


@case
def graph_moe_decode():
    from transformers import MixtralConfig
    model = quick(MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2))
    model.set_experts_implementation("batched_mm")
    graphed("graph_moe_decode", model, 2, 70)


@case
def whisper():
    heard(counted, named=False)


@case
def mamba2():
    from transformers import Mamba2Config
    sizes = {k: v for k, v in SIZES.items() if not k.startswith(("num_attention", "num_key", "intermediate", "max_"))}
    model = quick(Mamba2Config(**{**sizes, "num_hidden_layers": 2}, num_heads=24, head_dim=64, state_size=64, n_groups=1,
                               chunk_size=64, expand=2))
    ids = torch.randint(3, 1000, (2, 70), device="cuda")

    def body():
        with torch.no_grad():
            with torch.profiler.record_function("prefill"):
                out = model(input_ids=ids, use_cache=True)
            for i in range(2):
                with torch.profiler.record_function(f"decode_{i}"):
                    out = model(input_ids=ids[:, :1], cache_params=out.cache_params, use_cache=True)
            torch.cuda.synchronize()

    counted("mamba2", body)


@case
def compiled_qwen3_moe():
    from transformers import Qwen3MoeConfig
    model = quick(Qwen3MoeConfig(**{**SIZES, "num_hidden_layers": 2}, head_dim=64, num_experts=8, num_experts_per_tok=2,
                                 moe_intermediate_size=384))
    compiled = torch.compile(model)
    ids = torch.randint(3, 1000, (2, 60), device="cuda")

    def run(which):
        def body():
            with torch.no_grad():
                cache = which(input_ids=ids, use_cache=True).past_key_values
                for _ in range(2):
                    cache = which(input_ids=ids[:, :1], past_key_values=cache, use_cache=True).past_key_values
            torch.cuda.synchronize()
        return body

    counted("compiled_qwen3_moe", run(compiled), run(model))


@case
def compiled_bert():
    from transformers import AutoModel, BertConfig
    sizes = {k: v for k, v in SIZES.items() if k != "num_key_value_heads"}
    with torch.device("cuda"):
        model = AutoModel.from_config(BertConfig(**{**sizes, "num_hidden_layers": 2}), dtype=torch.float16).eval()
    compiled = torch.compile(model)
    ids = torch.randint(3, 1000, (3, 90), device="cuda")

    def run(which):
        def body():
            with torch.no_grad():
                for _ in range(2):
                    which(input_ids=ids)
            torch.cuda.synchronize()
        return body

    counted("compiled_bert", run(compiled), run(model))


@case
def ops_many():
    """One of each of many operators."""
    g = dict(device="cuda", dtype=torch.bfloat16)
    x, f, w = torch.randn(64, 1024, **g), torch.randn(64, 1024, device="cuda"), torch.randn(1024, 1024, **g)
    image, sound = torch.randn(4, 64, 56, 56, **g), torch.randn(4, 64, 1000, **g)
    q, k, v = (torch.randn(2, 8, 128, 64, **g) for _ in range(3))
    index = torch.randint(0, 64, (200,), device="cuda")
    lstm = torch.nn.LSTM(256, 256, 2, batch_first=True).to("cuda", torch.float16)
    series = torch.randn(4, 32, 256, device="cuda", dtype=torch.float16)
    things = [
        lambda: F.conv2d(image, torch.ones(128, 64, 3, 3, **g), padding=1),
        lambda: F.conv1d(sound, torch.ones(64, 1, 4, **g), groups=64),
        lambda: F.conv_transpose2d(image, torch.ones(64, 32, 2, 2, **g), stride=2), lambda: F.group_norm(image, 8),
        lambda: F.rms_norm(x, (1024,)), lambda: F.max_pool2d(image, 2), lambda: F.interpolate(image, scale_factor=2),
        lambda: torch.einsum("bhqd,bhkd->bhqk", q, k), lambda: w @ w[0], lambda: torch.dot(w[0], w[1]),
        lambda: torch.cumsum(f, -1), lambda: torch.sort(f, -1), lambda: torch.topk(f, 50), lambda: torch.median(f, -1),
        lambda: torch.logsumexp(f, -1), lambda: F.log_softmax(x, -1), lambda: x.index_select(0, index), lambda: x[index],
        lambda: torch.zeros(64, 1024, **g).index_add(0, index[:64], x), lambda: torch.roll(x, 3, -1),
        lambda: torch.tril(f @ f.mT), lambda: F.glu(x), lambda: F.dropout(x, 0.1), lambda: lstm(series),
        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), lambda: torch.cdist(f, f),
        lambda: torch.multinomial(F.softmax(f, -1), 4), lambda: torch.unique(index), lambda: torch.randperm(100000, device="cuda"),
        lambda: torch.linalg.svd(f[:, :64]), lambda: torch.linalg.qr(f[:, :64]), lambda: torch.fft.rfft(f),
    ]

    def body():
        for thing in things:
            thing()
        torch.cuda.synchronize()

    counted("ops_many", body)


if __name__ == "__main__":
    record.main()
