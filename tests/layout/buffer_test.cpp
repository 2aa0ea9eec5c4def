#include "src/layout/buffer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/layout/expect_usage_error.hpp"
#include "tests/layout/random_layout.hpp"

using namespace muonwalk;

namespace {

// One element of a virtual buffer, as the oracle lays it.
struct Element {
  int parameter = -1;  // −1: padding
  int bucket = 0;
  int owner = 0;    // the DP rank
  Index local = 0;  // its place in the owner's shard of the bucket
};

// A bucket's parameters in the order in which they lie.
std::vector<int> in_order(const RandomLayout& description, std::vector<int> parameters) {
  if (description.options.ownership != Ownership::matrices) return parameters;
  std::vector<int> ordered;
  for (int rank = 0; rank < description.grid.dp(); ++rank)
    for (const int p : parameters)
      if (description.options.owners[p] == rank) ordered.push_back(p);
  return ordered;
}

// Where a bucket of these parameters ends that is not the last one.
Index padded_end(const RandomLayout& description, const std::vector<int>& parameters, Index bucket_begin, Index dp) {
  Index end = bucket_begin;
  for (const int p : in_order(description, parameters)) {
    while (end % description.options.parameter_alignment != 0) ++end;
    end += description.elements(static_cast<std::size_t>(p));
  }
  while ((end - bucket_begin) % description.options.bucket_alignment != 0 ||
         (description.options.ownership == Ownership::buckets && (end - bucket_begin) % dp != 0))
    ++end;
  return end;
}

// The parameters of each bucket of a group: a bucket is closed as soon as it is full.
std::vector<std::vector<int>> fill_buckets(const RandomLayout& description, int group) {
  std::vector<std::vector<int>> buckets(1);
  Index bucket_begin = 0, end = 0;
  const Index dp = description.grid.dp(), capacity = description.options.bucket_capacity;
  for (std::size_t p = 0; p < description.parameters.size(); ++p) {
    if (description.parameters[p].group != group) continue;
    while (end % description.options.parameter_alignment != 0) ++end;
    end += description.elements(p);
    buckets.back().push_back(static_cast<int>(p));
    if (capacity == 0 || end - bucket_begin < capacity) continue;
    end = padded_end(description, buckets.back(), bucket_begin, dp);
    bucket_begin = end;
    buckets.emplace_back();
  }
  if (buckets.back().empty()) buckets.pop_back();
  return buckets;
}

// Lays a group's buffer element by element, as one would with pencil and squared paper: no formula of the layout is
// used.
std::vector<Element> lay_by_hand(const RandomLayout& description, int group) {
  const LayoutOptions& options = description.options;
  const Index dp = description.grid.dp();
  std::vector<Element> buffer;
  const auto put = [&](int parameter, int bucket) {
    Element element;
    element.parameter = parameter;
    element.bucket = bucket;
    buffer.push_back(element);
  };
  const auto buckets = fill_buckets(description, group);
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const int number = static_cast<int>(bucket);
    const Index begin = static_cast<Index>(buffer.size());
    for (const int p : in_order(description, buckets[bucket])) {
      while (static_cast<Index>(buffer.size()) % options.parameter_alignment != 0) put(-1, number);
      for (Index i = 0; i < description.elements(static_cast<std::size_t>(p)); ++i) put(p, number);
    }
    const auto held = [&] { return static_cast<Index>(buffer.size()) - begin; };
    while (held() % options.bucket_alignment != 0 || (options.ownership == Ownership::buckets && held() % dp != 0) ||
           (options.ownership == Ownership::buffer && bucket + 1 == buckets.size() &&
            static_cast<Index>(buffer.size()) % dp != 0))
      put(-1, number);
  }

