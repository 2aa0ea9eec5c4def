#pragma once

#include <string>
#include <vector>

#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/fault_cases.hpp"

namespace muonwalk::testing {

/// The path of a program that lies beside this test's own.
std::string program_beside(const std::string& name);

/// What a lesson's file NAME.expected holds.
std::string expected_screen(const std::string& lesson);

/// A text without its first line.
std::string without_first_line(const std::string& text);

/// The lines that `program` has written in its own name: a launcher writes its own lines around them. Without the one
/// that says who has started it.
std::vector<std::string> sentences_of(const std::string& program, const std::string& err);

/// Expects exactly one such line, and in it all of these words.
void expect_one_sentence(const std::string& program, const std::string& err, const std::vector<std::string>& words);

/// A port of the loopback that was free a moment ago.
int free_port();

/// Waits until somebody listens at this port of the loopback; false when nobody does after kFaultLimitSeconds.
bool somebody_listens_at(int port);

/// Processes of one run that are started by hand, each with its own --rank; and a file with their secret.
class ByHand {
 public:
  /// They are to be `world_size`, and meet at a port that is free now.
  explicit ByHand(int world_size) : world_size_(world_size), port_(free_port()) {
    write_secret("a secret of this test");
  }

  /// Starts rank `rank` with these words; as one of `of`, where that is a number other than theirs.
  Program& start(int rank, std::vector<std::string> command, int of = 0);
  /// Starts all ranks with the same words.
  void start_all(const std::vector<std::string>& command);
  /// The processes in the order in which they were started.
  Program& operator[](std::size_t started) { return *programs_[started]; }

  /// Their secret from here on; the file is theirs alone.
  void write_secret(const std::string& text) const;
  std::string secret_file() const { return folder_.file("secret"); }
  int port() const { return port_; }

  /// Expects that nothing is left of any of them.
  void expect_nothing_left() const;

 private:
  int world_size_;
  int port_;
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<Program>> programs_;
};

}  // namespace muonwalk::testing
