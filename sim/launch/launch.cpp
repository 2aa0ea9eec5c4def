#include "sim/launch/launch.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kMostProcesses = 1 << 16;
// Reads the variables of one launcher.
class Variables {
 public:
  Variables(const Environment& environment, std::string launcher)
      : environment_(environment), launcher_(std::move(launcher)) {}

  bool has(const std::string& name) const { return environment_(name).has_value(); }
  std::string text(const std::string& name) const { return environment_(name).value_or(""); }

  int number(const std::string& name, int least, int most, const std::string& of) const {
    const std::optional<std::string> value = environment_(name);
    if (!value) refuse(fmt::format("{} is not set", name), fmt::format("a process of {} has it", launcher_));
    const std::optional<int> number = whole_number(*value, least, most);
    if (!number)
      refuse(fmt::format("{} is {}", name, as_typed(*value)), fmt::format("{} is from {} to {}", of, least, most));
    return *number;
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& expected) const {
    throw UsageError(
        fmt::format("the environment says that {} started this process, but {}, and {}; start it with {} "
                    "again, or say who it is with --rank and --world-size",
                    launcher_, what, expected, launcher_));
  }

 private:
  const Environment& environment_;
  std::string launcher_;
};

// Rank and size from two variables, and the same on this host where there are variables for it.
Launch rank_of(const Variables& variables, const std::string& launcher, const std::string& rank,
               const std::string& size, const std::string& local_rank, const std::string& local_size) {
  Launch launched;
  launched.launcher = launcher;
  launched.told_by = rank;
  launched.local_size = launched.world_size = variables.number(size, 1, kMostProcesses, "a number of processes");
  launched.local_rank = launched.rank =
      variables.number(rank, 0, launched.world_size - 1, fmt::format("a rank of {}", launched.world_size));
  launched.local_known = variables.has(local_size);
  if (launched.local_known)
    launched.local_size = variables.number(local_size, 1, launched.world_size, "the number of those on this host");
  if (variables.has(local_rank))
    launched.local_rank = variables.number(local_rank, 0, launched.local_size - 1, "a rank among those on this host");
  return launched;
}

Launch torchrun_rank(const Environment& environment) {
  const Variables variables(environment, "torchrun");
  Launch launched = rank_of(variables, "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  if (variables.has("MASTER_ADDR") || variables.has("MASTER_PORT")) {
    // torchrun's own store listens at this port, so ours takes the next one.
    const int port = variables.number("MASTER_PORT", 1, kMostPort - 1, "a port that has one after it");
    if (variables.text("MASTER_ADDR").empty())
      variables.refuse("MASTER_PORT comes without MASTER_ADDR", "both say where the ranks meet");
    launched.rendezvous_host = variables.text("MASTER_ADDR");
    launched.rendezvous_port = port + 1;
  }
  return launched;
}