  // Who owns what: the first elements belong to rank 0, and so on.
  const Index all = static_cast<Index>(buffer.size());
  for (Index i = 0; i < all; ++i) {
    Element& element = buffer[i];
    const bool first_of_bucket = i == 0 || buffer[i - 1].bucket != element.bucket;
    Index bucket_begin = i, bucket_end = i;
    while (bucket_begin > 0 && buffer[bucket_begin - 1].bucket == element.bucket) --bucket_begin;
    while (bucket_end < all && buffer[bucket_end].bucket == element.bucket) ++bucket_end;
    if (options.ownership == Ownership::buckets)
      element.owner = static_cast<int>((i - bucket_begin) / ((bucket_end - bucket_begin) / dp));
    if (options.ownership == Ownership::buffer) element.owner = static_cast<int>(i / (all / dp));
    if (options.ownership == Ownership::matrices) {
      Index at = i;  // padding belongs to the parameter before it, and at the bucket's begin to the one behind it
      while (at > bucket_begin && buffer[at].parameter < 0) --at;
      while (buffer[at].parameter < 0) ++at;
      element.owner = options.owners[buffer[at].parameter];
    }
    const bool same_owner = !first_of_bucket && buffer[i - 1].owner == element.owner;
    element.local = same_owner ? buffer[i - 1].local + 1 : 0;
  }
  return buffer;
}

// What the run over random layouts must have met, or it proves less than it says.
struct Met {
  int spans_three_ranks = 0;
  int crosses_one_boundary = 0;
  int rank_owns_nothing = 0;
  int several_buckets = 0;
  int padded = 0;
};

void check_against_hand(const RandomLayout& description, const Layout& layout, const Buffer& buffer, Met& met) {
  const std::vector<Element> hand = lay_by_hand(description, buffer.group);
  REQUIRE(buffer.size == static_cast<Index>(hand.size()));
  const auto padding = std::count_if(hand.begin(), hand.end(), [](const Element& e) { return e.parameter == -1; });
  CHECK(buffer.padding == padding);
  if (padding > 0) ++met.padded;

  const int dp = description.grid.dp();
  std::vector<int> covered(hand.size(), 0);
  for (const DistMeta& meta : buffer.parameters) {
    INFO("parameter " << meta.name);
    Index held_by_all = 0;
    std::vector<int> owners;
    for (int rank = 0; rank < dp; ++rank) {
      const Range owned = layout.owned_range(meta, rank);
      const Range local = layout.local_range(meta, rank);
      const Range slice = layout.dp_slice(meta.buffer_idx, meta.bucket_idx, rank);
      CHECK(local.size() == owned.size());
      held_by_all += owned.size();
      for (Index i = owned.begin; i < owned.end; ++i) {
        REQUIRE(i >= 0);
        REQUIRE(i < buffer.size);
        ++covered[i];
        CHECK(hand[i].parameter == meta.parameter);
        CHECK(hand[i].owner == rank);
        CHECK(hand[i].bucket == meta.bucket_idx);
        CHECK(hand[i].local == local.begin + (i - owned.begin));
        CHECK(i == slice.begin + hand[i].local);
      }
      if (owned.empty()) {
        ++met.rank_owns_nothing;
        CHECK(local == Range{0, 0});
      } else {
        owners.push_back(rank);
      }
    }
    CHECK(held_by_all == meta.shape.size());
    CHECK(layout.owners(meta) == owners);
    if (owners.size() == 2) ++met.crosses_one_boundary;
    if (owners.size() >= 3) ++met.spans_three_ranks;
    CHECK(meta.global_range.size() == meta.shape.size());
    CHECK(meta.global_range.begin % description.options.parameter_alignment == 0);
  }
  // Every element of a parameter is owned once, and padding by no parameter.
  for (std::size_t i = 0; i < hand.size(); ++i) CHECK(covered[i] == (hand[i].parameter == -1 ? 0 : 1));
}

