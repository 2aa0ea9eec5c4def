#include "src/layout/buffer.hpp"

#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/text/text.hpp"

namespace muonwalk {
namespace {

// Larger buffers and alignments than these are surely slips of the finger; the limits keep every sum below 2^63.
constexpr Index kMostElements = Index{1} << 48;
constexpr Index kMostAlignment = Index{1} << 30;

// The next multiple of `alignment` that is not less than `offset`.
Index align_up(Index offset, Index alignment) { return (offset + alignment - 1) / alignment * alignment; }

void require_alignment(const char* what, Index value) {
  if (value >= 1 && value <= kMostAlignment) return;
  throw UsageError(std::string("an alignment of ") + what + " to " + std::to_string(value) +
                   " elements makes no sense; try 1 for no padding, or 64 as Megatron does");
}

void require_sensible(const LayoutOptions& options) {
  require_alignment("parameters", options.parameter_alignment);
  require_alignment("buckets", options.bucket_alignment);
  if (options.bucket_capacity < 0) {
    throw UsageError("a bucket capacity of " + std::to_string(options.bucket_capacity) +
                     " elements makes no sense; try 0 for one bucket that holds all, or at least 1");
  }
}

void require_sensible(const Parameter& parameter) {
  const Shape shape = parameter.shape;
  if (shape.rows < 1 || shape.cols < 1) {
    throw UsageError("parameter \"" + parameter.name + "\" is " + shape_text(shape.rows, shape.cols) +
                     ", but a matrix has at least 1 row and 1 column; leave it out or give it a shape");
  }
  if (shape.rows > kMostElements / shape.cols) {
    throw UsageError("parameter \"" + parameter.name + "\" is " + shape_text(shape.rows, shape.cols) +
                     ", more elements than a layout can count; try a smaller shape");
  }
}

void require_distinct_names(const std::vector<Parameter>& parameters) {
  std::set<std::string> names;
  for (const Parameter& parameter : parameters) {
    if (names.insert(parameter.name).second) continue;
    throw UsageError("two parameters are named \"" + parameter.name +
                     "\", but a layout tells them apart by name; give each its own");
  }
}

// Lays parameters one after the other into a buffer, and closes a bucket as soon as it is full.
class BufferPlanner {
 public:
  BufferPlanner(Buffer& buffer, const Grid& grid, const LayoutOptions& options)
      : buffer_(buffer), options_(options), bucket_multiple_(std::lcm(Index{grid.dp()}, options.bucket_alignment)) {}

  void lay(DistMeta meta) {
    const Index begin = align_up(end_, options_.parameter_alignment);
    end_ = begin + meta.shape.size();
    if (end_ > kMostElements) {
      throw UsageError("the buffer of parameter group " + std::to_string(buffer_.group) +
                       " has more elements than a layout can count; try smaller shapes or more groups");
    }
    meta.bucket_idx = static_cast<int>(buffer_.buckets.size());
    meta.global_range = {begin, end_};
    open_.push_back(static_cast<int>(buffer_.parameters.size()));
    elements_ += meta.shape.size();
    buffer_.parameters.push_back(std::move(meta));
    if (options_.bucket_capacity > 0 && end_ - bucket_begin_ >= options_.bucket_capacity) close_bucket();
  }

  void finish() {
    if (!open_.empty()) close_bucket();
    buffer_.size = end_;
    buffer_.padding = end_ - elements_;
  }

 private:
  // Pads the bucket so that every DP rank owns an equal run of it. The next bucket begins where the padding ends.
  void close_bucket() {
    end_ = bucket_begin_ + align_up(end_ - bucket_begin_, bucket_multiple_);
    buffer_.buckets.push_back({{bucket_begin_, end_}, std::move(open_)});
    open_.clear();
    bucket_begin_ = end_;
  }

