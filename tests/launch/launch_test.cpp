#include "sim/launch/launch.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/launch/refusal.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using testing::expect_refused;

namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

constexpr char kSecret[] = "correct horse battery staple";

// Where the processes of a made-up launch stand: how many on each host.
struct Hosts {
  std::vector<int> processes;
  int world_size() const {
    int sum = 0;
    for (const int count : processes) sum += count;
    return sum;
  }
};

struct Process {
  int rank, host, local_rank, local_size;
};

std::vector<Process> processes_of(const Hosts& hosts) {
  std::vector<Process> all;
  for (int host = 0; host < static_cast<int>(hosts.processes.size()); ++host)
    for (int local = 0; local < hosts.processes[static_cast<std::size_t>(host)]; ++local)
      all.push_back({static_cast<int>(all.size()), host, local, hosts.processes[static_cast<std::size_t>(host)]});
  return all;
}

std::string text(int number) { return std::to_string(number); }

// "2(x3),1", as Slurm writes it.
std::string slurm_list(const std::vector<int>& counts) {
  std::string list;
  for (std::size_t at = 0; at < counts.size();) {
    std::size_t same = at;
    while (same < counts.size() && counts[same] == counts[at]) ++same;
    list += (list.empty() ? "" : ",") + text(counts[at]);
    if (same - at > 1) list += "(x" + text(static_cast<int>(same - at)) + ")";
    at = same;
  }
  return list;
}

const std::vector<std::string> kLaunchers = {"torchrun", "Open MPI", "PMI", "Slurm"};

// The variables that say who a process is; without any one of the first `needed` it can't be told.
struct Told {
  Variables variables;
  std::vector<std::string> needed;
};

Told told_by(const std::string& launcher, const Hosts& hosts, const Process& process) {
  const std::string rank = text(process.rank), size = text(hosts.world_size());
  const std::string local_rank = text(process.local_rank), local_size = text(process.local_size);
  if (launcher == "torchrun")
    return {{{"TORCHELASTIC_RUN_ID", "none"},
             {"RANK", rank},
             {"WORLD_SIZE", size},
             {"LOCAL_RANK", local_rank},
             {"LOCAL_WORLD_SIZE", local_size},
             {"MASTER_ADDR", "localhost"},
             {"MASTER_PORT", "29500"}},
            {"RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR"}};
  if (launcher == "Open MPI")
    return {{{"OMPI_COMM_WORLD_RANK", rank},
             {"OMPI_COMM_WORLD_SIZE", size},
             {"OMPI_COMM_WORLD_LOCAL_RANK", local_rank},
             {"OMPI_COMM_WORLD_LOCAL_SIZE", local_size}},
            {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}};
  if (launcher == "PMI")
    return {{{"PMI_RANK", rank}, {"PMI_SIZE", size}, {"MPI_LOCALRANKID", local_rank}, {"MPI_LOCALNRANKS", local_size}},
            {"PMI_RANK", "PMI_SIZE"}};
  return {{{"SLURM_JOB_ID", "4711"},
           {"SLURM_STEP_ID", "3"},
           {"SLURM_PROCID", rank},
           {"SLURM_LOCALID", local_rank},
           {"SLURM_NODEID", text(process.host)},
           {"SLURM_STEP_NUM_TASKS", size},
           {"SLURM_STEP_NUM_NODES", text(static_cast<int>(hosts.processes.size()))},
           {"SLURM_STEP_TASKS_PER_NODE", slurm_list(hosts.processes)},
           {"SLURM_STEP_NODELIST", "node[07-19,23].cluster,other"}},
          {}};
}

Hosts random_hosts(std::mt19937& random) {
  Hosts hosts;
  const int count = static_cast<int>(1 + random() % 4);
  for (int host = 0; host < count; ++host) hosts.processes.push_back(static_cast<int>(1 + random() % 5));
  return hosts;
}

}  // namespace

