#include "tests/launch/launched.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace muonwalk::testing {

std::string program_beside(const std::string& name) {
  const std::string own = fault_program();
  return own.substr(0, own.rfind('/') + 1) + name;
}

std::string expected_screen(const std::string& lesson) {
  std::ifstream file(std::string(MUONWALK_LESSONS) + "/" + lesson + "/" + lesson + ".expected");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string without_first_line(const std::string& text) {
  const std::size_t end = text.find('\n');
  return end == std::string::npos ? "" : text.substr(end + 1);
}

std::vector<std::string> sentences_of(const std::string& program, const std::string& err) {
  std::vector<std::string> sentences;
  for (const std::string& line : lines_of(err))
    if (line.rfind(program + ": ", 0) == 0 && line.find(": started by ") == std::string::npos)
      sentences.push_back(line);
  return sentences;
}

void expect_one_sentence(const std::string& program, const std::string& err, const std::vector<std::string>& words) {
  CAPTURE(err);
  const std::vector<std::string> sentences = sentences_of(program, err);
  CHECK(sentences.size() == 1);
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK((!sentences.empty() && sentences[0].find(word) != std::string::npos));
  }
}

int free_port() {
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  REQUIRE(bind(file, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(getsockname(file, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  close(file);
  return ntohs(address.sin_port);
}

bool somebody_listens_at(int port) {
  // Of a line of the table: "0: 0100007F:1F90 0100007F:C350 0A …", where 0A is a listener.
  const std::string local = fmt::format(":{:04X}", port);
  for (double waited = 0; waited < kFaultLimitSeconds; waited += 0.01) {
    std::ifstream table("/proc/net/tcp");
    for (std::string line; std::getline(table, line);) {
      std::istringstream words(line);
      std::string number, own, theirs, state;
      words >> number >> own >> theirs >> state;
      if (own.size() > 8 && own.substr(8) == local && state == "0A") return true;
    }
    usleep(10000);
  }
  return false;
}

Program& ByHand::start(int rank, std::vector<std::string> command, int of) {
  const std::string world_size = std::to_string(of > 0 ? of : world_size_);
  for (const std::string& word :
       {std::string("--rank"), std::to_string(rank), std::string("--world-size"), world_size,
        std::string("--rendezvous"), "127.0.0.1:" + std::to_string(port_), std::string("--secret-file"), secret_file()})
    command.push_back(word);
  programs_.push_back(std::make_unique<Program>(command));
  return *programs_.back();
}

void ByHand::start_all(const std::vector<std::string>& command) {
  for (int rank = 0; rank < world_size_; ++rank) start(rank, command);
}

void ByHand::write_secret(const std::string& text) const {
  std::ofstream(secret_file()) << text << '\n';
  REQUIRE(chmod(secret_file().c_str(), 0600) == 0);
}

void ByHand::expect_nothing_left() const {
  for (const auto& program : programs_) CHECK(wait_until_gone(program->pid(), 5));
}

}  // namespace muonwalk::testing
