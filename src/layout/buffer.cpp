#include "src/layout/buffer.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <string_view>
#include <unordered_set>

#include "src/errors.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"

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
    throw UsageError("parameter " + in_quotes(parameter.name) + " is " + shape_text(shape.rows, shape.cols) +
                     ", but a matrix has at least 1 row and 1 column; leave it out or give it a shape");
  }
  if (shape.rows > kMostElements / shape.cols) {
    throw UsageError("parameter " + in_quotes(parameter.name) + " is " + shape_text(shape.rows, shape.cols) +
                     ", more elements than a layout can count; try a smaller shape");
  }
}

void require_distinct_names(const std::vector<Parameter>& parameters) {
  std::unordered_set<std::string_view> names;
  for (const Parameter& parameter : parameters) {
    if (names.insert(parameter.name).second) continue;
    throw UsageError("two parameters are named " + in_quotes(parameter.name) +
                     ", but a layout tells them apart by name; give each its own");
  }
}

void require_owners(const std::vector<int>& owners, std::size_t parameters, int dp) {
  if (owners.size() != parameters) {
    throw UsageError(std::to_string(owners.size()) + " owners were given for " + std::to_string(parameters) +
                     " parameters; give each parameter one, or none at all for a balanced choice");
  }
  for (const int owner : owners) {
    if (owner >= 0 && owner < dp) continue;
    throw UsageError("DP rank " + std::to_string(owner) + " can't own a parameter on dp " + std::to_string(dp) +
                     "; its ranks are 0 to " + std::to_string(dp - 1));
  }
}

// Lays parameters one after the other into a buffer, and closes a bucket as soon as it is full.
class BufferPlanner {
 public:
  // `owners`: of the parameters that the layout is planned from; looked at with Ownership::matrices alone.
  BufferPlanner(Buffer& buffer, const Grid& grid, const LayoutOptions& options, const std::vector<int>& owners)
      : buffer_(buffer), dp_(grid.dp()), options_(options), owners_(owners) {}

  void lay(DistMeta meta) {
    meta.bucket_idx = static_cast<int>(buffer_.buckets.size());
    elements_ += meta.shape.size();
    open_.push_back(static_cast<int>(buffer_.parameters.size()));
    place(meta);
    buffer_.parameters.push_back(std::move(meta));
    if (options_.bucket_capacity > 0 && end_ - bucket_begin_ >= options_.bucket_capacity) close_bucket();
  }

  void finish() {
    if (!open_.empty()) close_bucket();
    // The last parameter may have closed its bucket before it was known to be the last.
    if (options_.ownership == Ownership::buffer && !buffer_.buckets.empty()) {
      end_ = align_up(end_, std::lcm(dp_, options_.bucket_alignment));
      buffer_.buckets.back().range.end = end_;
    }
    buffer_.size = end_;
    buffer_.padding = end_ - elements_;
    for (Bucket& bucket : buffer_.buckets) bucket.cuts = cuts_of(bucket);
  }

 private:
  // Places a parameter behind all that were placed.
  void place(DistMeta& meta) {
    const Index begin = align_up(end_, options_.parameter_alignment);
    end_ = begin + meta.shape.size();
    if (end_ > kMostElements) {
      throw UsageError("the buffer of parameter group " + std::to_string(buffer_.group) +
                       " has more elements than a layout can count; try smaller shapes or more groups");
    }
    meta.global_range = {begin, end_};
  }

  // Pads the bucket so that it can be cut as the policy wants it. The next bucket begins where the padding ends.
  void close_bucket() {
    if (options_.ownership == Ownership::matrices) lay_by_owner();
    const Index multiple =
        options_.ownership == Ownership::buckets ? std::lcm(dp_, options_.bucket_alignment) : options_.bucket_alignment;
    end_ = bucket_begin_ + align_up(end_ - bucket_begin_, multiple);
    buffer_.buckets.push_back({{bucket_begin_, end_}, std::move(open_), {}});
    open_.clear();
    bucket_begin_ = end_;
  }

  // Lays the parameters of the open bucket anew, so that those of one owner lie together, in the order of the ranks.
  void lay_by_owner() {
    const auto first = buffer_.parameters.begin() + open_.front();
    std::stable_sort(first, buffer_.parameters.end(), [this](const DistMeta& a, const DistMeta& b) {
      return owners_[a.parameter] < owners_[b.parameter];
    });
    end_ = bucket_begin_;
    for (auto meta = first; meta != buffer_.parameters.end(); ++meta) place(*meta);
  }

