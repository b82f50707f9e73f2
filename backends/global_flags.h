#pragma once

namespace rondo {

class Fingerprint;

/// Adds the switches of LibTorch by which the same code makes other operators, or operators other
/// bits: autocast, grad mode, deterministic algorithms, default dtype, threads, libraries.
void add_global_flags(Fingerprint& fingerprint);

}  // namespace rondo
