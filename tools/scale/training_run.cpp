// A training run from JSON: "muonwalk-run 1".
#include "tools/scale/training_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "src/text/names.hpp"
#include "src/text/units.hpp"
#include "tools/scale/json_fields.hpp"
#include "tools/scale/muonwalk_scale_texts.hpp"

namespace muonwalk::sim {

namespace {

constexpr double kTera = 1e12, kMicro = 1e-6;

// What NCCL reaches of a link: inside of a node 20.6 of the 25 GB/s of one of NVLink 4 (src/graph/topo.h), between
// nodes 48.5 of the 50 of NDR (SimAI, calbusbw.h).
constexpr double kInsideShare = 0.82, kBetweenShare = 0.97;
// Kernels of a layer, forward and backward.
constexpr double kLayerKernels = 90, kCompiledLayerKernels = 40;
// What is left of the elementwise traffic of layers and of logits that nanotron's kernels have (counted_traffic.hpp),
// where a compiler fuses them: 84 of 160 B per channel; per logit a bf16 and a float32 copy in place of seven.
constexpr double kCompiledShare = 0.5, kCompiledLogits = 0.3;

// Reads one part of the file after the other, and notes what it had to take for what is not there.
class RunReader {
 public:
  RunReader(const std::string& path, const nlohmann::json& root) : file_{"run file", path}, root_(file_, "", root) {}

  TrainingRun read() {
    if (root_.text("format") != "muonwalk-run 1") root_.refuse("format", "is not \"muonwalk-run 1\"");
    if (root_.has("name")) run_.name = visible_name(root_.text("name"));
    for (const char* note : {"source", "comment"})
      if (root_.has(note)) root_.text(note);
    read_gpu(root_.object("gpu"));
    read_parallel(part("parallel"), part("cluster"));
    JsonFields model = root_.object("model"), muon = part("muon");
    read_sizes(model);
    read_matrices(model);
    read_training(root_.object("training"));
    read_muon(muon);
    root_.done();
    if (run_.name.empty())
      run_.name = sized_ ? fmt::format("{} layers of {} channels", run_.model.layers, run_.model.width)
                         : count_text(static_cast<std::int64_t>(run_.matrices.size()), "kind") + " of matrices";
    run_.model.name = run_.name;
    return std::move(run_);
  }

 private:
  JsonFields part(const char* name) {
    static const nlohmann::json kNothing = nlohmann::json::object();
    return root_.has(name) ? root_.object(name) : JsonFields(file_, std::string(name) + ".", kNothing);
  }

  void assume(const std::string& sentence) { run_.assumed.push_back(sentence); }
  void assume(const JsonFields& fields, const char* name, const std::string& taken) {
    assume(fmt::format("{}{} is left out: {}", fields.where(), name, taken));
  }

  double number(JsonFields& fields, const char* name, double unit, double otherwise, const char* unit_name) {
    if (fields.has(name)) return fields.number(name, unit);
    assume(fields, name, fmt::format("{:g} {}", otherwise, unit_name));
    return otherwise * unit;
  }
  int whole(JsonFields& fields, const char* name, int least, Index otherwise, const char* why = "") {
    if (fields.has(name)) return fields.whole(name, least);
    assume(fields, name, number_text(otherwise) + why);
    return static_cast<int>(otherwise);
  }
  bool truth(JsonFields& fields, const char* name, bool otherwise, const char* meaning) {
    if (fields.has(name)) return fields.truth(name);
    assume(fields, name, meaning);
    return otherwise;
  }
  // The number of one of these words, and where the field is left out, `otherwise`.
  std::size_t word(JsonFields& fields, const char* name, const std::vector<std::string>& words,
                   std::size_t otherwise = 0) {
    if (!fields.has(name)) {
      assume(fields, name, words[otherwise]);
      return otherwise;
    }
    const std::string given = fields.text(name);
    const auto found = std::find(words.begin(), words.end(), given);
    if (found == words.end())
      fields.refuse(name, fmt::format("is {}; it can be {}", in_quotes(given), fmt::join(words, ", ")));
    return static_cast<std::size_t>(found - words.begin());
  }