  // Where the ranges of the DP ranks begin in a bucket, and where the last one ends.
  std::vector<Index> cuts_of(const Bucket& bucket) const {
    std::vector<Index> cuts(static_cast<std::size_t>(dp_) + 1);
    std::size_t next = 0;  // the first parameter that belongs to rank r or to one behind it
    for (Index r = 0; r <= dp_; ++r) {
      Index& cut = cuts[static_cast<std::size_t>(r)];
      switch (options_.ownership) {
        case Ownership::buckets:
          cut = bucket.range.begin + bucket.range.size() / dp_ * r;
          break;
        case Ownership::buffer:
          cut = std::clamp(buffer_.size / dp_ * r, bucket.range.begin, bucket.range.end);
          break;
        case Ownership::matrices:
          while (next < bucket.parameters.size() && owner(bucket.parameters[next]) < r) ++next;
          // Padding belongs to the parameter before it, and at the bucket's begin to the first one.
          cut = next == 0                          ? bucket.range.begin
                : next == bucket.parameters.size() ? bucket.range.end
                                                   : buffer_.parameters[bucket.parameters[next]].global_range.begin;
          break;
      }
    }
    return cuts;
  }
  int owner(int index) const { return owners_[buffer_.parameters[index].parameter]; }

  Buffer& buffer_;
  const Index dp_;
  const LayoutOptions& options_;
  const std::vector<int>& owners_;
  Index end_ = 0;
  Index bucket_begin_ = 0;
  Index elements_ = 0;     // of parameters, padding not counted
  std::vector<int> open_;  // the parameters of the bucket that is being filled
};

}  // namespace

const char* ownership_name(Ownership ownership) {
  return ownership == Ownership::buckets ? "buckets" : ownership == Ownership::buffer ? "buffer" : "matrices";
}

Ownership parse_ownership(const std::string& word) {
  for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices})
    if (word == ownership_name(ownership)) return ownership;
  throw UsageError(
      "--ownership " + as_typed(word) +
      " is not known; it takes buckets (an equal part of every bucket), buffer (an equal part of the whole "
      "buffer) or matrices (whole matrices)");
}

std::vector<int> balanced_owners(const std::vector<Parameter>& parameters, int dp, Load load) {
  std::vector<double> loads;
  for (const Parameter& each : parameters)
    loads.push_back(load == Load::work ? newton_schulz_flops(each.shape.rows, each.shape.cols)
                                       : static_cast<double>(each.shape.size()));
  std::vector<int> order(parameters.size()), owners(parameters.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&loads](int a, int b) { return loads[a] > loads[b]; });

  using Loaded = std::pair<double, int>;  // what a rank has so far, and its number
  std::priority_queue<Loaded, std::vector<Loaded>, std::greater<Loaded>> ranks;
  for (int rank = 0; rank < dp; ++rank) ranks.push({0.0, rank});
  for (const int p : order) {
    const auto [so_far, rank] = ranks.top();
    ranks.pop();
    owners[p] = rank;
    ranks.push({so_far + loads[p], rank});
  }
  return owners;
}

std::vector<int> round_robin_owners(const std::vector<Parameter>& parameters, int dp) {
  std::vector<int> owners;
  for (std::size_t p = 0; p < parameters.size(); ++p) owners.push_back(static_cast<int>(p) % dp);
  return owners;
}

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

  std::vector<int> owners = options.owners;
  if (options.ownership == Ownership::matrices && owners.empty()) owners = balanced_owners(parameters, grid.dp());
  if (!owners.empty()) require_owners(owners, parameters.size(), grid.dp());

  Layout layout;
  layout.grid = grid;
  layout.options = options;
  for (auto& [group, metas] : groups) {
    Buffer buffer;
    buffer.group = group;
    BufferPlanner planner(buffer, grid, options, owners);
    for (DistMeta& meta : metas) {
      meta.buffer_idx = static_cast<int>(layout.buffers.size());
      planner.lay(std::move(meta));
    }
    planner.finish();
    layout.buffers.push_back(std::move(buffer));
  }
  return layout;
}

Layout Layout::of_group(int group) const {
  Layout part{grid, options, {}};
  for (const Buffer& buffer : buffers)
    if (buffer.group == group) part.buffers.push_back(buffer);
  for (Buffer& buffer : part.buffers)
    for (DistMeta& meta : buffer.parameters) meta.buffer_idx = 0;
  return part;
}

std::vector<BucketNumber> Layout::all_buckets() const {
  std::vector<BucketNumber> all;
  for (const Buffer& buffer : buffers)
    for (int k = 0; k < static_cast<int>(buffer.buckets.size()); ++k)
      all.push_back({static_cast<int>(&buffer - buffers.data()), k});
  return all;
}