void check_buckets(const RandomLayout& description, const Layout& layout, int buffer_idx, Met& met) {
  const Buffer& buffer = layout.buffers[buffer_idx];
  if (buffer.buckets.size() > 1) ++met.several_buckets;
  std::vector<int> times_in_a_bucket(buffer.parameters.size(), 0);
  Index next = 0;
  for (std::size_t b = 0; b < buffer.buckets.size(); ++b) {
    const Bucket& bucket = buffer.buckets[b];
    CHECK(bucket.range.begin == next);
    next = bucket.range.end;
    const Ownership ownership = description.options.ownership;
    if (ownership == Ownership::buckets) CHECK(bucket.range.size() % description.grid.dp() == 0);
    if (ownership == Ownership::buffer) CHECK(buffer.size % description.grid.dp() == 0);
    CHECK(bucket.range.size() % description.options.bucket_alignment == 0);
    CHECK_FALSE(bucket.parameters.empty());
    for (const int p : bucket.parameters) {
      ++times_in_a_bucket.at(p);
      CHECK(buffer.parameters[p].bucket_idx == static_cast<int>(b));
      CHECK(buffer.parameters[p].buffer_idx == buffer_idx);
      CHECK(intersection(buffer.parameters[p].global_range, bucket.range) == buffer.parameters[p].global_range);
    }
    // The slices of the DP ranks cover the bucket, and are equal where the policy says so.
    Index next_slice = bucket.range.begin;
    for (int rank = 0; rank < description.grid.dp(); ++rank) {
      const Range slice = layout.dp_slice(buffer_idx, static_cast<int>(b), rank);
      CHECK(slice.begin == next_slice);
      if (ownership == Ownership::buckets) CHECK(slice.size() * description.grid.dp() == bucket.range.size());
      CHECK(layout.dp_counts(buffer_idx, static_cast<int>(b)).at(static_cast<std::size_t>(rank)) == slice.size());
      std::vector<int> owned;
      for (const int p : bucket.parameters)
        if (!layout.owned_range(buffer.parameters[p], rank).empty()) owned.push_back(p);
      CHECK(layout.owned_parameters(buffer_idx, static_cast<int>(b), rank) == owned);
      next_slice = slice.end;
    }
    CHECK(next_slice == bucket.range.end);
  }
  CHECK(next == buffer.size);
  for (const int times : times_in_a_bucket) CHECK(times == 1);
}

}  // namespace

TEST_CASE(
    "plan_layout: any parameters, grid, bucket capacity, alignment and ownership: as laid by hand, element by "
    "element") {
  constexpr unsigned kFirstSeed = 1000;
  constexpr unsigned kRounds = 400;
  Met met;
  for (unsigned seed = kFirstSeed; seed < kFirstSeed + kRounds; ++seed)
    for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
      RandomLayout description(seed);
      description.own(ownership);
      INFO("RandomLayout(" << seed << "): " << description.grid.text() << ", parameter alignment "
                           << description.options.parameter_alignment << ", bucket alignment "
                           << description.options.bucket_alignment << ", capacity "
                           << description.options.bucket_capacity << ", owned by " << ownership_name(ownership));
      const Layout layout = description.plan();
      std::map<int, std::vector<std::string>> expected;
      for (const Parameter& parameter : description.parameters) expected[parameter.group].push_back(parameter.name);
      REQUIRE(layout.buffers.size() == expected.size());
      Index shard_elements = 0;
      int buffer_idx = 0;
      for (const auto& [group, names] : expected) {
        const Buffer& buffer = layout.buffers[buffer_idx];
        CHECK(buffer.group == group);
        std::vector<std::string> laid;
        for (const DistMeta& meta : buffer.parameters) {
          laid.push_back(meta.name);
          const Parameter& parameter = description.parameters.at(meta.parameter);
          CHECK(meta.name == parameter.name);
          CHECK(meta.full_shape == parameter.shape);
          CHECK(meta.shape == tp_shape(parameter, description.grid.tp()));
          CHECK(meta.tp_split_dim == parameter.tp_split_dim);
        }
        if (ownership == Ownership::matrices) std::sort(laid.begin(), laid.end());
        CHECK(laid == names);
        check_against_hand(description, layout, buffer, met);
        check_buckets(description, layout, buffer_idx, met);
        for (std::size_t b = 0; b < buffer.buckets.size(); ++b) {
          shard_elements += layout.dp_slice(buffer_idx, static_cast<int>(b), 0).size();
        }
        ++buffer_idx;
      }
      CHECK(layout.shard_elements(0) == shard_elements);
      Index of_all_shards = 0, of_all_buffers = 0;
      for (int rank = 0; rank < description.grid.dp(); ++rank) of_all_shards += layout.shard_elements(rank);
      for (const Buffer& buffer : layout.buffers) of_all_buffers += buffer.size;
      CHECK(of_all_shards == of_all_buffers);
    }
  MESSAGE("met: " << met.spans_three_ranks << " parameters on three or more ranks, " << met.crosses_one_boundary
                  << " on two, " << met.rank_owns_nothing << " times a rank that owns nothing, " << met.several_buckets
                  << " buffers of several buckets, " << met.padded << " with padding");
  CHECK(met.spans_three_ranks > 0);
  CHECK(met.crosses_one_boundary > 0);
  CHECK(met.rank_owns_nothing > 0);
  CHECK(met.several_buckets > 0);
  CHECK(met.padded > 0);
}

