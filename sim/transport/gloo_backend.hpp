#pragma once

// Private to gloo_device.cpp, which connects groups, and gloo_backend.cpp, which then moves their messages.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "sim/transport/tcp_counters.hpp"
#include "src/comm/backend.hpp"

namespace gloo::rendezvous {
class Context;
}

namespace muonwalk::sim {

/// The backend of a group whose Gloo context is connected. `sockets` are those of the context; `device` is kept alive.
std::unique_ptr<Backend> over_connected_context(const std::string& name, int rank, int size,
                                                std::shared_ptr<void> device,
                                                std::shared_ptr<gloo::rendezvous::Context> context,
                                                std::vector<TcpSocket> sockets, std::chrono::milliseconds timeout);

/// The devices in this process. With more than one, its ranks are threads, whose sockets can't be told apart.
int gloo_devices_alive();

}  // namespace muonwalk::sim