  void read_gpu(JsonFields gpu) {
    Accelerator& device = run_.cluster.accelerator;
    device.name = visible_name(gpu.text("name"));
    // Data sheets, dense: peaks in TFLOP/s, memory in GiB and GB/s, the link to other GPUs in GB/s and one direction;
    // and a cluster whose accelerator has the same cores, for the efficiency of products.
    for (const nlohmann::json& each : nlohmann::json::parse(page_texts::gpus))
      if (gpu_.is_null() && device.name.find(each["part"]) != std::string::npos) gpu_ = each;
    const auto take = [&](const char* name, double unit) {
      if (gpu.has(name)) return gpu.number(name, unit);
      if (gpu_.is_null())
        gpu.refuse(name, "is missing, and no GPU called " + in_quotes(device.name) + " is known to take it from");
      const double value = gpu_[name];
      assume(gpu, name, fmt::format("{:g}, of the data sheet of {}", value, gpu_["part"].get<std::string>()));
      return value * unit;
    };
    device.flops_per_second = take("bf16_tflops", kTera);
    run_.newton_schulz_flops_per_second = take("fp32_tflops", kTera);
    device.memory_bytes = take("memory_gb", kGibibyte);  // a card of "80 GB" has 80 GiB
    device.memory_bytes_per_second = take("memory_gb_per_s", kGigabyte);
    run_.launch = number(gpu, "launch_us", kMicro, 4, "µs between one kernel and the next");
    device.source = "the run file";
    if (!gpu_.is_null() && gpu_["cluster"] != "")
      device.product_efficiency = cluster_of(gpu_["cluster"]).accelerator.product_efficiency;
    else
      assume(fmt::format("no efficiency of products is known for {}: the middle of those of other GPUs is taken",
                         device.name));
    gpu.done();
  }

  void read_parallel(JsonFields parallel, JsonFields cluster) {
    TrainingLayout& layout = run_.layout;
    layout.tp = whole(parallel, "tp", 1, 1);
    layout.pp = whole(parallel, "pp", 1, 1);
    layout.ep = whole(parallel, "ep", 1, 1);
    const int rest = layout.tp * layout.pp;
    int gpus = cluster.whole_or("gpus", 0);
    layout.dp = whole(parallel, "dp", 1, std::max(1, gpus / rest));
    require_sizes(layout);
    if (gpus == 0) assume(cluster, "gpus", number_text(gpus = layout.ranks()));
    if (layout.ranks() != gpus)
      parallel.refuse("dp", fmt::format("makes dp {} × tp {} × pp {} = {} ranks, and there are {} GPUs; take a grid "
                                        "whose product is that",
                                        layout.dp, layout.tp, layout.pp, layout.ranks(), gpus));
    if (layout.dp % layout.ep != 0)
      parallel.refuse("ep",
                      fmt::format("is {}, which does not divide dp {}; take one that does", layout.ep, layout.dp));
    const int node = std::min(gpus, whole(cluster, "gpus_per_node", 1, std::min(gpus, 8)));
    if (gpus % node != 0)
      cluster.refuse("gpus_per_node", fmt::format("is {}, which does not divide the {} GPUs", node, gpus));
    layout.nodes = gpus / node;
    read_links(cluster, gpus, node);
    cluster.done();
    read_sharding(parallel);
    parallel.done();
  }