TEST_CASE("every process of a made-up launch learns who it is, and all learn of one place to meet") {
  std::mt19937 random(1);
  for (int launch_number = 0; launch_number < 200; ++launch_number) {
    const Hosts hosts = random_hosts(random);
    const std::string launcher = kLaunchers[static_cast<std::size_t>(launch_number) % kLaunchers.size()];
    const bool several = hosts.processes.size() > 1;
    LaunchOptions options;
    if (several) options.interface = "lo";  // it has to be some interface of this host
    std::map<std::string, int> meetings;
    for (const Process& process : processes_of(hosts)) {
      Variables variables = told_by(launcher, hosts, process).variables;
      variables["MUONWALK_SECRET"] = kSecret;
      if (launcher == "Open MPI" || launcher == "PMI") variables["MUONWALK_RENDEZVOUS"] = "localhost:4711";
      CAPTURE(launcher);
      CAPTURE(process.rank);
      const std::optional<Launch> launch = find_launch(options, environment_of(variables));
      REQUIRE(launch);
      CHECK(launch->rank == process.rank);
      CHECK(launch->world_size == hosts.world_size());
      CHECK(launch->local_rank == process.local_rank);
      CHECK(launch->local_size == process.local_size);
      CHECK(launch->launcher == launcher);
      CHECK(launch->one_host == !several);
      CHECK(!launch->by_hand);
      CHECK(launch->address == "127.0.0.1");
      CHECK(launch_text(*launch).find("started by " + launcher + ": rank " + text(process.rank) + " of ") == 0);
      if (launch->world_size == 1) continue;
      CHECK((launch->secret == secret_from_text(kSecret, "test")));
      ++meetings[launch->rendezvous_host + ':' + text(launch->rendezvous_port)];
      if (launcher == "torchrun") CHECK(launch->rendezvous_port == 29501);
      if (several && launcher == "Slurm") CHECK(launch->rendezvous_host == "node07.cluster");
      // Nobody opens more than the loopback without being asked to.
      if (several)
        expect_refused([&] { find_launch({}, environment_of(variables)); }, {"several hosts", "--interface", "lo"});
      const RefusalDuty duty = refusal_duty(options, environment_of(variables));
      CHECK(duty.of_run == (process.rank == 0));
      CHECK(duty.of_host == (process.local_rank == 0));
    }
    CHECK(meetings.size() == (hosts.world_size() == 1 ? 0 : 1));
  }
}

TEST_CASE("a launcher's variables that are missing, damaged or against each other are refused in one sentence") {
  std::mt19937 random(2);
  const std::vector<std::string> no_numbers = {"", "-1", "x", "1x", " 1", "1.5", "99999999999", "0x1"};
  for (const std::string& launcher : kLaunchers)
    for (int round = 0; round < 20; ++round) {
      const Hosts hosts = {{static_cast<int>(2 + random() % 6)}};
      const std::vector<Process> all = processes_of(hosts);
      Told told = told_by(launcher, hosts, all[random() % all.size()]);
      told.variables["MUONWALK_SECRET"] = kSecret;
      told.variables["MUONWALK_RENDEZVOUS"] = "localhost:4711";
      REQUIRE(find_launch({}, environment_of(told.variables)));
      for (const std::string& name : told.needed) {
        Variables partial = told.variables;
        partial.erase(name);
        expect_refused([&] { find_launch({}, environment_of(partial)); }, {launcher, name});
        CHECK(refusal_duty({}, environment_of(partial)).of_run);
      }
      for (const auto& [name, value] : told.variables) {
        if (name.find("RANK") == std::string::npos && name.find("SIZE") == std::string::npos &&
            name.find("PROCID") == std::string::npos && name.find("NUM_TASKS") == std::string::npos)
          continue;
        Variables damaged = told.variables;
        damaged[name] = no_numbers[random() % no_numbers.size()];
        expect_refused([&] { find_launch({}, environment_of(damaged)); }, {launcher, name});
        // One too many: a rank that is the size, more on this host than in all.
        const bool is_size = name.find("SIZE") != std::string::npos || name.find("NRANKS") != std::string::npos ||
                             name.find("NUM_TASKS") != std::string::npos;
        const bool is_local = name.find("LOCAL") != std::string::npos;
        if (is_size && !is_local) continue;
        damaged[name] = text(is_size ? hosts.world_size() + 1 : hosts.world_size());
        expect_refused([&] { find_launch({}, environment_of(damaged)); }, {launcher, name});
      }
    }
}

