// For arithmetic that kernels share with the host, where it can be tested.
#pragma once

#ifdef __CUDACC__
#define ROOFLINE_BOTH __host__ __device__
#else
#define ROOFLINE_BOTH
#endif
