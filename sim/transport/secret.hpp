#pragma once

#include <array>
#include <string>

namespace muonwalk::sim {

/// What the ranks of one run know and nobody else: 32 random bytes, made before the ranks start.
using Secret = std::array<unsigned char, 32>;
/// A number that is used once: what a rank asks its peer to prove itself with.
using Challenge = std::array<unsigned char, 32>;
/// Proof that its sender knows the secret and has seen the challenge.
using Proof = std::array<unsigned char, 32>;

/// 32 bytes from the system's source of random numbers. Throws RunError where it has none.
std::array<unsigned char, 32> random_bytes();

/// The proof of rank `prover` of `group` for rank `verifier`, who sent the challenge `theirs` while the prover sent
/// `own`: HMAC-SHA-512-256 (RFC 2104, as libsodium's crypto_auth) under the secret. Group, ranks and both challenges go
/// into it, so a proof that was overheard or reflected proves nothing.
Proof proof_of(const Secret& secret, const std::string& group, int prover, int verifier, const Challenge& theirs,
               const Challenge& own);

/// True when `proof` is the proof of these arguments; takes the same time wherever they differ.
bool proves(const Proof& proof, const Secret& secret, const std::string& group, int prover, int verifier,
            const Challenge& theirs, const Challenge& own);

}  // namespace muonwalk::sim
