#define CHAIN_KERNEL chain_kernel_amx
#define CHAIN_KERNEL_NAME "amx"
#include "src/numerics/chain_kernel_x86.inc"
