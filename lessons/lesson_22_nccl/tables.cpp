#include "lessons/lesson_22_nccl/tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/text/table.hpp"

namespace muonwalk::sim {
namespace {

void add(Crossed& to, const Crossed& more) {
  to.to_device += more.to_device;
  to.to_host += more.to_host;
}

void add(PhaseCrossing& to, const PhaseCrossing& more) {
  to.sent += more.sent;
  add(to.staged, more.staged);
  add(to.resident, more.resident);
}

Index both_ways(const Crossed& crossed) { return crossed.to_device + crossed.to_host; }

}  // namespace

std::vector<PhaseCrossing> summed_by_phase(const std::vector<PhaseCrossing>& entries) {
  std::vector<PhaseCrossing> phases;
  for (const PhaseCrossing& entry : entries) {
    const auto same = [&](const PhaseCrossing& each) { return each.phase == entry.phase; };
    const auto known = std::find_if(phases.begin(), phases.end(), same);
    if (known == phases.end())
      phases.push_back(entry);
    else
      add(*known, entry);
  }
  return phases;
}

PhaseCrossing total(const std::vector<PhaseCrossing>& phases) {
  PhaseCrossing sum{"all"};
  for (const PhaseCrossing& phase : phases) add(sum, phase);
  return sum;
}

Crossed crossed_in(const std::vector<PhaseWork>& noted) {
  Crossed crossed;
  for (const PhaseWork& work : noted) add(crossed, {work.to_device, work.to_host});
  return crossed;
}

Matrix elements_of(const Crossed& crossed, int times) {
  Matrix elements(1, 2);
  elements(0, 0) = static_cast<float>(times * crossed.to_device / Index{sizeof(float)});
  elements(0, 1) = static_cast<float>(times * crossed.to_host / Index{sizeof(double)});
  return elements;
}

std::string crossing_text(const std::vector<PhaseCrossing>& phases) {
  Table table({{"predicted, for rank 0"},
               {"to other ranks", bytes_text},
               {"host–GPU, arrays on host", bytes_text},
               {"host–GPU, arrays on GPU", bytes_text}});
  const auto row = [&](const PhaseCrossing& phase) {
    table.row({std::string(phase.phase), phase.sent, both_ways(phase.staged), both_ways(phase.resident)});
  };
  for (const PhaseCrossing& phase : phases)
    if (phase.sent + phase.staged.to_host + phase.resident.to_device > 0) row(phase);
  row(total(phases));
  return table.text();
}

std::vector<std::string> work_lines(const std::vector<PhaseWork>& noted) {
  if (std::all_of(noted.begin(), noted.end(), [](const PhaseWork& work) { return work.queues.empty(); }))
    return {"nothing: on the host, a call returns when it is done"};
  Table table({{"phase"},
               {"kernels", number_text},
               {"copies", number_text},
               {"NCCL", number_text},
               {"waits", number_text},
               {"host–GPU", bytes_text},
               {"  queued on"}});
  for (const PhaseWork& work : noted)
    table.row({work.phase.substr(0, work.phase.find(" of ")), work.kernels, work.copies, work.library_calls,
               work.host_waits, work.to_device + work.to_host, fmt::format("  {}", fmt::join(work.queues, ", "))});
  return table.lines();
}

std::string who_computes(bool on_gpus) {
  return on_gpus ? "Every rank has a GPU, in whose memory its arrays lie: whose it is, CUDA's driver said.\n"
                 : "No GPU takes part in this run: arrays lie in the host's memory, and the host computes. With\n"
                   "--transport nccl, and a GPU for each rank, the same steps run on GPUs.\n";
}

}  // namespace muonwalk::sim
