#define CHAIN_KERNEL chain_kernel_avx512
#define CHAIN_KERNEL_NAME "avx512"
#include "src/numerics/chain_kernel_x86.inc"