Range Layout::dp_slice(int buffer_idx, int bucket_idx, int dp_rank) const {
  if (dp_rank < 0 || dp_rank >= grid.dp()) {
    throw std::out_of_range("DP rank " + std::to_string(dp_rank) + " is not in 0.." + std::to_string(grid.dp() - 1));
  }
  const std::vector<Index>& cuts = buffers.at(buffer_idx).buckets.at(bucket_idx).cuts;
  return {cuts.at(dp_rank), cuts.at(dp_rank + 1)};
}

std::vector<Index> Layout::dp_counts(int buffer_idx, int bucket_idx) const {
  const std::vector<Index>& cuts = buffers.at(buffer_idx).buckets.at(bucket_idx).cuts;
  std::vector<Index> counts;
  for (std::size_t r = 1; r < cuts.size(); ++r) counts.push_back(cuts[r] - cuts[r - 1]);
  return counts;
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

std::vector<std::reference_wrapper<const DistMeta>> Layout::parameters() const {
  std::vector<std::reference_wrapper<const DistMeta>> all;
  for (const Buffer& buffer : buffers) all.insert(all.end(), buffer.parameters.begin(), buffer.parameters.end());
  return all;
}

const DistMeta& Layout::meta(int parameter) const {
  for (const Buffer& buffer : buffers)
    for (const DistMeta& meta : buffer.parameters)
      if (meta.parameter == parameter) return meta;
  throw std::out_of_range("the layout has no parameter number " + std::to_string(parameter));
}

const DistMeta& Layout::meta(const std::string& parameter) const {
  for (const Buffer& buffer : buffers)
    for (const DistMeta& meta : buffer.parameters)
      if (meta.name == parameter) return meta;
  throw std::out_of_range("the layout has no parameter \"" + parameter + "\"");
}

std::vector<int> Layout::owners(const DistMeta& meta) const {
  const std::vector<Index>& cuts = buffers.at(meta.buffer_idx).buckets.at(meta.bucket_idx).cuts;
  std::vector<int> ranks;
  for (auto end = std::upper_bound(cuts.begin(), cuts.end(), meta.global_range.begin); end != cuts.end(); ++end) {
    if (end[-1] >= meta.global_range.end) break;
    if (*end > end[-1]) ranks.push_back(static_cast<int>(end - cuts.begin()) - 1);
  }
  return ranks;
}

std::vector<int> Layout::owned_parameters(int buffer_idx, int bucket_idx, int dp_rank) const {
  const Range own = dp_slice(buffer_idx, bucket_idx, dp_rank);
  if (own.empty()) return {};
  const Buffer& buffer = buffers[static_cast<std::size_t>(buffer_idx)];
  const std::vector<int>& all = buffer.buckets[static_cast<std::size_t>(bucket_idx)].parameters;
  // They lie in the order of their ranges: first those that end before mine begins, at last those that begin behind it.
  const auto first = std::partition_point(all.begin(), all.end(), [&](int index) {
    return buffer.parameters[static_cast<std::size_t>(index)].global_range.end <= own.begin;
  });
  const auto last = std::partition_point(first, all.end(), [&](int index) {
    return buffer.parameters[static_cast<std::size_t>(index)].global_range.begin < own.end;
  });
  return std::vector<int>(first, last);
}

Index Layout::shard_elements(int dp_rank) const {
  Index elements = 0;
  for (const auto& [b, k] : all_buckets()) elements += dp_slice(b, k, dp_rank).size();
  return elements;
}

std::map<std::string, std::string> Layout::short_names(int most) const {
  std::vector<std::string> names;
  for (const DistMeta& meta : parameters()) names.push_back(meta.name);
  return muonwalk::short_names(names, most);
}

std::string Layout::text() const {
  constexpr int kNameWidth = 22;  // what is left of 100 columns beside numbers of seven digits
  Table table({{"parameter"},
               {"full shape"},
               {"TP cuts"},
               {"TP slice"},
               {"buffer"},
               {"bucket"},
               {"global range"},
               {"DP ranks"}});
  const std::map<std::string, std::string> names = short_names(kNameWidth);
  for (const DistMeta& meta : parameters()) {
    const std::vector<int> ranks = owners(meta);
    table.row({names.at(meta.name), shape_text(meta.full_shape.rows, meta.full_shape.cols),
               split_name(meta.tp_split_dim), shape_text(meta.shape.rows, meta.shape.cols),
               std::to_string(meta.buffer_idx), std::to_string(meta.bucket_idx), range_text(meta.global_range),
               // Owners are neighbours, since a parameter is one contiguous range of its bucket.
               range_text({ranks.front(), ranks.back() + 1})});
  }
  return table.text() + "\n";
}

}  // namespace muonwalk
