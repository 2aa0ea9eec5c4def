#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/layout/grid.hpp"
#include "src/layout/parameter.hpp"

namespace muonwalk {

/// Who owns which elements of a buffer. Whatever the policy, what a DP rank owns of a bucket is one contiguous range of
/// it, perhaps an empty one, and the ranges of the ranks in their order make up the bucket.
enum class Ownership {
  /// Every rank owns an equal part of every bucket (ZeRO-1).
  buckets,
  /// Every rank owns an equal part of the whole buffer, as Megatron's documentation draws its distributed optimizer. A
  /// bucket may belong to few ranks, in unequal parts.
  buffer,
  /// Every rank owns whole matrices: a bucket's parameters are laid by owner, and nothing has to be gathered.
  matrices
};

/// "buckets", "buffer", "matrices".
const char* ownership_name(Ownership ownership);
/// The opposite of ownership_name; throws UsageError for any other word.
Ownership parse_ownership(const std::string& word);

/// What counts as the load of a matrix, when matrices are dealt out: its elements, or its FLOPs in Newton–Schulz.
enum class Load { elements, work };

/// An owner for every parameter, for Ownership::matrices: the one with the largest load first, each to the DP rank that
/// has the least so far. Where that leaves a choice, the earlier parameter comes first, and the lower rank.
std::vector<int> balanced_owners(const std::vector<Parameter>& parameters, int dp, Load load = Load::work);

/// Deals parameters out in turn, whatever their load: parameter i goes to DP rank i mod dp.
std::vector<int> round_robin_owners(const std::vector<Parameter>& parameters, int dp);

/// How parameters are packed into buffers.
struct LayoutOptions {
  /// A bucket is closed as soon as it holds at least this many elements (Megatron's rule), padding between parameters
  /// counted, so a parameter is never cut between two buckets. 0: one bucket for all.
  Index bucket_capacity = 0;
  /// Every parameter starts at a multiple of this many elements of its buffer. Megatron: 64. 1 = no padding.
  Index parameter_alignment = 64;
  /// Every bucket's size is a multiple of this. So that the shards can be equal, every bucket's is a multiple of dp as
  /// well with Ownership::buckets, and the buffer's with Ownership::buffer.
  Index bucket_alignment = 1;
  Ownership ownership = Ownership::buckets;
  /// With Ownership::matrices, the DP rank that owns each parameter; balanced_owners decides where this is empty.
  std::vector<int> owners = {};
};

/// Where one parameter lies in the virtual buffer, as in the proof of concept's `dist_meta`.
struct DistMeta {
  std::string name;
  int parameter = 0;   ///< Its number in the list that the layout was planned from.
  int buffer_idx = 0;  ///< The aisle: each parameter group has a buffer.
  int bucket_idx = 0;  ///< The pallet in that aisle.
  Shape full_shape;    ///< The shape before TP.
  Shape shape;         ///< The shape after TP, that of one rank's slice.
  SplitDim tp_split_dim = SplitDim::none;
  Range global_range;  ///< Its shape.size() elements in the buffer, without padding.
};

/// One bucket: a range of the virtual buffer that is gathered in one call.
struct Bucket {
  Range range;                  ///< Its place in the buffer, padding included.
  std::vector<int> parameters;  ///< Indices into Buffer::parameters, in order.
  std::vector<Index> cuts;      ///< DP rank r owns the elements of the buffer from cuts[r] to cuts[r + 1].
};

/// The virtual buffer of one parameter group: the flat, padded row-major concatenation of one TP rank's slices of all
/// its parameters. Nobody ever holds all of it outside a gather.
struct Buffer {
  int group = 0;                     ///< The parameter group's number.
  std::vector<DistMeta> parameters;  ///< They stand in the order in which they lie.
  std::vector<Bucket> buckets;
  Index size = 0;     ///< Counts padding as well.
  Index padding = 0;  ///< Counts the elements that belong to no parameter.
};

/// Which bucket of which buffer.
struct BucketNumber {
  int buffer = 0;
  int bucket = 0;
};

/// The blueprint: who owns which element. The same on every TP rank, because TP slices have equal shapes; a pure
/// function of the parameters, the grid and the options.
struct Layout {
  Grid grid;
  LayoutOptions options;        ///< What it was planned with.
  std::vector<Buffer> buffers;  ///< There is one per parameter group, in the order of the groups' numbers.

  /// This layout with the buffer of one parameter group alone, as buffer 0, or with none where it has no such group.
  /// Parameters keep their numbers.
  Layout of_group(int group) const;

  /// The parameters of all buffers, as they lie there.
  std::vector<std::reference_wrapper<const DistMeta>> parameters() const;

  /// The buckets of all buffers, in the order in which a step takes them.
  std::vector<BucketNumber> all_buckets() const;

  /// The bucket of this number.
  const Bucket& bucket(BucketNumber number) const {
    return buffers[static_cast<std::size_t>(number.buffer)].buckets[static_cast<std::size_t>(number.bucket)];
  }

  /// The part of bucket `bucket_idx` that DP rank `dp_rank` owns (its DP shard), as a range of the buffer.
  Range dp_slice(int buffer_idx, int bucket_idx, int dp_rank) const;

  /// How many elements of that bucket each DP rank owns, as collectives with unequal pieces take them.
  std::vector<Index> dp_counts(int buffer_idx, int bucket_idx) const;

  /// True where every matrix has one owner, which sees it whole without a gather over DP: Ownership::matrices.
  bool whole_matrices() const { return options.ownership == Ownership::matrices; }

  /// Where one parameter lies: the one with this number in the list that the layout was planned from, or of this name.
  /// Throws std::out_of_range when there is none.
  /// @{
  const DistMeta& meta(int parameter) const;
  const DistMeta& meta(const std::string& parameter) const;
  /// @}

  /// The elements of a parameter that DP rank `dp_rank` owns, as a range of the buffer; empty when it owns none.
  Range owned_range(const DistMeta& meta, int dp_rank) const;

  /// The elements of a parameter that DP rank `dp_rank` owns, counted from the beginning of its own DP shard of that
  /// bucket: the proof of concept's `local_range`. {0, 0} when it owns none.
  Range local_range(const DistMeta& meta, int dp_rank) const;

  /// The DP ranks that own at least one element of the parameter, in order.
  std::vector<int> owners(const DistMeta& meta) const;

  /// The parameters of a bucket of which DP rank `dp_rank` owns at least one element, as Bucket::parameters has them,
  /// in order. They are found by bisection, so it can be asked for every bucket of a large model on every rank.
  std::vector<int> owned_parameters(int buffer_idx, int bucket_idx, int dp_rank) const;

  /// Elements of all DP shards of one rank: what ZeRO-1 leaves it to keep of one optimizer state. Padding included.
  Index shard_elements(int dp_rank) const;

  /// The names of its parameters, each in at most `most` characters (short_names of names.hpp).
  std::map<std::string, std::string> short_names(int most) const;

  /// The plan as a table: a line per parameter with its buffer, bucket, shapes, ranges and owners.
  std::string text() const;
};

/// Plans the layout. Parameters are laid in the order given, each in the buffer of its group.
/// Throws UsageError for a parameter that TP does not divide, a shape with less than 1 row or column, two parameters of
/// one name, an alignment or capacity that makes no sense, or owners that are not one DP rank per parameter.
Layout plan_layout(const std::vector<Parameter>& parameters, const Grid& grid, const LayoutOptions& options = {});

}  // namespace muonwalk
