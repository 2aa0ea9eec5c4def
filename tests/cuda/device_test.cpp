#include "src/cuda/device.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/cuda/kernels.hpp"
#include "src/errors.hpp"
#include "tests/cuda/stand_in.hpp"

using namespace muonwalk;
using namespace muonwalk::cuda;

namespace {

template <class Function>
std::string what_it_says(const Function& function) {
  try {
    function();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("device: copies in any direction arrive when the stream has been waited for") {
  {
    const Device device(0);
    const Stream stream(device);
    std::vector<float> host(35), back(35, -1.0f);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);
    DeviceArray<float> there(device, 35), other(device, 35);
    copy(stream, there.data(), host.data(), 35);
    copy(stream, other.data(), static_cast<const float*>(there.data()), 35);
    copy(stream, back.data(), static_cast<const float*>(other.data()), 35);
    CHECK(back[34] == -1.0f);
    stream.wait();
    CHECK(back == host);
    CHECK(is_device_pointer(there.data() + 34));
    CHECK_FALSE(is_device_pointer(host.data()));
    CHECK(muonwalk_stand_in_live_bytes() == 280);
  }
  CHECK(muonwalk_stand_in_live_bytes() == 0);
  CHECK(muonwalk_stand_in_live_objects() == 0);
}

TEST_CASE(
    "device: copies of any number of rows, of any width and strides, put each element in its place and no other") {
  {
    const Device device(0);
    const Stream stream(device);
    for (Index rows = 0; rows <= 4; ++rows)
      for (Index cols = 0; cols <= 4; ++cols)
        for (Index to_more = 0; to_more <= 2; ++to_more)
          for (Index from_more = 0; from_more <= 2; ++from_more) {
            CAPTURE(rows);
            CAPTURE(cols);
            const Index to_stride = cols + to_more, from_stride = cols + from_more;
            std::vector<float> host(40), back(40, -1.0f);
            for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);
            std::vector<float> expected = back;
            for (Index row = 0; row < rows; ++row)
              for (Index col = 0; col < cols; ++col)
                expected[static_cast<std::size_t>(row * to_stride + col)] =
                    host[static_cast<std::size_t>(row * from_stride + col)];
            DeviceArray<float> there(device, 40), other(device, 40);
            copy(stream, there.data(), static_cast<const float*>(host.data()), 40);
            copy(stream, other.data(), static_cast<const float*>(back.data()), 40);
            copy_rows(stream, other.data(), to_stride, static_cast<const float*>(there.data()), from_stride, rows,
                      cols);
            copy(stream, back.data(), static_cast<const float*>(other.data()), 40);
            stream.wait();
            CHECK(back == expected);
            set_to_zero(stream, there.data(), rows * cols * Index{sizeof(float)});
            copy(stream, back.data(), static_cast<const float*>(there.data()), 40);
            stream.wait();
            for (Index i = 0; i < 40; ++i)
              CHECK(back[static_cast<std::size_t>(i)] == (i < rows * cols ? 0.0f : static_cast<float>(i)));
          }
  }
  CHECK(muonwalk_stand_in_live_bytes() == 0);
}

TEST_CASE("device: after an error, a copy to the host writes there no more") {
  {
    const Device device(0);
    const Stream stream(device);
    const DeviceArray<float> array(device, 8);
    std::vector<float> host(8);
    muonwalk_stand_in_fail("cuStreamQuery:1:CUDA_ERROR_UNKNOWN");
    CHECK(what_it_says([&] { copy_to_host(stream, host.data(), array.data(), 8); }).find("cuStreamQuery") == 0);
    host.assign(8, -1.0f);
    stream.wait();
    CHECK(host == std::vector<float>(8, -1.0f));
  }
  muonwalk_stand_in_fail("");
}

TEST_CASE("device: addresses of the host where the device's belong, or beyond an array, are errors") {
  {
    const Device device(0);
    const Kernels kernels(device);
    const Stream stream(device);
    DeviceArray<float> array(device, 16);
    std::vector<float> host(32);
    CHECK(what_it_says([&] { copy(stream, array.data() + 1, host.data(), 16); }).find("cuMemcpyAsync of 64 bytes") ==
          0);
    CHECK(what_it_says([&] { set_to_zero(stream, host.data(), 4); }).find("cuMemsetD8Async of 4 bytes") == 0);
    kernels.scale_to_bf16(stream, 1, host.data(), 16, array.data());
    CHECK(what_it_says([&] { stream.wait(); }).find("CUDA_ERROR_ILLEGAL_ADDRESS") != std::string::npos);
    muonwalk_stand_in_fail("");
  }
  CHECK(muonwalk_stand_in_live_objects() == 0);
}

TEST_CASE(
    "device: an error is a sentence with holder, call, device and CUDA's name; one of the work is told by the wait") {
  {
    const Device device(0, "rank 3");
    const Stream stream(device);
    DeviceArray<float> array(device, 4);
    muonwalk_stand_in_fail("cuMemAlloc:1:CUDA_ERROR_UNKNOWN");
    CHECK(what_it_says([&] { DeviceArray<float>(device, 4); }) ==
          "rank 3: cuMemAlloc of 16 bytes failed on device 0 (stand-in 0): CUDA_ERROR_UNKNOWN (unknown error)");
    muonwalk_stand_in_fail("cuMemcpyAsync:1:CUDA_ERROR_ILLEGAL_ADDRESS:later");
    std::vector<float> host(4);
    copy(stream, array.data(), host.data(), 4);
    CHECK(what_it_says([&] { stream.wait(); }) ==
          "rank 3: cuStreamQuery (work that was handed in before) failed on device 0 (stand-in 0): "
          "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)");
    CHECK(what_it_says([&] { copy(stream, array.data(), host.data(), 4); }) != "");
  }
  muonwalk_stand_in_fail("");
  CHECK(muonwalk_stand_in_live_bytes() == 0);
  CHECK(muonwalk_stand_in_live_objects() == 0);
}