TEST_CASE("the inner launcher counts; a batch script, a shell in a job and stray variables are not a launch") {
  const Hosts four = {{4}}, two = {{2}};
  const auto with = [&](std::initializer_list<Variables> sets) {
    Variables all = {{"MUONWALK_SECRET", kSecret}, {"MUONWALK_RENDEZVOUS", "localhost:4711"}};
    for (const Variables& set : sets) all.insert(set.begin(), set.end());
    return find_launch({}, environment_of(all));
  };
  const Variables torchrun = told_by("torchrun", four, processes_of(four)[3]).variables;
  const Variables open_mpi = told_by("Open MPI", four, processes_of(four)[2]).variables;
  const Variables pmi = told_by("PMI", four, processes_of(four)[1]).variables;
  const Variables slurm = told_by("Slurm", two, processes_of(two)[1]).variables;
  CHECK(with({torchrun, slurm})->rank == 3);
  CHECK(with({torchrun, open_mpi})->launcher == "torchrun");
  CHECK(with({open_mpi, slurm})->launcher == "Open MPI");
  CHECK(with({pmi, slurm})->world_size == 4);
  CHECK(with({{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, slurm})->launcher == "Slurm");

  CHECK(!with({}));
  CHECK(!with({{{"RANK", "1"}, {"WORLD_SIZE", "4"}}}));
  CHECK(!with({{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "0"}}}));
  CHECK(!with({slurm, {{"SLURM_PTY_PORT", "1234"}}}));
  CHECK(with({told_by("Open MPI", {{1}}, {0, 0, 0, 1}).variables})->world_size == 1);
}

TEST_CASE("by hand: options win over the environment, and what is partial or contradicts itself is refused") {
  const Variables open_mpi = told_by("Open MPI", {{4}}, {2, 0, 2, 4}).variables;
  Variables variables = open_mpi;
  variables["MUONWALK_SECRET"] = kSecret;
  LaunchOptions options;
  options.rank = 1;
  options.world_size = 3;
  options.rendezvous = "127.0.0.1:4711";
  const Launch launch = find_launch(options, environment_of(variables)).value();
  CHECK(launch.rank == 1);
  CHECK(launch.world_size == 3);
  CHECK(launch.by_hand);
  CHECK(launch.rendezvous_port == 4711);
  CHECK(launch_text(launch) == "started by hand: rank 1 of 3 (--rank)");
  CHECK(refusal_duty(options, environment_of(variables)).of_host);
  CHECK(!refusal_duty(options, environment_of(variables)).of_run);

  variables["MUONWALK_RENDEZVOUS"] = "127.0.0.1:4712";
  CHECK(find_launch(options, environment_of(variables))->rendezvous_port == 4711);
  options.rendezvous.clear();
  CHECK(find_launch(options, environment_of(variables))->rendezvous_port == 4712);
  CHECK(find_launch({}, environment_of(variables))->rendezvous_port == 4712);  // for a launcher's ranks too
  options.rendezvous = "[::1]:65535";
  CHECK(find_launch(options, environment_of(variables))->address == "::1");
  CHECK(find_launch(options, environment_of(variables))->rendezvous_port == 65535);

  const auto refused = [&](const std::function<void(LaunchOptions&)>& change,
                           std::initializer_list<std::string> words) {
    LaunchOptions changed = options;
    change(changed);
    expect_refused([&] { find_launch(changed, environment_of(variables)); }, words);
  };
  options.rendezvous = "127.0.0.1:4711";
  refused([](LaunchOptions& o) { o.rank.reset(); }, {"--world-size 3", "--rank"});
  refused([](LaunchOptions& o) { o.world_size.reset(); }, {"--rank 1", "--world-size"});
  refused([](LaunchOptions& o) { o.rank = 3; }, {"--rank 3", "from 0 to 2"});
  refused([](LaunchOptions& o) { o.rank = -1; }, {"--rank -1"});
  refused([](LaunchOptions& o) { o.world_size = 0; }, {"--world-size 0"});
  refused([](LaunchOptions& o) { o.world_size = 70000; }, {"--world-size 70000"});
  for (const char* meeting : {"x", "localhost", ":4711", "localhost:", "localhost:0", "localhost:65536", "a:b:4711",
                              "::1:4711", "[::1]", "[]:4711", "localhost:4711 "})
    refused([&](LaunchOptions& o) { o.rendezvous = meeting; }, {"--rendezvous", meeting, "HOST:PORT"});
  refused([](LaunchOptions& o) { o.interface = "nothing0"; }, {"--interface nothing0", "lo"});
  refused([](LaunchOptions& o) { o.interface = "192.0.2.77"; }, {"--interface 192.0.2.77"});
  refused([](LaunchOptions& o) { o.rendezvous = "192.0.2.77:4711"; }, {"192.0.2.77", "--interface"});
  refused([](LaunchOptions& o) { o.rank = 0, o.interface = "lo", o.rendezvous = "192.0.2.77:4711"; },
          {"192.0.2.77", "127.0.0.1"});
  variables.erase("MUONWALK_RENDEZVOUS");
  refused([](LaunchOptions& o) { o.rendezvous.clear(); }, {"--rendezvous"});
  variables["MUONWALK_RENDEZVOUS"] = "nowhere";
  refused([](LaunchOptions& o) { o.rendezvous.clear(); }, {"MUONWALK_RENDEZVOUS nowhere"});
  variables.erase("MUONWALK_RENDEZVOUS");
  variables.erase("MUONWALK_SECRET");
  refused([](LaunchOptions&) {}, {"--secret-file", "MUONWALK_SECRET"});

  // Options that are for a launch only, without one.
  for (const auto member : {&LaunchOptions::rendezvous, &LaunchOptions::interface, &LaunchOptions::secret_file}) {
    LaunchOptions alone;
    alone.*member = "x";
    expect_refused([&] { find_launch(alone, environment_of({})); }, {"--rank", "--world-size", "mpirun"});
  }
  CHECK(!find_launch({}, environment_of({{"MUONWALK_SECRET", "x"}, {"MUONWALK_RENDEZVOUS", "x"}})));
}

