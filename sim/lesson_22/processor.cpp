#include "sim/lesson_22/processor.hpp"

#include <algorithm>

#include "src/text/text.hpp"

namespace muonwalk::sim {

Array Processor::from_host(const Flat& values) {
  Array made = array(static_cast<Index>(values.size()));
  copy(made.data(), values.data(), made.size());
  wait();
  return made;
}

Flat Processor::on_host(const Array& array) {
  Flat values(static_cast<std::size_t>(array.size()));
  copy(values.data(), array.data(), array.size());
  wait();
  return values;
}

PhaseWork& Processor::entry(const std::string& phase) {
  const auto known = std::find_if(noted_.begin(), noted_.end(), [&](auto& each) { return each.phase == phase; });
  if (known != noted_.end()) return *known;
  noted_.emplace_back();
  noted_.back().phase = phase;
  return noted_.back();
}

std::vector<std::string> work_lines(const std::vector<PhaseWork>& noted) {
  if (std::all_of(noted.begin(), noted.end(), [](const PhaseWork& work) { return work.queues.empty(); }))
    return {"nothing: on the host, a call returns when it is done"};
  std::vector<std::vector<std::string>> rows = {
      {"phase", "kernels", "copies", "NCCL", "waits", "host–GPU", "  queued on"}};
  for (const PhaseWork& work : noted) {
    std::string queues;
    for (const std::string& queue : work.queues) queues += (queues.empty() ? "  " : ", ") + queue;
    rows.push_back({work.phase.substr(0, work.phase.find(" of ")), number_text(work.kernels), number_text(work.copies),
                    number_text(work.library_calls), number_text(work.host_waits),
                    bytes_text(work.to_device + work.to_host), queues});
  }
  // The last column begins at the left, as the first does: all are as wide as the widest.
  int width = 0;
  for (const auto& row : rows) width = std::max(width, text_width(row.back()));
  for (auto& row : rows) row.back() = pad_right(row.back(), width);
  std::vector<std::string> lines = table_lines(rows, 1);
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

std::string who_computes(bool on_gpus) {
  return on_gpus ? "Every rank has a GPU, in whose memory its arrays lie: whose it is, CUDA's driver said.\n"
                 : "No GPU takes part in this run: arrays lie in the host's memory, and the host computes. With\n"
                   "--transport nccl, and a GPU for each rank, the same steps run on GPUs.\n";
}

}  // namespace muonwalk::sim
