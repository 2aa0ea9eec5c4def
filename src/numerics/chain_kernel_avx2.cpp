#define CHAIN_KERNEL chain_kernel_avx2
#define CHAIN_KERNEL_NAME "avx2"
#include "src/numerics/chain_kernel_x86.inc"
