// The keys of roofline.report/1, roofline.advise/1 and roofline.plan/1 (schema/) that the page shows.

export interface Times {
    limit: number;
    attainable: number;
    expected: number;
    expected_low?: number;
    expected_high?: number;
    measured?: number | null;
}

export interface Traffic {
    memory: number;
    cache?: number;
    weights?: number;
    kv?: number;
    peer?: number;
    network?: number;
    host?: number;
}

export interface OperatorRecord {
    name: string;
    kind: string;
    group: string;
    count: number;
    engine: string;
    dtype: string;
    flops: number;
    bytes: Traffic;
    intensity?: number | null;
    bound?: string;
    fraction_of_peak?: number | null;
    fraction_of_bandwidth?: number | null;
    time_s: Times;
    share?: number;
}

export interface GroupShare {
    group: string;
    time_s: Times;
    share: number;
    bound: string;
}

export interface Stage {
    stage: string;
    batch: number;
    tokens: number;
    context: number;
    flops?: number;
    bytes?: Traffic;
    intensity?: number | null;
    ridge?: number | null;
    bound?: string;
    fraction_of_peak?: number | null;
    fraction_of_bandwidth?: number | null;
    time_s: Times;
    tokens_per_s?: { limit: number; attainable: number; expected: number };
    groups?: GroupShare[];
    records: OperatorRecord[];
}

export interface Figure {
    value: number;
    unit: string;
    source: string;
    note?: string;
}

export interface DeviceJson {
    name: string;
    title: string;
    vendor: string;
    year?: number;
    kind: string;
    aliases?: string[];
    engines: { id: string; rates: { [dtype: string]: Figure } }[];
    memory: { id: string; technology?: string; capacity?: Figure; bandwidth?: Figure }[];
    links?: { id: string; technology?: string; bandwidth?: Figure }[];
    power?: Figure;
    ceilings?: { [path: string]: Figure };
    notes?: string[];
}

export interface Report {
    schema: string;
    run: { version: string; command: string; time?: string };
    title?: string;
    verb?: string;
    device: DeviceJson;
    model?: { name: string; title?: string; parameters?: number; active_parameters?: number; kv_bytes_per_token?: number };
    workload: { batch: number; prompt: number; context: number; generate: number };
    deployment: { weight_dtype: string; activation_dtype: string; kv_cache_dtype: string; devices: number };
    fit: {
        weights_bytes: number;
        kv_bytes: number;
        activation_bytes: number;
        capacity_bytes: number | null;
        fits: boolean;
        max_batch: number | null;
        max_context: number | null;
    };
    stages: Stage[];
    metrics: {
        ttft_s: Times | null;
        tpot_s: Times | null;
        request_s: Times | null;
        output_tokens_per_s: { limit: number; attainable: number; expected: number } | null;
        joules_per_token: number | null;
        cost_per_million_tokens: number | null;
    };
    calibration: { source: string; share: number }[];
    notes: string[];
}

export interface Score {
    ttft_s: Times;
    tpot_s: Times;
    device_s_per_token: Times;
    output_tokens_per_s_per_device: number;
    cost_per_million_tokens: number | null;
    bound: string;
    batch: number;
    devices: number;
    fits: boolean;
}

export interface Move {
    move: string;
    variant: string;
    verdict: string;
    gain: number | null;
    reason: string | null;
    flags: string | null;
    costs: string;
    answers: string;
    machines: string;
    what_if: boolean;
    score: Score | null;
}

export interface Advice {
    goal: string;
    sensitivities: { resource: string; title: string; amount: number | null; doubled_buys: number; note: string }[];
    moves: Move[];
    compute_bound_batch: { batch: number | null; largest: number | null; fits: boolean };
    asked: Score;
}

export interface ModelSummary {
    name: string;
    title: string;
    family?: string;
    aliases?: string[];
    parameters?: number;
    active_parameters?: number;
}

export interface PlanRow {
    devices: number;
    pools: { prefill: PlanPool | null; whole?: PlanPool | null; decode?: PlanPool | null };
    requests_per_s: { limit: number; expected: number };
    output_tokens_per_s: number;
    output_tokens_per_s_per_device: number;
    output_tokens_per_s_per_user: number;
    ttft_s: number;
    tpot_s: number;
    cost_per_million_output_tokens: number | null;
}

export interface PlanPool {
    device: string;
    devices: number;
    replicas: number;
    tensor_parallel: number;
    pipeline_parallel: number;
    context_parallel: number;
    attention_groups: number;
    expert_parallel: number;
    weight_dtype: string;
    kv_cache_dtype: string;
    max_sequences: number;
}