namespace {

// The matrices of the proof of concept's own test, which lesson 09 runs.
std::vector<Parameter> lesson_09_parameters() {
  return {{"w0", {100, 100}, SplitDim::rows, 0},
          {"w1", {124, 324}, SplitDim::columns, 0},
          {"w2", {456, 124}, SplitDim::none, 0},
          {"w3", {676, 876}, SplitDim::columns, 0},
          {"w4", {128, 128}, SplitDim::rows, 0}};
}

LayoutOptions no_padding() {
  LayoutOptions options;
  options.parameter_alignment = 1;
  return options;
}

}  // namespace

TEST_CASE("plan_layout: owners that are not one DP rank per parameter are refused in a sentence") {
  LayoutOptions options;
  options.ownership = Ownership::matrices;
  const auto refusal = [&](std::vector<int> owners) {
    options.owners = std::move(owners);
    return usage_error([&] { plan_layout({{"a", {1, 1}}, {"b", {1, 1}}}, Grid().dp(2), options); });
  };
  CHECK(refusal({0, 2}) == "DP rank 2 can't own a parameter on dp 2; its ranks are 0 to 1");
  CHECK(refusal({0, -1}) == "DP rank -1 can't own a parameter on dp 2; its ranks are 0 to 1");
  for (const std::size_t owners : {1, 3})
    CHECK(refusal(std::vector<int>(owners, 1)) ==
          std::to_string(owners) +
              " owners were given for 2 parameters; give each parameter one, or none at all for a balanced choice");
  CHECK(refusal({1, 1}) == "(no UsageError)");
  for (const Ownership each : {Ownership::buckets, Ownership::buffer, Ownership::matrices})
    CHECK(parse_ownership(ownership_name(each)) == each);
  CHECK(usage_error([] { parse_ownership("rows"); }) ==
        "--ownership rows is not known; it takes buckets (an equal part of every bucket), buffer (an equal part of the "
        "whole buffer) or matrices (whole matrices)");
}

TEST_CASE("plan_layout: no parameters make an empty plan") {
  const Layout layout = plan_layout({}, Grid().dp(4));
  CHECK(layout.buffers.empty());
  CHECK(layout.shard_elements(0) == 0);
}