  Buffer& buffer_;
  const LayoutOptions& options_;
  const Index bucket_multiple_;
  Index end_ = 0;
  Index bucket_begin_ = 0;
  Index elements_ = 0;     // of parameters, padding not counted
  std::vector<int> open_;  // the parameters of the bucket that is being filled
};

}  // namespace

Layout plan_layout(const std::vector<Parameter>& parameters, const Grid& grid, const LayoutOptions& options) {
  require_sensible(options);
  require_distinct_names(parameters);

  std::map<int, std::vector<DistMeta>> groups;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    require_sensible(parameter);
    DistMeta meta;
    meta.name = parameter.name;
    meta.parameter = static_cast<int>(i);
    meta.full_shape = parameter.shape;
    meta.shape = tp_shape(parameter, grid.tp());
    meta.tp_split_dim = parameter.tp_split_dim;
    groups[parameter.group].push_back(std::move(meta));
  }

  Layout layout;
  layout.grid = grid;
  layout.options = options;
  for (auto& [group, metas] : groups) {
    Buffer buffer;
    buffer.group = group;
    BufferPlanner planner(buffer, grid, options);
    for (DistMeta& meta : metas) {
      meta.buffer_idx = static_cast<int>(layout.buffers.size());
      planner.lay(std::move(meta));
    }
    planner.finish();
    layout.buffers.push_back(std::move(buffer));
  }
  return layout;
}

Range Layout::dp_slice(int buffer_idx, int bucket_idx, int dp_rank) const {
  if (dp_rank < 0 || dp_rank >= grid.dp()) {
    throw std::out_of_range("DP rank " + std::to_string(dp_rank) + " is not in 0.." + std::to_string(grid.dp() - 1));
  }
  const Range bucket = buffers.at(buffer_idx).buckets.at(bucket_idx).range;
  const Index shard = bucket.size() / grid.dp();
  return {bucket.begin + shard * dp_rank, bucket.begin + shard * (dp_rank + 1)};
}

Range Layout::owned_range(const DistMeta& meta, int dp_rank) const {
  return intersection(meta.global_range, dp_slice(meta.buffer_idx, meta.bucket_idx, dp_rank));
}

Range Layout::local_range(const DistMeta& meta, int dp_rank) const {
  const Range owned = owned_range(meta, dp_rank);
  if (owned.empty()) return {0, 0};
  const Index shard_begin = dp_slice(meta.buffer_idx, meta.bucket_idx, dp_rank).begin;
  return {owned.begin - shard_begin, owned.end - shard_begin};
}

std::vector<int> Layout::owners(const DistMeta& meta) const {
  std::vector<int> ranks;
  for (int dp_rank = 0; dp_rank < grid.dp(); ++dp_rank) {
    if (!owned_range(meta, dp_rank).empty()) ranks.push_back(dp_rank);
  }
  return ranks;
}

Index Layout::shard_elements() const {
  Index elements = 0;
  for (const Buffer& buffer : buffers) elements += buffer.size / grid.dp();
  return elements;
}

std::string Layout::text() const {
  constexpr int kNameWidth = 22;  // what is left of 100 columns beside numbers of seven digits
  std::vector<std::vector<std::string>> rows = {
      {"parameter", "full shape", "TP cuts", "TP slice", "buffer", "bucket", "global range", "DP ranks"}};
  for (const Buffer& buffer : buffers) {
    for (const DistMeta& meta : buffer.parameters) {
      const std::vector<int> ranks = owners(meta);
      rows.push_back({shorten(meta.name, kNameWidth), shape_text(meta.full_shape.rows, meta.full_shape.cols),
                      split_name(meta.tp_split_dim), shape_text(meta.shape.rows, meta.shape.cols),
                      std::to_string(meta.buffer_idx), std::to_string(meta.bucket_idx), range_text(meta.global_range),
                      // Owners are neighbours, since a parameter is one run of its bucket.
                      range_text({ranks.front(), ranks.back() + 1})});
    }
  }
  return text_table(rows);
}

}  // namespace muonwalk