Launch open_mpi_rank(const Environment& environment) {
  const Variables variables(environment, "Open MPI");
  Launch launched = rank_of(variables, "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
  if (const std::string folder = variables.text("PMIX_SERVER_TMPDIR"); !folder.empty()) {
    std::string job = variables.text("PMIX_NAMESPACE");
    for (char& c : job)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    launched.session_file = folder + "/muonwalk-" + job.substr(0, 100);
  }
  return launched;
}

Launch pmi_rank(const Environment& environment) {
  return rank_of(Variables(environment, "PMI"), "PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS");
}

// How many tasks Slurm has on a node, of a list such as "2(x3),1"; nothing where it can't be told.
std::optional<int> tasks_on_node(const std::string& list, int node) {
  for (const std::string& word : split_at(list, ',')) {
    const std::size_t bracket = word.find("(x");
    const std::optional<int> tasks = whole_number(word.substr(0, bracket), 1, kMostProcesses);
    int nodes = 1;
    if (bracket != std::string::npos && word.back() == ')')
      nodes = whole_number(word.substr(bracket + 2, word.size() - bracket - 3), 1, kMostProcesses).value_or(0);
    if (!tasks || nodes == 0) return std::nullopt;
    if (node < nodes) return tasks;
    node -= nodes;
  }
  return std::nullopt;
}

// The first host of a list such as "node[01-03,05],other".
std::string first_host(const std::string& list) {
  const std::size_t end = list.find_first_of(",[");
  if (end == std::string::npos || list[end] == ',') return list.substr(0, end);
  const std::size_t first = list.find_first_of(",-]", end);
  const std::size_t close = list.find(']', end);
  if (first == std::string::npos || close == std::string::npos) return "";
  const std::size_t next = list.find(',', close);
  const std::size_t rest = next == std::string::npos ? list.size() : next;
  return list.substr(0, end) + list.substr(end + 1, first - end - 1) + list.substr(close + 1, rest - close - 1);
}

Launch slurm_rank(const Environment& environment) {
  const Variables variables(environment, "Slurm");
  Launch launched = rank_of(variables, "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "");
  const int node = whole_number(variables.text("SLURM_NODEID"), 0, kMostProcesses).value_or(0);
  const std::optional<int> tasks = variables.text("SLURM_STEP_NUM_NODES") == "1"
                                       ? launched.world_size
                                       : tasks_on_node(variables.text("SLURM_STEP_TASKS_PER_NODE"), node);
  launched.local_known = tasks.has_value();
  launched.local_size = tasks.value_or(launched.world_size);
  launched.rendezvous_host = first_host(variables.text("SLURM_STEP_NODELIST"));
  if (!launched.rendezvous_host.empty()) {
    // Slurm gives no port. This one is the same for all processes of a step, and another for most others; ports that
    // the system gives to whoever asks for any begin later.
    const auto number = [&](const char* name) { return std::strtoull(variables.text(name).c_str(), nullptr, 10); };
    const std::uint64_t step = number("SLURM_JOB_ID") * 131 + number("SLURM_STEP_ID");
    launched.rendezvous_port = static_cast<int>(20000 + step % 10000);
  }
  return launched;
}

Launch rank_by_hand(const LaunchOptions& options) {
  if (!options.rank || !options.world_size)
    throw UsageError(fmt::format("{} {} says only half of who this process is; --rank R and --world-size N go together",
                                 options.rank ? "--rank" : "--world-size",
                                 options.rank ? *options.rank : *options.world_size));
  Launch launched;
  launched.rank = launched.local_rank = *options.rank;
  launched.world_size = launched.local_size = *options.world_size;
  launched.by_hand = true;
  launched.launcher = "hand";
  launched.told_by = "--rank";
  if (launched.world_size < 1 || launched.world_size > kMostProcesses)
    throw UsageError(fmt::format("--world-size {} is not a number of processes; it takes one from 1 to {}",
                                 launched.world_size, kMostProcesses));
  if (launched.rank < 0 || launched.rank >= launched.world_size)
    throw UsageError(fmt::format("--rank {} is not a rank of --world-size {}; it takes one from 0 to {}", launched.rank,
                                 launched.world_size, launched.world_size - 1));
  return launched;
}

struct InterfaceAddress {
  std::string name, address;
};

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = {};
  return getnameinfo(address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

// The addresses of the interfaces that are up, those of IPv4 first.
std::vector<InterfaceAddress> addresses_here() {
  std::vector<InterfaceAddress> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family || (one->ifa_flags & IFF_UP) == 0) continue;
      const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      found.push_back({one->ifa_name, numeric(one->ifa_addr, length)});
    }
  return found;
}

// The interfaces of this host that are up and have an address, for a sentence: "lo, eth0".
std::string interface_names() {
  std::vector<std::string> names;
  for (const InterfaceAddress& one : addresses_here())
    if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
  return visible_names(names);
}

// The numeric address of what `--interface` says: the name of an interface of this host, whose first address it is
// (IPv4 before IPv6), or one of this host's addresses itself.
std::string interface_address(const std::string& name_or_address) {
  for (const InterfaceAddress& one : addresses_here())
    if (one.name == name_or_address || one.address == name_or_address) return one.address;
#if defined(__linux__)
  // All of 127.0.0.0/8 is this host's, though the interface lists only the first.
  in_addr own = {};
  if (inet_pton(AF_INET, name_or_address.c_str(), &own) == 1 && ntohl(own.s_addr) >> 24 == 127) return name_or_address;
#endif
  const std::string names = interface_names();
  throw UsageError(fmt::format(
      "--interface {} is neither an interface of this host that has an address nor one of its addresses; it has {}",
      as_typed(name_or_address), names.empty() ? "none" : names));
}

// True when all addresses of a host are on the loopback. Refuses where it has none.
bool is_loopback(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (error != 0)
    throw UsageError(fmt::format(
        "no address is known of {}, where the ranks are to meet: {}; give a host that all of them know, or its address",
        in_quotes(host), error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(one->ai_addr);
      if ((ntohl(address->sin_addr.s_addr) >> 24) != 127) return false;
    } else if (one->ai_family == AF_INET6) {
      if (!IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(one->ai_addr)->sin6_addr)) return false;
    }
  }
  return true;
}

