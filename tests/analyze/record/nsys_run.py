"""What Nsight Systems recorded for data/nsys_llama_graphs.sqlite.gz (docs/tracing.md has the commands)."""
import torch
import transformers

config = transformers.LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=4, num_attention_heads=8,
                                  num_key_value_heads=2, head_dim=128, vocab_size=16032, max_position_embeddings=4096)
model = transformers.LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()
ids = torch.randint(0, 16000, (4, 300), device="cuda")
nvtx = torch.cuda.nvtx


def empty_cache():
    return transformers.StaticCache(config=config, max_cache_len=512)


def prompt(cache):
    return model(ids, past_key_values=cache, cache_position=torch.arange(300, device="cuda"))


with torch.no_grad():
    for _ in range(2):
        prompt(empty_cache())
    torch.cuda.synchronize()
    cache = empty_cache()
    nvtx.range_push("prefill")
    out = prompt(cache)
    torch.cuda.synchronize()
    nvtx.range_pop()
    token = out.logits[:, -1:].argmax(-1)
    position = torch.tensor([300], device="cuda")

    def step():
        return model(token, past_key_values=cache, cache_position=position).logits

    for i in range(3):
        nvtx.range_push(f"decode {i}")
        step()
        torch.cuda.synchronize()
        nvtx.range_pop()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for i in range(4):
        nvtx.range_push(f"graph decode {i}")
        graph.replay()
        torch.cuda.synchronize()
        nvtx.range_pop()