  void read_links(JsonFields& cluster, int gpus, int node) {
    run_.cluster.name = "the run's cluster";
    if (!cluster.has("inside_gb_per_s") && gpu_.is_null() && node > 1)
      cluster.refuse("inside_gb_per_s", "is missing, and can't be known without a known GPU");
    const double inside = number(cluster, "inside_gb_per_s", kGigabyte,
                                 gpu_.is_null() ? 1 : gpu_["inside_gb_per_s"].get<double>(), "GB/s");
    const double inside_wait = number(cluster, "inside_us", kMicro, 10, "µs");
    run_.cluster.levels.push_back(
        {"inside of a node", node, kInsideShare * inside, inside_wait, {}, {}, "the run file"});
    if (gpus > node || cluster.has("between_gb_per_s") || cluster.has("between_us")) {
      const double between = number(cluster, "between_gb_per_s", kGigabyte, 50, "GB/s per GPU");
      const double wait = number(cluster, "between_us", kMicro, 20, "µs");
      if (gpus > node)
        run_.cluster.levels.push_back({"between nodes", 0, kBetweenShare * between, wait, {}, {}, "the run file"});
    }
    if (gpus > 1)
      assume(
          fmt::format("collectives reach {:.0f} % of a link inside of a node, {:.0f} % between nodes, and wait for "
                      "its µs once per doubling of their ranks",
                      100 * kInsideShare, 100 * kBetweenShare));
  }

  void read_sharding(JsonFields& parallel) {
    const TrainingLayout& layout = run_.layout;
    int replicate = 0;
    if (parallel.has_object("shard")) {
      JsonFields sizes = parallel.object("shard");
      run_.sharding = ParameterSharding::hsdp;
      for (const char* kind : {"kind", "type", "name"})
        if (sizes.has(kind) && sizes.text(kind) != "hsdp") sizes.refuse(kind, "is not \"hsdp\"");
      replicate = sizes.whole("replicate");
      run_.shard = sizes.whole("shard");
      sizes.done();
    } else {
      run_.sharding = static_cast<ParameterSharding>(word(parallel, "shard", {"ddp", "zero1", "fsdp2", "hsdp"}));
      if (run_.sharding == ParameterSharding::hsdp) {
        replicate = whole(parallel, "replicate", 1, std::min(layout.nodes, layout.dp), ", the number of nodes");
        run_.shard = parallel.whole_or("shard_size", layout.dp / replicate);
      }
    }
    if (run_.sharding == ParameterSharding::hsdp && replicate * run_.shard != layout.dp)
      parallel.refuse("shard", fmt::format("makes {} replicas of {} shards, and dp is {}; the product must be that",
                                           replicate, run_.shard, layout.dp));
    if (run_.sharding == ParameterSharding::fsdp2) run_.shard = layout.dp;
    run_.layout.zero = run_.sharding == ParameterSharding::ddp ? 0 : 1;
  }

  void read_sizes(JsonFields& model) {
    ModelShape& shape = run_.model;
    sized_ = model.has("layers") || model.has("hidden");
    const Index experts = model.whole_or("experts", 0, 0), used = model.whole_or("experts_used", 0, 0),
                expert_ffn = model.whole_or("expert_ffn", 0, 0);
    if (!model.has("vocabulary")) assume(model, "vocabulary", "neither embedding nor output layer is counted");
    shape.vocabulary = model.whole_or("vocabulary", 0, 0);
    if (sized_) {
      shape.layers = model.whole("layers");
      shape.width = model.whole("hidden");
      shape.heads = whole(model, "heads", 1, std::max<Index>(1, shape.width / 128), ", of 128 channels");
      if (shape.width % shape.heads != 0)
        model.refuse("heads", fmt::format("is {}, which does not divide the {} channels", shape.heads, shape.width));
      shape.key_value_heads = whole(model, "kv_heads", 1, shape.heads);
      shape.head = shape.width / shape.heads;
      const bool gated = truth(model, "gated", false, "two matrices in a feed-forward half");
      const Index usual = experts > 0 ? 0 : gated ? (8 * shape.width + 2) / 3 : 4 * shape.width;
      const Index ffn = model.has("ffn") ? model.whole("ffn", 0) : (assume(model, "ffn", number_text(usual)), usual);
      if (experts > 0 && (used == 0 || expert_ffn == 0 || used > experts))
        model.refuse("experts",
                     fmt::format("is {}, so experts_used has to be from 1 to that, and expert_ffn above 0", experts));
      if (experts > 0 && ffn > 0) assume("model.ffn is a feed-forward half that every layer has beside its experts");
      list_matrices(ffn, gated, experts, expert_ffn);
      // As channels of three matrices, which is how the model of a step counts them.
      shape.hidden = (ffn + used * expert_ffn) * (gated ? 3 : 2) / 3;
    } else if (!model.has("matrices")) {
      model.refuse("layers", "is missing; it takes layers and hidden, or a list of matrices");
    } else {
      for (const char* name : {"heads", "kv_heads", "ffn"}) model.whole_or(name, 0, 0);
      if (model.has("gated")) model.truth("gated");
    }
    if (experts == 0 && run_.layout.ep > 1)
      model.refuse("experts", fmt::format("is 0, so there is nothing that ep {} could share out", run_.layout.ep));
    if (experts > 0 && experts % run_.layout.ep != 0)
      model.refuse("experts", fmt::format("is {}, which ep {} does not divide", experts, run_.layout.ep));
    shape.experts.count = experts;
    shape.experts.chosen = used;
    shape.experts.feed_forward = expert_ffn;
  }