TEST_CASE("plan_layout: what can't be planned is refused in a sentence") {
  const auto refusal = [](std::vector<Parameter> parameters, LayoutOptions options = {}) {
    return usage_error([&] { plan_layout(parameters, Grid().dp(2).tp(3), options); });
  };
  CHECK(refusal({{"w0", {100, 1}, SplitDim::rows, 0}}) ==
        "--tp 3 does not divide the 100 rows of parameter \"w0\"; try --tp 1, 2, 4 or 5");
  CHECK(refusal({{"w", {0, 5}, SplitDim::none, 0}}) ==
        "parameter \"w\" is 0 × 5, but a matrix has at least 1 row and 1 column; leave it out or give it a shape");
  CHECK(refusal({{"w", {5, -1}, SplitDim::none, 0}}) ==
        "parameter \"w\" is 5 × -1, but a matrix has at least 1 row and 1 column; leave it out or give it a shape");
  for (const Shape shape : {Shape{Index{1} << 40, Index{1} << 40}, Shape{(Index{1} << 48) + 1, 1}})
    CHECK(refusal({{"w", shape, SplitDim::none, 0}}) ==
          "parameter \"w\" is " + shape_text(shape.rows, shape.cols) +
              ", more elements than a layout can count; try a smaller shape");
  // Each of these can be counted, and so can a buffer of one of them; both together can't.
  const Shape half = {Index{1} << 24, Index{1} << 24};
  CHECK(refusal({{"a", half, SplitDim::none, 0}, {"b", half, SplitDim::none, 1}}) == "(no UsageError)");
  CHECK(refusal({{"a", half, SplitDim::none, 1}, {"b", half, SplitDim::none, 1}}) ==
        "the buffer of parameter group 1 has more elements than a layout can count; try smaller shapes or more groups");
  CHECK(refusal({{"w", {1, 1}, SplitDim::none, 0}, {"w", {2, 2}, SplitDim::none, 1}}) ==
        "two parameters are named \"w\", but a layout tells them apart by name; give each its own");
  LayoutOptions options;
  options.parameter_alignment = 0;
  CHECK(refusal({}, options) ==
        "an alignment of parameters to 0 elements makes no sense; try 1 for no padding, or 64 as Megatron does");
  options = {};
  options.bucket_alignment = -4;
  CHECK(refusal({}, options) ==
        "an alignment of buckets to -4 elements makes no sense; try 1 for no padding, or 64 as Megatron does");
  constexpr Index kMost = Index{1} << 30;
  for (Index LayoutOptions::*alignment : {&LayoutOptions::parameter_alignment, &LayoutOptions::bucket_alignment}) {
    options = {};
    options.*alignment = kMost;
    CHECK(refusal({}, options) == "(no UsageError)");
    options.*alignment = kMost + 1;
    CHECK(refusal({}, options).find(" to 1073741825 elements makes no sense; try 1 for") != std::string::npos);
  }
  options = {};
  options.bucket_capacity = -1;
  CHECK(refusal({}, options) ==
        "a bucket capacity of -1 elements makes no sense; try 0 for one bucket that holds all, or at least 1");
}

TEST_CASE("Layout: a DP rank, buffer or bucket that does not exist throws") {
  const Layout layout = plan_layout({{"w", {4, 4}, SplitDim::none, 0}}, Grid().dp(2));
  CHECK_THROWS_WITH_AS(layout.dp_slice(0, 0, 2), "DP rank 2 is not in 0..1", std::out_of_range);
  CHECK_THROWS_WITH_AS(layout.dp_slice(0, 0, -1), "DP rank -1 is not in 0..1", std::out_of_range);
  CHECK_THROWS_AS(layout.dp_slice(0, 1, 0), std::out_of_range);
  CHECK_THROWS_AS(layout.dp_slice(1, 0, 0), std::out_of_range);
  CHECK_THROWS_AS(layout.owned_parameters(0, 0, 2), std::out_of_range);
  CHECK_THROWS_AS(layout.owned_parameters(0, 1, 0), std::out_of_range);
  CHECK_THROWS_AS(layout.owned_parameters(1, 0, 0), std::out_of_range);
}