TEST_CASE("two interfaces of one host: an address of the loopback's network is one of its addresses") {
  LaunchOptions options;
  options.rank = 1;
  options.world_size = 2;
  options.interface = "127.0.0.3";
  options.rendezvous = "127.0.0.2:4711";
  const Launch launch = find_launch(options, environment_of({{"MUONWALK_SECRET", kSecret}})).value();
  CHECK(launch.address == "127.0.0.3");
  CHECK(launch.rendezvous_host == "127.0.0.2");
}

TEST_CASE("Slurm's lists: the first node of any list is where ranks meet, and tasks per node say who is on this one") {
  LaunchOptions over_loopback;
  over_loopback.interface = "127.0.0.1";
  const std::vector<std::pair<const char*, const char*>> first_of = {
      {"a", "a"}, {"a,b", "a"}, {"a[1-3]", "a1"}, {"a[1,3]b", "a1b"}, {"a[07-9],b", "a07"}};
  const std::vector<std::pair<const char*, int>> here = {{"2,3", 3}, {"3,2", 2}, {"1(x2),3", 1}, {"5", 5}};
  for (const auto& [nodes, first] : first_of)
    for (const auto& [tasks, local_size] : here) {
      CAPTURE(nodes);
      CAPTURE(tasks);
      Variables slurm = told_by("Slurm", {{2, 3}}, {2, 1, 0, 3}).variables;
      slurm["SLURM_STEP_NODELIST"] = nodes;
      slurm["SLURM_STEP_TASKS_PER_NODE"] = tasks;
      slurm["MUONWALK_SECRET"] = kSecret;
      const Launch launch = *find_launch(over_loopback, environment_of(slurm));
      CHECK(launch.rendezvous_host == first);
      CHECK(launch.local_size == local_size);
      CHECK(launch.one_host == (local_size == 5));
    }
}