  void list_matrices(Index ffn, bool gated, Index experts, Index expert_ffn) {
    const ModelShape& shape = run_.model;
    const Index layers = shape.layers, keys = shape.key_value_heads * shape.head;
    const auto add = [&](const std::string& name, Shape each, SplitDim split, Index count) {
      const TensorKind kind = count > layers ? TensorKind::expert : TensorKind::hidden;
      run_.matrices.push_back({{each, split, kind, count}, "layers.*." + name});
    };
    add("q", {shape.width, shape.width}, SplitDim::rows, layers);
    add("k", {keys, shape.width}, SplitDim::rows, layers);
    add("v", {keys, shape.width}, SplitDim::rows, layers);
    add("o", {shape.width, shape.width}, SplitDim::columns, layers);
    const auto feed_forward = [&](const std::string& of, Index inner, Index count) {
      if (gated) add(of + "gate", {inner, shape.width}, SplitDim::rows, count);
      add(of + "up", {inner, shape.width}, SplitDim::rows, count);
      add(of + "down", {shape.width, inner}, SplitDim::columns, count);
    };
    if (ffn > 0) feed_forward("", ffn, layers);
    if (experts > 0) feed_forward("experts.*.", expert_ffn, layers * experts);
  }

  double hidden_elements() const {
    double sum = 0;
    for (const RunMatrices& each : run_.matrices) sum += each.all_elements();
    return sum;
  }

  void read_matrices(JsonFields& model) {
    ModelShape& shape = run_.model;
    double tables = 0;
    if (model.has("matrices")) {
      const double from_sizes = hidden_elements();
      run_.matrices.clear();
      for (JsonFields& fields : model.objects("matrices", 4096)) {
        RunMatrices each;
        each.name = visible_name(fields.text("name"));
        each.count = fields.whole_or("count", 1);
        const std::vector<int> sides = fields.wholes("shape");
        if (sides.size() != 2 && sides.size() != 3)
          fields.refuse("shape", "is not a list of two sizes, or of three for a stack of matrices");
        if (sides.size() == 3) each.count *= sides.front();
        each.shape = {sides[sides.size() - 2], sides.back()};
        if (each.name.find("expert") != std::string::npos) each.kind = TensorKind::expert;
        if (fields.has("optimizer")) each.muon = word(fields, "optimizer", {"muon", "adamw"}) == 0;
        fields.done();
        const bool table =
            shape.vocabulary > 0 && (each.shape.rows == shape.vocabulary || each.shape.cols == shape.vocabulary);
        if (table)
          tables += each.all_elements();
        else
          run_.matrices.push_back(each);
      }
      if (!sized_)
        size_by(run_.matrices);
      else if (std::abs(hidden_elements() / from_sizes - 1) > 0.01)
        assume(
            fmt::format("model.matrices has {} elements and the sizes make {}: the optimizers take those of the "
                        "list, forward and backward are those of the sizes",
                        prefixed_text(hidden_elements(), ""), prefixed_text(from_sizes, "")));
    }
    if (tables == 0 && shape.vocabulary > 0) {
      tables = 2.0 * static_cast<double>(shape.vocabulary * shape.width);
      assume("embedding and output layer are two tables, which AdamW takes");
    }
    run_.table_parameters = tables;
    model.done();
    for (const RunMatrices& each : run_.matrices)
      for (const auto& [dim, size] : {std::pair{SplitDim::rows, each.shape.rows}, {SplitDim::columns, each.shape.cols}})
        if (each.tp_split_dim == dim && size % run_.layout.tp != 0)
          file_.refuse(fmt::format("its parallel.tp {} does not divide the {} {} of {}", run_.layout.tp, size,
                                   split_name(dim), in_quotes(each.name)));
    shape.tensors.assign(run_.matrices.begin(), run_.matrices.end());
  }

