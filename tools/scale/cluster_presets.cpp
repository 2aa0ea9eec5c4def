#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "tools/scale/cluster.hpp"
#include "tools/scale/cluster_file.hpp"
#include "tools/scale/machine_costs.hpp"

namespace muonwalk::sim {
namespace {

constexpr double kMicrosecond = 1e-6;
constexpr int kGpusOfANode = 8;

// What NCCL itself counts for a step of a ring in its protocol for large messages, "Simple".
constexpr double kNvlinkHop = 3.4, kPcieHop = 5.7, kNetworkHop = 14;
const std::string kHops = "latency: NCCL, src/graph/tuning.cc, a hop of a ring in the protocol Simple";

// The data sheet of an accelerator; NVIDIA's "GB" of memory are GiB.
Accelerator accelerator(const char* name, double teraflops, double gibibytes, double gigabytes_per_second,
                        const char* source) {
  Accelerator result;
  result.name = name;
  result.flops_per_second = teraflops * 1e12;
  result.memory_bytes = gibibytes * kGibibyte;
  result.memory_bytes_per_second = gigabytes_per_second * kGigabyte;
  result.source = source;
  return result;
}

NetworkLevel level(const char* name, int accelerators, double gigabytes_per_second, double microseconds,
                   const std::string& source) {
  NetworkLevel result;
  result.name = name;
  result.accelerators = accelerators;
  result.bytes_per_second = gigabytes_per_second * kGigabyte;
  result.latency_seconds = microseconds * kMicrosecond;
  result.source = source;
  return result;
}

MeasuredCurve bandwidth(const char* collective, const char* level, std::vector<MeasuredCurve::Point> gigabytes,
                        const char* source) {
  for (MeasuredCurve::Point& point : gigabytes) point.value *= kGigabyte;
  return bandwidth_curve(collective, level, std::move(gigabytes), source);
}

// What products reach of the peak of a later GPU is not published as a curve: Calculon takes the A100's for the H100,
// and so it is taken here for what came after, too.
Accelerator with_products_of_a100(Accelerator result) {
  result.product_efficiency = efficiency_curve(
      {{1e9, 0.6}, {16e9, 0.9}, {128e9, 0.95}},
      "Calculon, systems/h100_80g_nvl8.json (calculon-ai), where the A100's curve stands for the H100's; supposed");
  return result;
}

Accelerator h100() {
  return with_products_of_a100(accelerator("H100", 989, 80, 3350, "NVIDIA H100 SXM data sheet, bf16 without sparsity"));
}

NetworkLevel nvlink_4() {
  return level("NVLink 4", kGpusOfANode, 18 * 20.6, kNvlinkHop,
               "bandwidth: 18 links of 20.6 GB/s, NCCL, src/graph/topo.h; " + kHops);
}

NetworkLevel ndr() {
  return level("InfiniBand NDR", 0, 48.5, kNetworkHop,
               "bandwidth: of 50 GB/s, what SimAI's calbusbw.h has for ConnectX-7, an adapter per GPU; " + kHops);
}

// Selene, on which Megatron-LM's published step times were measured.
Cluster a100_selene() {
  Accelerator a100 = accelerator("A100", 312, 80, 2039, "NVIDIA A100 80GB SXM data sheet, bf16 without sparsity");
  // Below its first point Calculon goes down to 0.1 in one step; here a reading is marked as outside instead.
  a100.product_efficiency =
      efficiency_curve({{1e9, 0.6}, {16e9, 0.9}, {128e9, 0.95}}, "Calculon, systems/a100_80g.json (calculon-ai)");
  return {"a100-selene",
          a100,
          {level("NVLink 3", kGpusOfANode, 12 * 20.0, kNvlinkHop,
                 "bandwidth: 12 links of 20.0 GB/s, NCCL, src/graph/topo.h; " + kHops),
           level("InfiniBand HDR", 0, 23.5, kNetworkHop,
                 "bandwidth: of 25 GB/s, what SimAI's calbusbw.h has for ConnectX-6, an adapter per GPU; " + kHops)}};
}

// The cluster of the Ultra-Scale Playbook.
Cluster h100_efa() {
  constexpr char kSource[] =
      "The Ultra-Scale Playbook (Hugging Face, 2025), pp_comm_bandwidth, medians, 256 MB, all 8 GPUs of a node; that "
      "it "
      "is bus bandwidth is derived: as algorithm bandwidth, one node would exceed its NVLink";
  NetworkLevel nvlink = nvlink_4();
  nvlink.all_reduce = bandwidth("an all-reduce", "NVLink 4", {{8, 436.0}}, kSource);
  nvlink.all_gather = bandwidth("an all-gather", "NVLink 4", {{8, 249.8}}, kSource);
  NetworkLevel efa = level(
      "EFA", 0, 361.7 / kGpusOfANode, kNetworkHop,
      "bandwidth: an eighth of the all-reduce over two nodes, per GPU; " + kHops + ", which was not measured on EFA");
  efa.all_reduce = bandwidth("an all-reduce", "EFA",
                             {{2, 361.7}, {4, 160.1}, {8, 99.6}, {16, 84.7}, {32, 64.9}, {64, 32.9}}, kSource);
  efa.all_gather = bandwidth("an all-gather", "EFA",
                             {{2, 184.6}, {4, 119.0}, {8, 69.0}, {16, 55.0}, {32, 28.0}, {64, 11.0}}, kSource);
  return {"h100-efa", h100(), {nvlink, efa}};
}

Cluster h100_ndr() { return {"h100-ndr", h100(), {nvlink_4(), ndr()}}; }

Cluster h200_ndr() {
  return {
      "h200-ndr",
      with_products_of_a100(accelerator("H200", 989, 141, 4800, "NVIDIA H200 SXM data sheet, bf16 without sparsity")),
      {nvlink_4(), ndr()}};
}

Cluster gb300_nvl72() {
  return {"gb300-nvl72",
          with_products_of_a100(accelerator(
              "GB300", 2500, 279, 8000,
              "verda.com, \"NVIDIA GB300 NVL72: GPU Architecture & Performance\": bf16 without sparsity, 279 GB, "
              "8 TB/s")),
          {level("NVLink 5", 72, 18 * 40.1, kNvlinkHop,
                 "bandwidth: 18 links of 40.1 GB/s, NCCL, src/graph/topo.h; latency: as over NVLink 4, not measured"),
           level("ConnectX-8", 0, 97, kNetworkHop,
                 "bandwidth: twice what is reached over NDR, as 72 adapters of 800 Gbit/s serve 72 GPUs "
                 "(glennklockwood.com, \"B300\"); latency: as over NDR, not measured")}};
}

Cluster rtx4090_100gbe() {
  return {"rtx4090-100gbe",
          accelerator("RTX 4090", 165, 24, 1008, "NVIDIA Ada whitepaper, bf16 without sparsity, sums in fp32"),
          {level("PCIe 4.0 x16", kGpusOfANode, 2 * 12.0, kPcieHop,
                 "bandwidth: twice that of PCIe 3.0, NCCL, src/graph/topo.h; " + kHops),
           level("100 Gb Ethernet", 0, 12.0 / kGpusOfANode, kNetworkHop,
                 "bandwidth: 12.0 GB/s, NCCL, src/graph/topo.h, of one adapter for the 8 GPUs of a node; " + kHops)}};
}

Cluster epyc_vm() { return cluster_of_machines(epyc_vm_costs()); }

struct Preset {
  const char* name;
  Cluster (*make)();
};

constexpr Preset kPresets[] = {{"a100-selene", a100_selene}, {"h100-efa", h100_efa},
                               {"h100-ndr", h100_ndr},       {"h200-ndr", h200_ndr},
                               {"gb300-nvl72", gb300_nvl72}, {"rtx4090-100gbe", rtx4090_100gbe},
                               {"epyc-vm", epyc_vm}};

}  // namespace

std::vector<std::string> cluster_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

Cluster cluster_of(const std::string& name) {
  constexpr char kEnding[] = ".json";
  constexpr std::size_t kLength = sizeof kEnding - 1;
  if (name.size() >= kLength && name.compare(name.size() - kLength, kLength, kEnding) == 0) {
    const JsonFile file = read_json_file("cluster file", name);
    return file.root.contains("transports") ? cluster_of_machines(machine_costs_from(file)) : cluster_from(file);
  }
  for (const Preset& preset : kPresets)
    if (name == preset.name) return preset.make();
  throw UsageError(fmt::format("no cluster is called {}; take {}, or a file that ends in .json", in_quotes(name),
                               fmt::join(cluster_names(), ", ")));
}

}  // namespace muonwalk::sim
