#include "sim/transport/secret.hpp"

#include <sodium.h>

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

static_assert(crypto_auth_KEYBYTES == sizeof(Secret) && crypto_auth_BYTES == sizeof(Proof),
              "libsodium's keys and proofs are as long as ours");

std::string told(const std::string& group, int prover, int verifier, const Challenge& theirs, const Challenge& own) {
  std::string text = "muonwalk " + group + ' ' + std::to_string(prover) + ' ' + std::to_string(verifier) + ' ';
  text.append(theirs.begin(), theirs.end());
  text.append(own.begin(), own.end());
  return text;
}

const unsigned char* bytes_of(const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

std::array<unsigned char, 32> random_bytes() {
  if (sodium_init() < 0)
    throw RunError(
        "the ranks need a secret to know each other by, but this system gives no random numbers; see that "
        "/dev/urandom can be read");
  std::array<unsigned char, 32> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  return bytes;
}

Proof proof_of(const Secret& secret, const std::string& group, int prover, int verifier, const Challenge& theirs,
               const Challenge& own) {
  const std::string text = told(group, prover, verifier, theirs, own);
  Proof proof;
  crypto_auth(proof.data(), bytes_of(text), text.size(), secret.data());
  return proof;
}

bool proves(const Proof& proof, const Secret& secret, const std::string& group, int prover, int verifier,
            const Challenge& theirs, const Challenge& own) {
  const std::string text = told(group, prover, verifier, theirs, own);
  return crypto_auth_verify(proof.data(), bytes_of(text), text.size(), secret.data()) == 0;
}

}  // namespace muonwalk::sim
