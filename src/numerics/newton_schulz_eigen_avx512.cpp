// Newton–Schulz in Eigen's words once more, for processors with AVX-512. Here Eigen's namespace has another name: a
// linker keeps one instance of each template, and must not give the other file this one's.
#ifdef __AVX512F__
#define Eigen Eigen_avx512
#define EIGEN_CODE eigen_code_avx512
#define EIGEN_CODE_NAME "avx512"
#include "newton_schulz_eigen.cpp"
#endif