TEST_CASE("Layout::text: a line per parameter, in at most 100 columns") {
  const Layout layout = plan_layout(lesson_09_parameters(), Grid().dp(4).tp(2), no_padding());
  CHECK(layout.text() ==
        "parameter  full shape  TP cuts  TP slice   buffer  bucket  global range   DP ranks\n"
        "w0         100 × 100   rows     50 × 100   0       0       0–4999         0\n"
        "w1         124 × 324   columns  124 × 162  0       0       5000–25087     0\n"
        "w2         456 × 124   none     456 × 124  0       0       25088–81631    0\n"
        "w3         676 × 876   columns  676 × 438  0       0       81632–377719   0–3\n"
        "w4         128 × 128   rows     64 × 128   0       0       377720–385911  3\n");
  LayoutOptions small = no_padding();
  small.bucket_capacity = 6;
  CHECK(plan_layout({{"a.parameter.with.a.name.in.parts", {2, 3}, SplitDim::none, 4},
                     {"b", {1, 2}, SplitDim::none, 4},
                     {"c", {1, 1}, SplitDim::none, 7}},
                    Grid().dp(2), small)
            .text() ==
        "parameter               full shape  TP cuts  TP slice  buffer  bucket  global range  DP ranks\n"
        "a.paramete…me.in.parts  2 × 3       none     2 × 3     0       0       0–5           0–1\n"
        "b                       1 × 2       none     1 × 2     0       1       6–7           0–1\n"
        "c                       1 × 1       none     1 × 1     1       0       0             0\n");
}

TEST_CASE("meta: a parameter is found by its number and by its name, in whichever buffer it lies") {
  const std::vector<Parameter> parameters = {{"a", {4, 6}, SplitDim::rows, 1},
                                             {"b", {2, 2}, SplitDim::none, 0},
                                             {"c", {6, 4}, SplitDim::columns, 1},
                                             {"d", {8, 2}, SplitDim::none, 2}};
  const Layout layout = plan_layout(parameters, Grid().dp(2).tp(2));
  for (int i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(layout.meta(i).parameter == i);
    CHECK(layout.meta(i).name == parameters[std::size_t(i)].name);
    CHECK(&layout.meta(i) == &layout.meta(parameters[std::size_t(i)].name));
  }
  CHECK_THROWS_WITH_AS(layout.meta(4), "the layout has no parameter number 4", std::out_of_range);
  CHECK_THROWS_WITH_AS(layout.meta(-1), "the layout has no parameter number -1", std::out_of_range);
  CHECK_THROWS_WITH_AS(layout.meta("e"), "the layout has no parameter \"e\"", std::out_of_range);
  // Of a group: its buffer alone, which is the first one there, in the same grid and with the same options.
  for (const int group : {0, 1, 2}) {
    const Layout part = layout.of_group(group);
    REQUIRE(part.buffers.size() == 1);
    CHECK(part.buffers[0].group == group);
    CHECK(part.grid == layout.grid);
    CHECK(part.options.parameter_alignment == layout.options.parameter_alignment);
    for (const DistMeta& meta : part.buffers[0].parameters) {
      CHECK(meta.buffer_idx == 0);
      CHECK(meta.parameter == layout.meta(meta.name).parameter);
      CHECK(part.dp_slice(0, meta.bucket_idx, 1) == layout.dp_slice(group, meta.bucket_idx, 1));
    }
  }
}

TEST_CASE("plan_layout: whole matrices without owners: by the work of whole matrices, and not by their elements") {
  LayoutOptions options = no_padding();
  options.ownership = Ownership::matrices;
  // Of columns is left a tall slice with little work; but all of the matrix is what is orthogonalized.
  const Layout cut =
      plan_layout({{"wide", {4, 8}, SplitDim::columns}, {"p", {4, 7}}, {"q", {2, 3}}}, Grid().dp(2).tp(8), options);
  CHECK(cut.owners(cut.meta("wide")) == std::vector<int>{0});
  CHECK(cut.owners(cut.meta("p")) == std::vector<int>{1});
  CHECK(cut.owners(cut.meta("q")) == std::vector<int>{1});
}
