// What there is of NCCL in a program that was built without CUDA: the sentence that says so.

#include "sim/transport/nccl_device.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

[[noreturn]] void refuse() {
  throw UsageError(
      "--transport nccl needs a program that was built with CUDA, and this one was not; configure with "
      "-DMUONWALK_CUDA=ON, or use --transport gloo");
}

}  // namespace

struct NcclDevice::State {};

void require_nccl(int, bool) { refuse(); }
NcclDevice::NcclDevice(int, const std::string&) { refuse(); }
NcclDevice::~NcclDevice() = default;
int NcclDevice::ordinal() const { refuse(); }
ChainEngine NcclDevice::chain_engine() const { refuse(); }
std::unique_ptr<Backend> NcclDevice::connect(const std::string&, int, int, KeyStore&, std::unique_ptr<Backend>,
                                             std::chrono::milliseconds) {
  refuse();
}

}  // namespace muonwalk::sim
