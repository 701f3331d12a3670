-- What a server of many users is asked, for wrk:
--   build/release/roofline serve --port 8080 &
--   wrk -t2 -c4 -d600s --latency -s bench/serve_mixture.lua http://127.0.0.1:8080
-- Of each hundred requests 90 are predictions (ten models, six devices, any batch and prompt), 4 look at the lists, 6 are
-- wrong: an unknown model, an option that is not there, a body that is no JSON, an address that is not there, a deployment
-- that cannot be, a number out of range. Every wrong one must be answered with 4xx: the end says how many were not.

local models = { "llama-3.1-8b", "llama-3.1-70b", "qwen2.5-7b", "mixtral-8x7b", "gemma-2-9b", "mistral-7b", "gpt2",
                 "qwen3-8b", "llama-3.2-1b", "deepseek-v3" }
local devices = { "h100-sxm", "h200-sxm", "a100-sxm-80gb", "b200-sxm", "rtx-4090", "mi300x" }
local json = { ["Content-Type"] = "application/json" }

local wrong = {
    function() return wrk.format("GET", "/api/v1/predict?model=nobody&device=h100-sxm") end,
    function() return wrk.format("GET", "/api/v1/predict?model=gpt2&device=h100-sxm&colour=red") end,
    function() return wrk.format("POST", "/api/v1/predict", json, "{ \"options\": { \"model\": ") end,
    function() return wrk.format("GET", "/api/v1/nothing") end,
    function() return wrk.format("GET", "/api/v1/predict?model=llama-3.1-8b&device=h100-sxm&tp=7") end,
    function() return wrk.format("GET", "/api/v1/predict?model=llama-3.1-8b&device=h100-sxm&batch=-1") end,
}
local lists = { "/api/v1/models", "/api/v1/devices", "/api/v1/options", "/api/v1/devices/h100-sxm" }

local threads = {}

function setup(thread)
    thread:set("seed", #threads + 1)
    table.insert(threads, thread)
end

function init()
    math.randomseed(seed)
    asked_wrong, refused, failed = 0, 0, 0
end

function request()
    local kind = math.random(100)
    if kind <= 6 then
        asked_wrong = asked_wrong + 1
        return wrong[kind]()
    end
    if kind <= 10 then return wrk.format("GET", lists[kind - 6]) end
    local question = string.format("model=%s&device=%s&batch=%d&prompt=%d", models[math.random(#models)],
                                   devices[math.random(#devices)], math.random(128), math.random(8192))
    if kind <= 55 then return wrk.format("GET", "/api/v1/predict?" .. question) end
    local options = question:gsub("(%w+)=([^&]+)&?", "\"%1\": \"%2\", "):sub(1, -3)
    return wrk.format("POST", "/api/v1/predict", json, "{ \"options\": { " .. options .. " } }")
end

function response(status)
    if status >= 500 then
        failed = failed + 1
    elseif status >= 400 then
        refused = refused + 1
    end
end

function done(summary, latency)
    local sum = { asked_wrong = 0, refused = 0, failed = 0 }
    for _, thread in ipairs(threads) do
        for name in pairs(sum) do sum[name] = sum[name] + thread:get(name) end
    end
    print(string.format("wrong questions %d, refused with 4xx %d, failed with 5xx %d", sum.asked_wrong, sum.refused, sum.failed))
    print(string.format("p99.9 %.1f ms, longest %.1f ms", latency:percentile(99.9) / 1000, latency.max / 1000))
end
