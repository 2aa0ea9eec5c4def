#define CHAIN_KERNEL chain_kernel_avx512_bf16
#define CHAIN_KERNEL_NAME "avx512_bf16"
#include "src/numerics/chain_kernel_x86.inc"
