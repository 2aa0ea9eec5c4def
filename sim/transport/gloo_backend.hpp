#pragma once

// Private to gloo_device.cpp, which connects groups, and gloo_backend.cpp, which then moves their messages.

#include <chrono>
#include <memory>
#include <string>

#include "sim/transport/gloo_mesh.hpp"
#include "src/comm/backend.hpp"

namespace muonwalk::sim {

class LostPeerWatch;

/// The backend of a group that is connected. `device`, whose `watch` it is, is kept alive.
std::unique_ptr<Backend> over_mesh(const std::string& name, int rank, int size, std::shared_ptr<void> device,
                                   LostPeerWatch& watch, GlooMesh mesh, std::chrono::milliseconds timeout);

}  // namespace muonwalk::sim