// Where to meet: "HOST:PORT", an IPv6 address in brackets.
void choose_meeting(const std::string& text, const std::string& from, Launch& launch) {
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  std::string host = text.substr(0, colon);
  const std::optional<int> port = whole_number(text.substr(std::min(colon + 1, text.size())), 1, kMostPort);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of(":[]") != std::string::npos)
    host.clear();
  if (host.empty() || !port)
    throw UsageError(
        fmt::format("{} {} does not say where to meet; it takes HOST:PORT with a port from 1 to {}, for example "
                    "10.0.0.1:29500 or [fd00::1]:29500",
                    from, as_typed(text), kMostPort));
  launch.rendezvous_host = host;
  launch.rendezvous_port = *port;
}

bool is_numeric(const std::string& host) {
  in6_addr ignored;
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 || inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

std::string who_started(const Launch& launch) {
  return launch.by_hand ? fmt::format("the {} ranks of --world-size", launch.world_size)
                        : fmt::format("the {} processes of {}", launch.world_size, launch.launcher);
}

void choose_address(const LaunchOptions& options, Launch& launch) {
  const bool several_hosts = launch.local_size < launch.world_size;
  if (!options.interface.empty()) {
    launch.address = interface_address(options.interface);
    launch.one_host = launch.local_known ? !several_hosts : is_loopback(launch.address);
    if (launch.rank == 0 && is_numeric(launch.rendezvous_host) && launch.rendezvous_host != launch.address)
      throw UsageError(
          fmt::format("rank 0 can't listen at {}, where the ranks are to meet, because --interface {} has the address "
                      "{}; give one of the two for both",
                      launch.rendezvous_host, as_typed(options.interface), launch.address));
    if (launch.rendezvous_host.empty() && launch.one_host) launch.rendezvous_host = launch.address;
    return;
  }
  // Without --interface nothing but the loopback is opened.
  if (several_hosts)
    throw UsageError(
        fmt::format("{} are on several hosts, but without --interface nothing but the loopback of each is opened; add "
                    "--interface and the network that joins them (this host has {})",
                    who_started(launch), interface_names()));
  if (!launch.local_known && !launch.rendezvous_host.empty() && !is_loopback(launch.rendezvous_host))
    throw UsageError(
        fmt::format("the ranks are to meet at {}, but without --interface nothing but the loopback of this host is "
                    "opened; add --interface and the network that joins them (this host has {})",
                    visible_name(launch.rendezvous_host), interface_names()));
  launch.address = launch.rendezvous_host == "::1" ? "::1" : "127.0.0.1";
  launch.rendezvous_host = launch.address;
}

void choose_secret(const LaunchOptions& options, const Environment& environment, Launch& launch) {
  const std::optional<std::string> in_environment = environment("MUONWALK_SECRET");
  if (!options.secret_file.empty())
    launch.secret = secret_from_file(options.secret_file);
  else if (in_environment)
    launch.secret = secret_from_text(*in_environment, "MUONWALK_SECRET");
  const bool complete = launch.secret && launch.rendezvous_port != 0;
  if (complete || !launch.one_host) launch.session_file.clear();
  if (!launch.session_file.empty()) return;
  if (!launch.secret)
    throw UsageError(fmt::format(
        "{} need a secret to know each other by, and there is none; give every rank the same one with --secret-file "
        "FILE or in MUONWALK_SECRET, made for example with: (umask 077; head -c 32 /dev/urandom | base64 > secret)",
        who_started(launch)));
  if (launch.rendezvous_port == 0)
    throw UsageError(
        fmt::format("{} don't know where to meet; add --rendezvous HOST:PORT, or MUONWALK_RENDEZVOUS in the "
                    "environment, with rank 0's host and a free port of it",
                    who_started(launch)));
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::optional<int> whole_number(const std::string& text, int least, int most) {
  const std::optional<int> number = number_from<int>(text);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

std::optional<Launch> find_launched_rank(const LaunchOptions& options, const Environment& environment) {
  const auto has = [&](const char* name) { return environment(name).has_value(); };
  if (options.rank || options.world_size) return rank_by_hand(options);
  // RANK and WORLD_SIZE alone may be left over from anything.
  if (has("TORCHELASTIC_RUN_ID")) return torchrun_rank(environment);
  if (has("OMPI_COMM_WORLD_RANK") || has("OMPI_COMM_WORLD_SIZE")) return open_mpi_rank(environment);
  // A batch script has SLURM_PROCID too; a shell for a person (srun --pty) is a step of one task. Neither is a rank.
  const bool step = has("SLURM_STEP_NUM_TASKS") && has("SLURM_PROCID") && !has("SLURM_PTY_PORT");
  if (has("PMI_RANK") || has("PMI_SIZE")) {
    // Slurm sets these too, for programs that speak PMI.
    const bool same = environment("PMI_RANK") == environment("SLURM_PROCID") &&
                      environment("PMI_SIZE") == environment("SLURM_STEP_NUM_TASKS");
    if (!step || !same) return pmi_rank(environment);
  }
  if (step) return slurm_rank(environment);
  return std::nullopt;
}

std::optional<Launch> find_launch(const LaunchOptions& options, const Environment& environment) {
  std::optional<Launch> launch = find_launched_rank(options, environment);
  if (!launch) {
    const std::vector<std::pair<std::string, const std::string*>> left = {{"--rendezvous", &options.rendezvous},
                                                                          {"--interface", &options.interface},
                                                                          {"--secret-file", &options.secret_file}};
    for (const auto& [name, value] : left)
      if (!value->empty())
        throw UsageError(
            fmt::format("{} {} is for ranks that are started one by one, and nothing says that this is one; start it "
                        "with mpirun, srun or torchrun, or add --rank and --world-size",
                        name, as_typed(*value)));
    return std::nullopt;
  }
  if (const auto meeting = environment("MUONWALK_RENDEZVOUS")) choose_meeting(*meeting, "MUONWALK_RENDEZVOUS", *launch);
  if (!options.rendezvous.empty()) choose_meeting(options.rendezvous, "--rendezvous", *launch);
  const bool meets_nobody = launch->world_size == 1;
  if (meets_nobody && options.interface.empty()) launch->rendezvous_host.clear();
  choose_address(options, *launch);
  if (meets_nobody)
    launch->session_file.clear();
  else
    choose_secret(options, environment, *launch);
  return launch;
}

std::string launch_text(const Launch& launch) {
  return fmt::format("started by {}: rank {} of {} ({})", launch.launcher, launch.rank, launch.world_size,
                     launch.told_by);
}

RefusalDuty refusal_duty(const LaunchOptions& options, const Environment& environment) {
  RefusalDuty duty;
  try {
    const std::optional<Launch> launch = find_launched_rank(options, environment);
    if (!launch) return duty;
    duty.of_run = launch->rank == 0;
    duty.of_host = launch->by_hand || launch->local_rank == 0;
  } catch (const UsageError&) {
    // Who this process is can't be told, so nobody else may be relied on to print it.
  }
  return duty;
}

}  // namespace muonwalk::sim
