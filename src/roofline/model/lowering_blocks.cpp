// What blocks state themselves with: features of a step, types of the layers being lowered, and the operators that
// every model is made of. The model around its layers is in lowering.cpp.
#include <algorithm>
#include <cmath>

#include "roofline/model/lowering.hpp"

namespace roofline::model {
namespace {

// T2: flops of element-wise work per element. Conventions, not measurements: they matter only where nothing else does.
constexpr double rms_norm_flops = 4.0;
constexpr double layer_norm_flops = 7.0;

std::string times(const std::string& a, const std::string& b) {
    return a + " x " + b;
}

}  // namespace

// ---- features

int Lowering::feature(const Feature& wanted) {
    auto& features = lowered_.features;
    const auto found = std::find(features.begin(), features.end(), wanted);
    if (found == features.end()) {
        features.push_back(wanted);  // too many of them are refused where the model is read
        return static_cast<int>(features.size()) - 1;
    }
    return static_cast<int>(found - features.begin());
}

// Devices that share a context split the new tokens of a prefill, and the cache that a decoded token looks at; a
// decoded token itself passes all of them.

int Lowering::tokens(const Who& who) {
    return feature({.what = Feature::What::tokens, .who = who, .reach = {}, .in_prefill = 1.0 / deployment().context});
}

int Lowering::normed_tokens() {
    if (!deployment().sequence_parallel) return tokens();
    const double share = 1.0 / deployment().tensor;
    return feature({.what = Feature::What::tokens,
                    .who = {},
                    .reach = {},
                    .in_prefill = share / deployment().context,
                    .in_decode = share});
}
int Lowering::sequences(const Who& who) {
    return feature({.what = Feature::What::sequences, .who = who, .reach = {}});
}
int Lowering::pairs(const Reach& reach, const Who& who) {
    const double share = 1.0 / deployment().context;
    return feature({.what = Feature::What::pairs, .who = who, .reach = reach, .in_prefill = share, .in_decode = share});
}
int Lowering::keys(const Reach& reach, const Who& who) {
    return feature({.what = Feature::What::keys, .who = who, .reach = reach, .in_decode = 1.0 / deployment().context});
}
int Lowering::rectangle(const Reach& reach, const Who& who) {
    const double share = 1.0 / deployment().context;
    return feature(
        {.what = Feature::What::rectangle, .who = who, .reach = reach, .in_prefill = share, .in_decode = share});
}
int Lowering::entries(const Reach& reach) {
    return feature({.what = Feature::What::entries,
                    .who = {},
                    .reach = {.ratio = reach.ratio},
                    .in_prefill = 1.0 / deployment().context});
}
int Lowering::experts(double total, double chosen, double held) {
    // The tokens of all groups come to the same experts.
    return feature({.what = Feature::What::experts,
                    .who = {},
                    .reach = {},
                    .total = total,
                    .chosen = chosen,
                    .held = held,
                    .in_prefill = deployment().groups / deployment().context,
                    .in_decode = deployment().groups});
}

// ---- types of the layers being lowered

double Lowering::weight_bytes(Role role, double inner, double cols) const {
    if (group_layers_.empty()) return types_.outside_layers(role).bytes(inner, cols).value;
    double sum = 0.0;  // files may store a role differently from layer to layer: the average over them is exact in sum
    for (const std::size_t layer : group_layers_) sum += types_.of(layer, role).bytes(inner, cols).value;
    return sum / static_cast<double>(group_layers_.size());
}

double Lowering::bias_bytes(Role role, double count) const {
    // Biases stay in the stream type, unless a file said how many bits all of a role take, biases included.
    const auto bytes = [&](const WeightType& type) {
        return type.file_bits ? count * *type.file_bits / 8.0 : stream_bytes(count);
    };
    if (group_layers_.empty()) return bytes(types_.outside_layers(role));
    double sum = 0.0;
    for (const std::size_t layer : group_layers_) sum += bytes(types_.of(layer, role));
    return sum / static_cast<double>(group_layers_.size());
}

DType Lowering::compute(Role role) const {
    return group_layers_.empty() ? types_.outside_layers(role).compute()
                                 : types_.of(group_layers_.front(), role).compute();
}

std::string Lowering::attention_label(double head_dim) const {
    const std::string own(name(types_.attention));
    const std::string cache(name(types_.kv.value));
    return (own == cache ? own : own + "/" + cache) + (head_dim > 128.0 ? ", wide heads" : "");
}

std::string Lowering::weight_format(Role role) const {
    const WeightType& type =
        group_layers_.empty() ? types_.outside_layers(role) : types_.of(group_layers_.front(), role);
    const bool mixed = type.compute() != type.format.value;
    return std::string(type.format.name) + (mixed ? "/" + std::string(name(type.compute())) : "");
}

DType Lowering::activation(Role role) const {
    return group_layers_.empty() ? types_.outside_layers(role).activation
                                 : types_.of(group_layers_.front(), role).activation;
}

// ---- building blocks

std::string Lowering::number(double value) const {
    if (value == std::floor(value) && std::fabs(value) < 1e15) return std::to_string(static_cast<long long>(value));
    std::string text = std::to_string(value);
    while (text.back() == '0') text.pop_back();
    return text;
}

std::string Lowering::slot(int feature) const {
    return "{" + std::to_string(feature) + "}";
}

void Lowering::enter(std::string_view part, Group group) {
    part_ = part;
    group_ = group;
}

Operator& Lowering::add(std::string_view name, Kind kind, Group group) {
    Operator op;
    op.name = prefix_;
    if (!part_.empty()) op.name += (op.name.empty() ? "" : ".") + part_;
    if (!name.empty()) op.name += (op.name.empty() ? "" : ".") + std::string(name);
    op.kind = kind;
    op.group = group;
    op.count = group_layers_.empty() ? 1.0 : static_cast<double>(group_layers_.size());
    op.engine = Engine::vector;
    op.type = DType::fp32;
    lowered_.operators.push_back(std::move(op));
    return lowered_.operators.back();
}

void Lowering::note_width(double bytes_per_token) {
    if (group_layers_.empty()) return;  // the head works on few positions; its logits are counted apart
    lowered_.widest_activation = std::max(lowered_.widest_activation, bytes_per_token);
}

Operator& Lowering::product(const Product& p) {
    Operator& op = add(p.name, Kind::gemm, p.group);
    const double cells = p.inner * p.cols * p.copies;
    op.engine = Engine::matrix;
    op.type = compute(p.role);
    op.role = p.role;
    op.flops = Form(2.0 * cells, p.rows);  // F10: a multiply-add is two flops
    op.parameters = op.active_parameters = cells + p.bias;
    op.stored_bytes = p.copies * weight_bytes(p.role, p.inner, p.cols) + bias_bytes(p.role, p.bias);
    op.weight_bytes = Form(op.stored_bytes);
    const double input = p.reads_input ? p.inner * p.copies * bits(activation(p.role)) / 8.0 : 0.0;
    const double output = stream_bytes(p.cols * p.copies);
    op.activation_bytes = Form(input + output, p.rows);
    note_width(input + output);
    op.extent = {.pattern = Pattern::product,
                 .weights = weight_format(p.role),
                 .inner = p.inner,
                 .cols = p.cols,
                 .copies = p.copies};
    op.formula = "F10";
    const std::string copies = p.copies == 1.0 ? "" : number(p.copies) + " of ";
    op.shape = copies + "[" + slot(p.rows) + " x " + number(p.inner) + "] x [" + number(p.inner) + " x " +
               number(p.cols) + "]";
    op.flops_text = times(times("2 x " + slot(p.rows), number(p.inner)), number(p.cols));
    if (p.copies != 1.0) op.flops_text += " x " + number(p.copies);
    return op;
}

Operator& Lowering::expert_product(const ExpertProduct& p) {
    Operator& op = add(p.name, Kind::gemm, Group::moe);
    const int rows = tokens();
    const int distinct = experts(p.total, p.chosen, p.held);
    const double cells = p.inner * p.cols;
    const double one = weight_bytes(p.role, p.inner, p.cols) + bias_bytes(p.role, p.bias);
    op.engine = Engine::matrix;
    op.type = compute(p.role);
    op.role = p.role;
    op.flops = Form(2.0 * cells * p.slots, rows);  // F11: k experts per token compute, whatever the batch
    op.parameters = p.held * (cells + p.bias);
    op.active_parameters = p.chosen * (cells + p.bias);
    op.stored_bytes = p.held * one;
    op.weight_bytes = Form(one, distinct);  // F22: but only distinct ones are read
    const double inputs = p.input_per_expert ? p.slots : std::min(p.slots, deployment().groups);
    const double moved = inputs * p.inner * bits(activation(p.role)) / 8.0 + stream_bytes(p.cols * p.slots);
    op.activation_bytes = Form(moved, rows);
    note_width(moved);
    op.extent = {.pattern = Pattern::experts,
                 .weights = weight_format(p.role),
                 .inner = p.inner,
                 .cols = p.cols,
                 .experts = distinct,
                 .experts_total = p.held,
                 .experts_chosen = p.chosen};
    op.formula = "F11";
    op.shape = number(p.chosen) + " of " + number(p.total) + " experts: [rows x " + number(p.inner) + "] x [" +
               number(p.inner) + " x " + number(p.cols) + "]";
    op.flops_text = "2 x " + slot(rows) + " x " + number(p.slots) + " x " + number(p.inner) + " x " + number(p.cols);
    op.bytes_text = slot(distinct) + " of " + number(p.held) + " experts x " + number(one) + " B";
    return op;
}

Operator& Lowering::norm(std::string_view name, double elements, double parameters, int rows) {
    Operator& op = add(name, Kind::norm, Group::norm);
    if (rows < 0) rows = tokens();
    const double flops = architecture_.rms() ? rms_norm_flops : layer_norm_flops;
    op.role = Role::norm;
    // Those without a bias are often written out, like the root mean square.
    if (architecture_.norm == NormKind::layer_norm) op.style = "layer_norm";
    op.flops = Form(flops * elements, rows);
    op.parameters = op.active_parameters = parameters;
    op.stored_bytes = parameters > 0.0 ? weight_bytes(Role::norm, parameters, 1.0) : 0.0;
    op.weight_bytes = Form(op.stored_bytes);
    op.activation_bytes = Form(stream_bytes(2.0 * elements), rows);
    op.extent.read = op.extent.written = elements;
    op.formula = "F12";
    op.shape = "[" + slot(rows) + " x " + number(elements) + "]";
    op.flops_text = times(times(number(flops), slot(rows)), number(elements));
    return op;
}

Operator& Lowering::elementwise(std::string_view name, double flops, double read, double written, int rows, Kind kind) {
    Operator& op = add(name, kind, group_);
    op.flops = Form(flops, rows);
    op.activation_bytes = Form(stream_bytes(read + written), rows);
    note_width(stream_bytes(read + written));
    op.extent.read = read;
    op.extent.written = written;
    op.formula = "F13";
    op.shape = "[" + slot(rows) + " x " + number(read) + "] -> [" + slot(rows) + " x " + number(written) + "]";
    op.flops_text = times(number(flops), slot(rows));
    return op;
}

Operator& Lowering::core(const Core& c) {
    Operator& op = add(c.name, Kind::attention, Group::attention);
    const int pair = pairs(c.reach, c.who);
    const int key = keys(c.reach, c.who);
    const int rows = tokens(c.who);
    op.engine = Engine::matrix;
    op.type = types_.attention;
    op.flops =
        Form(2.0 * c.heads * (c.key_dim + c.value_dim), pair);  // F15: Q K^T and P V; causal, so pairs and not n x n
    op.cache_bytes = Form(c.entry_bytes, key);
    op.activation_bytes = Form(stream_bytes(c.heads * (c.key_dim + c.value_dim)), rows);
    note_width(stream_bytes(c.heads * (c.key_dim + c.value_dim)));
    op.extent = {.pattern = c.latent ? Pattern::latent : Pattern::attention,
                 .weights = attention_label(c.key_dim),
                 .keys = key,
                 .window = c.reach.local && c.reach.top != Reach::everything ? c.reach.top : 0.0,
                 .chosen = c.reach.chooses() ? c.reach.top : 0.0,
                 .heads = c.heads,
                 .kv_heads = c.kv_heads > 0.0 ? c.kv_heads : 1.0,
                 .key_dim = c.key_dim,
                 .value_dim = c.value_dim};
    op.formula = c.formula;
    op.shape = number(c.heads) + " heads, keys of " + number(c.key_dim) + ", values of " + number(c.value_dim) + ", " +
               describe(c.reach);
    op.flops_text =
        "2 x " + number(c.heads) + " x (" + number(c.key_dim) + " + " + number(c.value_dim) + ") x " + slot(pair);
    op.bytes_text = slot(key) + " cached entries x " + number(c.entry_bytes) + " B";
    return op;
}

Operator& Lowering::unfused_core(const Core& c) {
    // F16: the scores are a full rectangle per head, written, normalised and read again; masked pairs are computed too.
    const int cells = rectangle(c.reach, c.who);
    const int key = keys(c.reach, c.who);
    const int rows = tokens(c.who);
    const double score = stream_bytes(c.heads);
    lowered_.score_bytes = std::max(lowered_.score_bytes, score);
    const double key_share = c.key_dim / (c.key_dim + c.value_dim);
    // Each product is a kernel of the shape of the fused one, with half of its keys and values to read: taken for a
    // mere stream of bytes it would start and run faster than the fused kernel ever does.
    const auto half = [&](double key_dim, double value_dim) {
        return Extent{.pattern = Pattern::attention,
                      .weights = attention_label(c.key_dim),
                      .keys = key,
                      .window = c.reach.local && c.reach.top != Reach::everything ? c.reach.top : 0.0,
                      .heads = c.heads,
                      .kv_heads = c.kv_heads > 0.0 ? c.kv_heads : 1.0,
                      .key_dim = key_dim,
                      .value_dim = value_dim};
    };

    Operator& scores = add("scores", Kind::gemm, Group::attention);
    scores.engine = Engine::matrix;
    scores.type = types_.attention;
    scores.flops = Form(2.0 * c.heads * c.key_dim, cells);
    scores.cache_bytes = Form(c.entry_bytes * key_share, key);
    scores.activation_bytes = Form(stream_bytes(c.heads * c.key_dim), rows).add(score, cells);
    scores.extent = half(c.key_dim, 0.0);
    scores.formula = "F16";
    scores.shape = number(c.heads) + " heads: [" + slot(rows) + " x " + number(c.key_dim) + "] x keys";
    scores.flops_text = "2 x " + number(c.heads) + " x " + number(c.key_dim) + " x " + slot(cells);

    Operator& softmax = add("softmax", Kind::elementwise, Group::attention);
    softmax.flops = Form(5.0 * c.heads, cells);
    softmax.activation_bytes = Form(2.0 * score, cells);
    softmax.formula = "F16";
    softmax.shape = number(c.heads) + " heads x tokens x positions";
    softmax.flops_text = "5 x " + number(c.heads) + " x " + slot(cells);

    Operator& values = add("values", Kind::gemm, Group::attention);
    values.engine = Engine::matrix;
    values.type = types_.attention;
    values.flops = Form(2.0 * c.heads * c.value_dim, cells);
    values.cache_bytes = Form(c.entry_bytes * (1.0 - key_share), key);
    values.activation_bytes = Form(stream_bytes(c.heads * c.value_dim), rows).add(score, cells);
    values.extent = half(0.0, c.value_dim);
    values.formula = "F16";
    values.shape = number(c.heads) + " heads: scores x values of " + number(c.value_dim);
    values.flops_text = "2 x " + number(c.heads) + " x " + number(c.value_dim) + " x " + slot(cells);
    return values;
}

Operator& Lowering::cache_write(std::string_view name, double elements, double bytes, int rows) {
    Operator& op = add(name, Kind::copy, Group::attention);
    op.cache_bytes = Form(bytes, rows);
    op.activation_bytes = Form(stream_bytes(elements), rows);
    op.extent.read = op.extent.written = elements;
    op.formula = "F17";
    op.shape = "[" + slot(rows) + " x " + number(elements) + "] into the cache";
    op.flops_text = "0";
    op.bytes_text = slot(rows) + " x " + number(bytes) + " B";
    return op;
}

Operator& Lowering::scan(const Scan& s) {
    Operator& op = add(s.name, Kind::scan, Group::attention);
    op.engine = s.engine;
    op.type = s.engine == Engine::matrix ? types_.attention : DType::fp32;
    op.flops = s.flops;
    op.cache_bytes = Form(2.0 * s.state_bytes, sequences(s.who));
    op.activation_bytes = Form(stream_bytes(s.moved), tokens(s.who));
    op.extent = {.pattern = Pattern::scan,
                 .weights = std::string(name(op.type)),
                 .heads = s.heads,
                 .key_dim = s.key_dim,
                 .value_dim = s.value_dim};
    op.formula = s.formula;
    op.shape = "state of " + number(s.state_bytes) + " B per sequence";
    op.flops_text = s.flops_text;
    op.bytes_text = "2 x " + slot(sequences(s.who)) + " x " + number(s.state_bytes) + " B of state";
    return op;
}

void Lowering::attach(Operator& op, double parameters, Role role) {
    const double bytes = weight_bytes(role, parameters, 1.0);
    op.role = role;
    op.parameters += parameters;
    op.active_parameters += parameters;
    op.stored_bytes += bytes;
    op.weight_bytes.constant += bytes;
}

void Lowering::communicate(std::string_view name, Collective collective, const RankGroup& ranks, double bytes_per_row,
                           int rows) {
    if (ranks.ranks <= 1.0) return;
    Operator& op = add(name, Kind::collective, Group::communication);
    op.message_bytes = Form(bytes_per_row, rows);
    op.extent = {.pattern = Pattern::collective,
                 .weights = std::string(roofline::name(types_.stream)),
                 .collective = collective,
                 .ranks = ranks};
    op.formula = "F35";
    op.shape = std::string(roofline::name(collective)) + " over " + number(ranks.ranks) + " devices";
    if (ranks.nodes > 1.0) op.shape += " in " + number(ranks.nodes) + " nodes";
    op.flops_text = "0";
    op.bytes_text = "message of " + slot(rows) + " x " + number(bytes_per_row) + " B";
}

void Lowering::keep(std::string_view name, double bytes_per_entry, const Reach& reach, double bytes_per_sequence) {
    lowered_.caches.push_back({.name = prefix_ + "." + std::string(name),
                               .layers = static_cast<double>(group_layers_.size()),
                               .bytes_per_entry = bytes_per_entry / deployment().context,
                               .reach = reach,
                               .bytes_per_sequence = bytes_per_sequence});
}

}  // namespace roofline::model
