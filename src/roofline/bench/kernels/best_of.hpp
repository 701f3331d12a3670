// Plain loops for whatever processor there is.
#pragma once

namespace roofline::bench {

/// One text, compiled for every instruction set; the best that this processor has is chosen when the program runs.
template <auto text, class... Given>
auto plainly(Given... given) {
    return text(given...);
}
#if defined(__x86_64__)
template <auto text, class... Given>
__attribute__((target("avx2,fma"))) auto with_avx2(Given... given) {
    return text(given...);
}
template <auto text, class... Given>
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma,prefer-vector-width=512"))) auto with_avx512(
    Given... given) {
    return text(given...);
}
#endif
template <auto text, class... Given>
auto best_of() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return with_avx512<text, Given...>;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return with_avx2<text, Given...>;
#endif
    return plainly<text, Given...>;
}

}  // namespace roofline::bench
