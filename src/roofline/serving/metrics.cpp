#include "roofline/serving/metrics.hpp"

namespace roofline::serving {

Metrics metrics(const Flow& flow, double tpot, const Economy& economy) {
    Metrics result;
    result.requests_per_second = flow.requests;
    result.output_tokens_per_second = flow.output_tokens;
    result.total_tokens_per_second = flow.output_tokens + flow.prompt_tokens;
    result.output_tokens_per_second_per_user = tpot > 0.0 ? 1.0 / tpot : 0.0;
    result.output_tokens_per_second_per_device = flow.output_tokens / economy.devices;
    if (economy.peak_flops && *economy.peak_flops > 0.0) result.mfu = flow.flops / *economy.peak_flops;
    if (economy.peak_bandwidth && *economy.peak_bandwidth > 0.0) {
        result.mbu = flow.memory_bytes / *economy.peak_bandwidth;
    }
    if (economy.watts && flow.output_tokens > 0.0) result.joules_per_output_token = *economy.watts / flow.output_tokens;
    if (economy.price_per_device_hour) {
        const double per_second = *economy.price_per_device_hour * economy.devices / 3600.0;
        if (flow.output_tokens > 0.0) result.price_per_million_output_tokens = 1e6 * per_second / flow.output_tokens;
        if (result.total_tokens_per_second > 0.0) {
            result.price_per_million_tokens = 1e6 * per_second / result.total_tokens_per_second;
        }
    }
    return result;
}

}  // namespace roofline::serving
