#pragma once
// What the clusters of a running grid do to global memory, and what they hand over there: shared by all of them.
//
// Of each byte: who wrote it last, what atomic and other strong writes have come since, and two of those who have read
// it. Threads reach global memory in rows, so what is kept is kept by sectors of 32 bytes, and of a row it takes one
// stamp a sector. Readers beyond two are forgotten: an overwrite that comes too early for one of them only is not seen.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "emulator/hazards/record.h"
#include "emulator/machine/device.h"

namespace emu::hazards {

/// Accesses of one instruction to bytes of a sector.
struct Stamp {
  uint32_t cluster = 0;
  uint32_t when = 0;   ///< time of the agent
  uint32_t bytes = 0;  ///< bit i: byte i of the sector; 0: nobody
  uint32_t source = 0;
  uint16_t agent = 0;   ///< a warp; or the channel where it is known to be done
  uint16_t issuer = 0;  ///< the warp
  // Byte i was lane + (i >> shift)'s; kWhole: all lanes of the warp together, or an asynchronous operation.
  int8_t lane = 0;
  uint8_t shift = 0;
  Kind kind = Kind::load;
  bool strong = false;

  static constexpr uint8_t kWhole = 255;
  static constexpr Agent kMostAgent = 0xFFFF;  ///< what completes on a channel beyond is not remembered
  bool asynchronous() const { return agent != issuer; }
  /// But for the bytes.
  bool same(const Stamp& other) const {
    return cluster == other.cluster && when == other.when && source == other.source && agent == other.agent &&
           lane == other.lane && shift == other.shift && kind == other.kind && issuer == other.issuer;
  }
  uint32_t lanes(uint32_t byte) const { return shift == kWhole ? ~0u : 1u << ((lane + (byte >> shift)) & 31); }
};

/// A strong write to a word by lanes of a warp.
struct StrongWrite {
  uint32_t cluster = 0, when = 0, lanes = 0, source = 0;
  uint16_t agent = 0, issuer = 0;
  Kind kind = Kind::atomic;
};

/// Lanes' accesses to bytes that follow each other, or an asynchronous operation's.
struct GlobalPiece {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t lanes = 0;
  int lane = 0;                           ///< the first
  uint8_t shift = 0;                      ///< log2 of the bytes of a lane; or
  static constexpr uint8_t kOneLane = 5;  ///< all of them are one lane's; or Stamp::kWhole
};

/// What strong writes to a place hand over.
struct Handed {
  View wide;                          ///< of all clusters, all of it foreign
  std::shared_ptr<const View> close;  ///< of the asking cluster, at whatever scope
  bool released = false;              ///< by whomever
  uint64_t number = 0;                ///< of the last that was told there
};

class GlobalShadow {
 public:
  static constexpr uint64_t kPageBytes = 4096, kSectorBytes = 32;
  static constexpr size_t kSectors = kPageBytes / kSectorBytes;

  /// Sectors with more than one writer.
  struct Crowd {
    using Strong = std::array<std::vector<StrongWrite>, 8>;  ///< since the last plain one, by word
    std::vector<Stamp> plain;                                ///< besides Written::last; no byte is in two
    std::unique_ptr<Strong> strong;
  };
  struct Written {
    uint32_t bytes = 0;  ///< ever
    uint32_t crowd = 0;  ///< number + 1
    Stamp last;          ///< plain
  };
  struct Reader : Stamp {
    uint32_t overwritten = 0;  ///< bytes that it has read and that have been written since
  };
  using Readers = std::array<Reader, 2>;
  struct Page {
    std::unique_ptr<std::array<Written, kSectors>> written;
    std::unique_ptr<std::array<Readers, kSectors>> read;
    std::vector<Crowd> crowds;
    bool remembers_readers = true;

    Crowd& crowd(Written& sector) {
      if (!sector.crowd) {
        crowds.emplace_back();
        sector.crowd = static_cast<uint32_t>(crowds.size());
      }
      return crowds[sector.crowd - 1];
    }
    void lock() {
      while (busy_.test_and_set(std::memory_order_acquire))
        while (busy_.test(std::memory_order_relaxed)) std::this_thread::yield();
    }
    void unlock() { busy_.clear(std::memory_order_release); }

    // The page must be locked.
    void add_reader(size_t sector, const Stamp& reader);
    void add_plain(size_t sector, const Stamp& writer);
    /// `known`: whether the writer knows of an earlier strong write of its own warp.
    template <class Known>
    void add_strong(size_t sector, uint32_t word, const StrongWrite& writer, uint32_t bytes, Known&& known);

   private:
    std::atomic_flag busy_;
  };
  /// Stays where it is as long as the grid runs. nullptr where it is not there and `create` is false.
  Page* page(uint64_t number, bool create);

  /// As if nobody had ever been there: memory that is given out anew.
  void forget(uint64_t address, uint64_t bytes);

  /// Of the bytes that have been written, as they are now.
  uint64_t fingerprint(const GlobalMemory& memory) const;

  /// A strong write to a place: `own` and `foreign` are what its thread has seen of its cluster and of others.
  void tell(uint64_t address, uint64_t cluster, const std::shared_ptr<const View>& own, const Foreign& foreign);
  /// ... behind a release, or one itself. `wide`: to other clusters as well.
  void release(uint64_t address, uint64_t cluster, const View& view, bool wide);
  bool anything_handed() const { return told_.load(std::memory_order_acquire) != 0; }
  bool handed(uint64_t address, uint64_t cluster, Handed& to) const;

 private:
  struct Place {
    View wide;
    std::unordered_map<uint64_t, std::shared_ptr<const View>> close;
    uint64_t number = 0;
  };
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::atomic<uint64_t> told_ = 0;
  std::unordered_map<uint64_t, Place> handed_;
};

template <class Known>
void GlobalShadow::Page::add_strong(size_t sector, uint32_t word, const StrongWrite& writer, uint32_t bytes,
                                    Known&& known) {
  if (!written) written = std::make_unique<std::array<Written, kSectors>>();
  Written& state = (*written)[sector];
  state.bytes |= bytes;
  std::unique_ptr<Crowd::Strong>& strong = crowd(state).strong;
  if (!strong) strong = std::make_unique<Crowd::Strong>();
  std::vector<StrongWrite>& all = (*strong)[word];
  // Those of a warp stand together, but for what runs beside it.
  constexpr size_t kNear = 16;
  // Who counts up to here without order is not told apart any more: the oldest go.
  constexpr size_t kMost = 4096;
  for (size_t i = all.size(), looked = 0; i-- > 0 && looked < kNear; ++looked) {
    StrongWrite& earlier = all[i];
    if (earlier.cluster != writer.cluster || earlier.agent != writer.agent) continue;
    if (earlier.when == writer.when && earlier.kind == writer.kind) {
      earlier.lanes |= writer.lanes;
      return;
    }
    if ((earlier.lanes & ~writer.lanes) == 0 || known(earlier)) {
      earlier = writer;
      return;
    }
  }
  if (all.size() == kMost) all.erase(all.begin(), all.begin() + kMost / 2);
  all.push_back(writer);
}

}  // namespace emu::hazards
