#pragma once
// The generator behind every input: Philox4x32-10, a counter-based generator made of integer operations only, so that
// element e of a matrix depends on (seed, matrix, e) alone, whatever the machine or the number of threads.
// Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011, section 4.3.

#include <array>
#include <cstdint>

namespace ladder {

namespace philox_detail {
constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
constexpr int kRounds = 10;
}  // namespace philox_detail

/// One block: four words of counter and two of key make four random words.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  using namespace philox_detail;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

/// Which numbers a counter is for; the third counter word.
enum class Stream : uint32_t { matrix_a = 0, matrix_b = 1, projection = 2, samples = 3, canary = 4 };

constexpr int kPhiloxLanes = 16;
/// word[w][lane] is word w of block first_block + lane.
struct PhiloxBatch {
  uint32_t word[4][kPhiloxLanes];
};

/// Sixteen consecutive blocks side by side, in a form that compilers turn into vector code.
/// Counter of block b: {low half of b, high half of b, stream, 0}; key: {low half of seed, high half of seed}.
inline PhiloxBatch philox_batch(uint64_t seed, Stream stream, uint64_t first_block) {
  using namespace philox_detail;
  PhiloxBatch c;
  for (int lane = 0; lane < kPhiloxLanes; ++lane) {
    const uint64_t block = first_block + static_cast<uint64_t>(lane);
    c.word[0][lane] = static_cast<uint32_t>(block);
    c.word[1][lane] = static_cast<uint32_t>(block >> 32);
    c.word[2][lane] = static_cast<uint32_t>(stream);
    c.word[3][lane] = 0;
  }
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    for (int lane = 0; lane < kPhiloxLanes; ++lane) {
      const uint64_t product0 = uint64_t{kMultiplier0} * c.word[0][lane];
      const uint64_t product1 = uint64_t{kMultiplier1} * c.word[2][lane];
      const uint32_t word1 = c.word[1][lane], word3 = c.word[3][lane];
      c.word[0][lane] = static_cast<uint32_t>(product1 >> 32) ^ word1 ^ key0;
      c.word[1][lane] = static_cast<uint32_t>(product1);
      c.word[2][lane] = static_cast<uint32_t>(product0 >> 32) ^ word3 ^ key1;
      c.word[3][lane] = static_cast<uint32_t>(product0);
    }
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return c;
}

/// A plain sequence of words, for everything that needs few of them.
class PhiloxSequence {
 public:
  PhiloxSequence(uint64_t seed, Stream stream) : seed_(seed), stream_(stream) {}
  uint32_t next() {
    if (used_ == 4) {
      words_ = philox4x32(
          {static_cast<uint32_t>(block_), static_cast<uint32_t>(block_ >> 32), static_cast<uint32_t>(stream_), 0},
          {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
      ++block_;
      used_ = 0;
    }
    return words_[static_cast<size_t>(used_++)];
  }
  /// 0 <= result < bound, for bound up to 2^32; the bias is below bound / 2^32 and of no consequence here.
  int64_t below(int64_t bound) { return static_cast<int64_t>((uint64_t{next()} * static_cast<uint64_t>(bound)) >> 32); }

 private:
  uint64_t seed_, block_ = 0;
  Stream stream_;
  std::array<uint32_t, 4> words_{};
  int used_ = 4;
};

}  // namespace ladder