  // Forward and backward from the matrices alone: one layer that has as many weights.
  void size_by(const std::vector<RunMatrices>& matrices) {
    ModelShape& shape = run_.model;
    for (const RunMatrices& each : matrices)
      shape.width = std::max(shape.width, std::min(each.shape.rows, each.shape.cols));
    shape.layers = shape.heads = shape.key_value_heads = shape.head = 1;
    const Index attention = 4 * shape.width, per_channel = 3 * shape.width;
    shape.hidden = std::max<Index>(1, (static_cast<Index>(hidden_elements()) - attention) / per_channel);
    if (run_.layout.pp > 1 || run_.layout.tp > 1)
      file_.refuse("its \"model\" has neither layers nor hidden, which tp and pp above 1 need");
    assume(
        "forward and backward have the products of the matrices alone, each used once by every token: without "
        "layers and hidden there are no scores of attention");
  }

  void read_training(JsonFields training) {
    TrainingLayout& layout = run_.layout;
    run_.tokens = training.whole("tokens_per_step");
    const double rank_tokens = run_.tokens / layout.dp;
    double micro = training.whole_or("micro_batch_tokens", 0);
    const bool given = micro > 0;
    double sequence = whole(training, "sequence", 1, 2048, " tokens");
    if (!given) {
      micro = layout.pp > 1 ? std::min(rank_tokens, sequence) : rank_tokens;
      assume(training, "micro_batch_tokens", number_text(std::llround(micro)) + ", per rank");
    } else if (micro > rank_tokens) {
      training.refuse("tokens_per_step",
                      fmt::format("is {:.0f}, fewer than dp {} × the {:.0f} of a micro-batch; take more, or a smaller "
                                  "micro_batch_tokens",
                                  run_.tokens, layout.dp, micro));
    }
    layout.accumulation = static_cast<int>(std::ceil(rank_tokens / micro - 1e-9));
    micro = rank_tokens / layout.accumulation;
    layout.micro_batch = std::max(1, static_cast<int>(std::lround(micro / sequence)));
    run_.model.tokens = std::max<Index>(1, std::llround(micro / layout.micro_batch));
    if (layout.accumulation < layout.pp - 1)
      training.refuse("tokens_per_step", fmt::format("makes {} micro-batches, and pp {} takes at least {}",
                                                     layout.accumulation, layout.pp, layout.pp - 1));
    if (layout.pp > run_.model.layers)
      training.refuse("tokens_per_step",
                      fmt::format("can't be asked: pp {} is more than the {} layers", layout.pp, run_.model.layers));
    if (truth(training, "recompute", false, "activations are kept")) layout.recomputation = Recomputation::full;
    run_.weight_bytes = word(training, "weights", {"bf16", "fp32"}) == 0 ? 2 : 4;
    run_.gradient_bytes = word(training, "gradients", {"fp32", "bf16"}) == 0 ? 4 : 2;
    const std::size_t masters = word(training, "masters", {"fp32", "none", "bf16"}, run_.weight_bytes == 4 ? 1 : 0);
    run_.master_bytes = run_.weight_bytes == 4 || masters == 1 ? 0
                        : masters == 0                         ? 4
                                                               : 2;  // fp32 weights are their own
    run_.compiled = truth(training, "compiled", true, "elementwise work is fused by a compiler");
    training.done();
    TrainingSoftware& software = run_.software;
    software.name = run_.compiled ? "PyTorch, compiled" : "PyTorch, eager";
    software.reads_curve = true;
    software.host_seconds_per_layer = run_.launch * (run_.compiled ? kCompiledLayerKernels : kLayerKernels);
    software.elementwise_share = run_.compiled ? kCompiledShare : 1;
    software.logit_share = run_.compiled ? kCompiledLogits : 1;
    software.gradient_bytes = run_.gradient_bytes;
  }

  void read_muon(JsonFields muon) {
    const std::vector<std::string> whos = {"all", "dealt", "owner_all_to_all", "sharded_products"};
    std::string who = whos.front();
    if (muon.has("who"))
      who = muon.text("who");
    else
      assume(muon, "who", "every rank orthogonalizes all that it can");
    const auto found = std::find(whos.begin(), whos.end(), who);
    run_.who = static_cast<Orthogonalizers>(found - whos.begin());
    if (found == whos.end()) {
      const std::optional<Strategy> strategy = strategy_of(who);
      if (!strategy)
        muon.refuse("who", fmt::format("is {}; it can be {}, or a letter from a to h, as in lesson 16", in_quotes(who),
                                       fmt::join(whos, ", ")));
      run_.strategy = *strategy;
    }
    if (run_.who == Orthogonalizers::dealt)
      run_.then = static_cast<Return>(word(muon, "then", {"all_reduce", "all_gather", "broadcast"}, 1));
    else if (muon.has("then"))
      muon.text("then");
    if (run_.who == Orthogonalizers::sharded_products && !run_.shards_parameters() && run_.layout.tp == 1)
      muon.refuse("who",
                  "is \"sharded_products\", but with this parallel.shard every rank has whole matrices; take "
                  "fsdp2, or another who");
    run_.precision = word(muon, "dtype", {"bf16", "fp16", "fp32"}) == 2 ? Precision::fp32 : Precision::bf16;
    if (run_.precision == Precision::bf16)
      run_.newton_schulz_flops_per_second = run_.cluster.accelerator.flops_per_second;
    run_.ns_steps = whole(muon, "ns_steps", 1, 5);
    run_.symmetric = truth(muon, "symmetric", false, "symmetric products are computed whole");
    run_.gram = truth(muon, "gram", false, "Newton–Schulz runs on the matrix itself");
    read_for(muon);
    muon.done();
  }

  void read_for(JsonFields& muon) {
    if (!muon.has("for")) return assume(muon, "for", "all matrices but embedding and output layer");
    if (!muon.has_list("for")) {
      if (muon.text("for") != "hidden") muon.refuse("for", "is neither \"hidden\" nor a list of names");
      return;
    }
    std::set<std::string> known;
    const std::vector<std::string> names = muon.texts("for");
    std::vector<bool> used(names.size());
    for (RunMatrices& each : run_.matrices) {
      each.muon = false;
      known.insert(each.name);
      const std::string last = each.name.substr(each.name.rfind('.') + 1);
      for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == last || names[i] == each.name || fnmatch(names[i].c_str(), each.name.c_str(), 0) == 0)
          each.muon = used[i] = true;
    }
    for (std::size_t i = 0; i < names.size(); ++i)
      if (!used[i])
        muon.refuse("for", fmt::format("has {}, which is not the name of a matrix; there are {}", in_quotes(names[i]),
                                       visible_names({known.begin(), known.end()})));
  }

  JsonFile file_;
  JsonFields root_;
  TrainingRun run_;
  nlohmann::json gpu_;  // of gpus.json; null: none is known
  bool sized_ = false;
};

}  // namespace

TrainingRun training_run(const std::string& path, const std::string& text) {
  const nlohmann::json root = JsonFile{"run file", path}.parsed(text);
  return RunReader(path, root).read();
}

TrainingRun read_training_run(const std::string& path) {
  const nlohmann::json root = JsonFile{"run file", path}.read();
  return RunReader(path, root).read();
}

}  // namespace muonwalk::sim
