// Tensor maps: what cuTensorMapEncodeTiled takes and refuses (cuda.h 13.0; driver of an H200), and the 128 bytes.

#include <nlohmann/json.hpp>

#include "emulator/units/tensor_map.h"

#include <cuda.h>

#include <fstream>
#include <functional>
#include <random>

#include "emulator/machine/trap.h"
#include "tests/catch.h"
#include "tests/unit/tma_model.h"

using namespace emu;

// The core header keeps its own enums so as not to need cuda.h; the values must be CUDA's.
static_assert(static_cast<int>(TensorMapType::uint8) == CU_TENSOR_MAP_DATA_TYPE_UINT8);
static_assert(static_cast<int>(TensorMapType::uint16) == CU_TENSOR_MAP_DATA_TYPE_UINT16);
static_assert(static_cast<int>(TensorMapType::uint32) == CU_TENSOR_MAP_DATA_TYPE_UINT32);
static_assert(static_cast<int>(TensorMapType::int32) == CU_TENSOR_MAP_DATA_TYPE_INT32);
static_assert(static_cast<int>(TensorMapType::uint64) == CU_TENSOR_MAP_DATA_TYPE_UINT64);
static_assert(static_cast<int>(TensorMapType::int64) == CU_TENSOR_MAP_DATA_TYPE_INT64);
static_assert(static_cast<int>(TensorMapType::float16) == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
static_assert(static_cast<int>(TensorMapType::float32) == CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
static_assert(static_cast<int>(TensorMapType::float64) == CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
static_assert(static_cast<int>(TensorMapType::bfloat16) == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(static_cast<int>(TensorMapType::float32_ftz) == CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ);
static_assert(static_cast<int>(TensorMapType::tfloat32) == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
static_assert(static_cast<int>(TensorMapType::tfloat32_ftz) == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ);
static_assert(static_cast<int>(TensorMapInterleave::bytes16) == CU_TENSOR_MAP_INTERLEAVE_16B);
static_assert(static_cast<int>(TensorMapInterleave::bytes32) == CU_TENSOR_MAP_INTERLEAVE_32B);
static_assert(static_cast<int>(TensorMapSwizzle::b32) == CU_TENSOR_MAP_SWIZZLE_32B);
static_assert(static_cast<int>(TensorMapSwizzle::b64) == CU_TENSOR_MAP_SWIZZLE_64B);
static_assert(static_cast<int>(TensorMapSwizzle::b128) == CU_TENSOR_MAP_SWIZZLE_128B);
static_assert(static_cast<int>(TensorMapPromotion::l2_256b) == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
static_assert(static_cast<int>(TensorMapFill::nan) == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
static_assert(kTensorMapBytes == sizeof(CUtensorMap));

namespace {

const Chip& b200() {
  return *find_chip("b200");
}
const Chip& h200() {
  return *find_chip("h200");
}

// Arguments that are fine, to be spoiled one by one.
struct Arguments {
  alignas(128) std::byte object[128];
  uint64_t dims[5] = {256, 128, 16, 2, 2};
  uint64_t strides[4] = {512, 512 * 128, 1 << 20, 1 << 21};
  uint32_t box[5] = {64, 8, 2, 1, 1};
  uint32_t steps[5] = {1, 1, 1, 1, 1};
  TensorMapArguments a{.map = object,
                       .type = 6,
                       .rank = 3,
                       .global_address = 0x2000'0000,
                       .global_dim = dims,
                       .global_strides = strides,
                       .box_dim = box,
                       .element_strides = steps};
  Arguments() = default;
  Arguments(const Arguments&) = delete;
};

using Change = std::function<void(Arguments&)>;

std::optional<std::string> refusal(const Change& change, const Chip& chip) {
  Arguments arguments;
  change(arguments);
  return tensor_map_refusal(arguments.a, chip);
}

struct Refused {
  Change change;
  std::vector<std::string> says;
};

void check_all(const std::vector<Refused>& all, const Chip& chip) {
  for (const Refused& r : all) {
    const auto why = refusal(r.change, chip);
    INFO("should say " << r.says.front());
    REQUIRE(why.has_value());
    CHECK_THAT(*why, test::contains("cuTensorMapEncodeTiled: "));
    for (const std::string& part : r.says) CHECK_THAT(*why, test::contains(part));
  }
}

}  // namespace

TEST_CASE("the rules of cuTensorMapEncodeIm2col that cuTensorMapEncodeTiled has not") {
  struct Im2col {
    std::array<uint64_t, 5> dims{64, 6, 5, 4, 3}, strides{128, 768, 3840, 15360};
    std::array<uint32_t, 5> steps{1, 1, 1, 1, 1};
    std::array<int32_t, 3> lower{-1, -1, 0}, upper{-1, -1, 0};
    std::array<uint32_t, 2> box{64, 128};
    uint32_t rank = 4, interleave = 0;
    TensorMapObject object;
    TensorMapArguments arguments() {
      TensorMapArguments a{.map = &object, .type = 6, .rank = rank, .global_dim = dims.data()};
      a.global_strides = strides.data(), a.box_dim = box.data(), a.element_strides = steps.data();
      a.interleave = interleave, a.swizzle = 3;
      a.im2col = true, a.lower_corner = lower.data(), a.upper_corner = upper.data();
      return a;
    }
  };
  Im2col fine;
  REQUIRE(!tensor_map_refusal(fine.arguments(), b200()));
  const TensorMap map = make_tensor_map(fine.arguments());
  CHECK(map.im2col);
  CHECK(map.lower == std::array<int32_t, 3>{-1, -1, 0});
  CHECK(decode_tensor_map(encode_tensor_map(map).data(), 0) == map);
  auto refused = [](auto change) {
    Im2col x;
    change(x);
    const auto why = tensor_map_refusal(x.arguments(), b200());
    REQUIRE(why);
    CHECK_THAT(*why, test::contains("cuTensorMapEncodeIm2col: "));
    return *why;
  };
  CHECK_THAT(refused([](Im2col& x) { x.rank = 2; }), test::contains("needs 3, 4 or 5 dimensions"));
  CHECK_THAT(refused([](Im2col& x) { x.box[0] = 0; }), test::contains("channelsPerPixel = 0"));
  CHECK_THAT(refused([](Im2col& x) { x.box[0] = 72; }), test::contains("channelsPerPixel = 72: with swizzle 128B"));
  CHECK_THAT(refused([](Im2col& x) { x.box[1] = 1025; }), test::contains("pixelsPerColumn = 1025"));
  CHECK_THAT(refused([](Im2col& x) { x.lower[1] = -129; }), test::contains("offsets are -128 to 127"));
  CHECK_THAT(refused([](Im2col& x) { x.rank = 5, x.upper[2] = 16; }), test::contains("offsets are -16 to 15"));
  CHECK_THAT(refused([](Im2col& x) { x.upper[0] = -7; }), test::contains("the box from -1 to -2"));
  CHECK_THAT(refused([](Im2col& x) { x.steps[2] = 9; }), test::contains("elementStrides[2] = 9"));
  CHECK_THAT(refused([](Im2col& x) { x.interleave = 1; }), test::contains("interleave"));
  Im2col null;
  TensorMapArguments arguments = null.arguments();
  arguments.upper_corner = nullptr;
  CHECK_THAT(*tensor_map_refusal(arguments, b200()), test::contains("pixelBoxUpperCorner is a null pointer"));
}

TEST_CASE("every rule of cuTensorMapEncodeTiled is told with argument, value and rule") {
  check_all(
      {
          {[](Arguments& x) { x.a.map = nullptr; }, {"tensorMap is a null pointer"}},
          {[](Arguments& x) { x.a.rank = 0; }, {"tensorRank = 0", "1 to 5"}},
          {[](Arguments& x) { x.a.rank = 6; }, {"tensorRank = 6", "1 to 5"}},
          {[](Arguments& x) { x.a.global_dim = nullptr; }, {"globalDim is a null pointer"}},
          {[](Arguments& x) { x.a.global_strides = nullptr; }, {"globalStrides is a null pointer"}},
          {[](Arguments& x) { x.a.rank = 1, x.a.global_strides = nullptr; },
           {"globalStrides is a null pointer", "rank of 1"}},
          {[](Arguments& x) { x.a.box_dim = nullptr; }, {"boxDim is a null pointer"}},
          {[](Arguments& x) { x.a.element_strides = nullptr; }, {"elementStrides is a null pointer"}},
          {[](Arguments& x) { x.a.type = 16; }, {"tensorDataType = 16"}},
          {[](Arguments& x) { x.a.interleave = 3; }, {"interleave = 3"}},
          {[](Arguments& x) { x.a.swizzle = 7; }, {"swizzle = 7"}},
          {[](Arguments& x) { x.a.l2_promotion = 4; }, {"l2Promotion = 4"}},
          {[](Arguments& x) { x.a.oob_fill = 2; }, {"oobFill = 2"}},
          {[](Arguments& x) { x.a.global_address += 8; }, {"globalAddress = 0x20000008", "16 bytes", "8 past"}},
          {[](Arguments& x) { x.a.global_address += 16, x.a.interleave = 2, x.a.swizzle = 1; },
           {"globalAddress = 0x20000010", "32 bytes", "interleave 32B"}},
          {[](Arguments& x) { x.a.global_address += 16, x.a.type = 15, x.box[0] = 128; },
           {"globalAddress = 0x20000010", "32 bytes", "16U6_ALIGN16B"}},
          {[](Arguments& x) { x.dims[1] = 0; }, {"globalDim[1] = 0", "2^32"}},
          {[](Arguments& x) { x.dims[2] = (uint64_t{1} << 32) + 1; }, {"globalDim[2] = 4294967297", "2^32"}},
          {[](Arguments& x) { x.dims[0] = 255, x.a.type = 13; },
           {"globalDim[0] = 255", "16U4_ALIGN8B", "multiple of 2"}},
          {[](Arguments& x) { x.dims[0] = 192, x.a.type = 14, x.box[0] = 128; },
           {"globalDim[0] = 192", "16U4_ALIGN16B", "multiple of 128"}},
          {[](Arguments& x) { x.strides[0] = 520; }, {"globalStrides[0] = 520", "dimension 1", "16 bytes", "528"}},
          {[](Arguments& x) { x.strides[1] = uint64_t{1} << 40; }, {"globalStrides[1] = 1099511627776", "2^40"}},
          {[](Arguments& x) { x.strides[0] = 528, x.a.interleave = 2, x.a.swizzle = 1; },
           {"globalStrides[0] = 528", "32 bytes", "interleave 32B"}},
          {[](Arguments& x) { x.strides[0] = 528, x.a.type = 14, x.box[0] = 128; },
           {"globalStrides[0] = 528", "32 bytes", "16U4_ALIGN16B"}},
          {[](Arguments& x) { x.box[1] = 0; }, {"boxDim[1] = 0", "1 to 256"}},
          {[](Arguments& x) { x.box[0] = 264; }, {"boxDim[0] = 264", "1 to 256"}},
          {[](Arguments& x) { x.box[0] = 12; }, {"boxDim[0] = 12", "multiple of 16 bytes", "24 bytes"}},
          {[](Arguments& x) { x.box[0] = 4, x.a.interleave = 1; }, {"boxDim[0] = 4", "multiple of 16 bytes"}},
          {[](Arguments& x) { x.box[0] = 16, x.a.type = 13; }, {"boxDim[0] = 16", "multiple of 16 bytes", "8 bytes"}},
          {[](Arguments& x) { x.box[0] = 64, x.a.type = 14; }, {"boxDim[0] = 64", "must be 128"}},
          {[](Arguments& x) { x.box[0] = 24, x.a.swizzle = 1; },
           {"boxDim[0] = 24", "swizzle 32B", "32 bytes at most", "48 bytes"}},
          {[](Arguments& x) { x.box[0] = 40, x.a.swizzle = 2; },
           {"boxDim[0] = 40", "swizzle 64B", "64 bytes at most", "80 bytes"}},
          {[](Arguments& x) { x.box[0] = 72, x.a.swizzle = 3; },
           {"boxDim[0] = 72", "swizzle 128B", "128 bytes at most", "144 bytes"}},
          {[](Arguments& x) { x.box[0] = 72, x.a.swizzle = 4; }, {"128B_ATOM_32B", "128 bytes at most"}},
          {[](Arguments& x) { x.box[0] = 72, x.a.swizzle = 6; }, {"128B_ATOM_64B", "128 bytes at most"}},
          {[](Arguments& x) { x.steps[1] = 0; }, {"elementStrides[1] = 0", "1 to 8"}},
          {[](Arguments& x) { x.steps[2] = 9; }, {"elementStrides[2] = 9", "1 to 8"}},
          {[](Arguments& x) { x.steps[0] = 9; }, {"elementStrides[0] = 9", "1 to 8"}},
          {[](Arguments& x) { x.box[0] = 256, x.box[1] = 256, x.box[2] = 2; }, {"boxDim", "262144 bytes", "233472"}},
          {[](Arguments& x) { x.a.interleave = 1, x.a.rank = 2; }, {"tensorRank = 2", "interleave 16B", "at least 3"}},
          {[](Arguments& x) { x.a.interleave = 2, x.a.swizzle = 3; }, {"swizzle = 128B", "interleave 32B"}},
          {[](Arguments& x) { x.a.interleave = 1, x.a.type = 15, x.box[0] = 128; },
           {"interleave = 16B", "16U6_ALIGN16B"}},
          {[](Arguments& x) { x.a.swizzle = 5, x.a.type = 15, x.box[0] = 128; },
           {"swizzle = 128B_ATOM_32B_FLIP_8B", "16U6_ALIGN16B"}},
          {[](Arguments& x) { x.a.swizzle = 6, x.a.type = 14, x.box[0] = 128; },
           {"swizzle = 128B_ATOM_64B", "16U4_ALIGN16B"}},
          {[](Arguments& x) { x.a.oob_fill = 1, x.a.type = 5; }, {"oobFill", "INT64", "floating-point"}},
          {[](Arguments& x) { x.a.oob_fill = 1, x.a.type = 13; }, {"oobFill", "16U4_ALIGN8B", "floating-point"}},
      },
      b200());
  check_all(
      {
          {[](Arguments& x) { x.a.swizzle = 4; }, {"swizzle = 128B_ATOM_32B", "h200"}},
          {[](Arguments& x) { x.a.swizzle = 6; }, {"swizzle = 128B_ATOM_64B", "h200"}},
          {[](Arguments& x) { x.a.type = 13; }, {"tensorDataType = 16U4_ALIGN8B", "h200"}},
          {[](Arguments& x) { x.a.type = 15, x.box[0] = 128; }, {"tensorDataType = 16U6_ALIGN16B", "h200"}},
      },
      h200());
}

TEST_CASE("what the driver takes is taken") {
  const std::vector<std::pair<const char*, Change>> fine = {
      {"as it is", [](Arguments&) {}},
      {"no address yet", [](Arguments& x) { x.a.global_address = 0; }},
      {"object anywhere", [](Arguments& x) { x.a.map = x.object + 8; }},
      {"one element", [](Arguments& x) { x.dims[0] = x.dims[1] = x.dims[2] = 1; }},
      {"2^32 elements", [](Arguments& x) { x.dims[0] = x.dims[2] = uint64_t{1} << 32; }},
      {"zero strides", [](Arguments& x) { x.strides[0] = x.strides[1] = 0; }},
      {"strides that fall", [](Arguments& x) { x.strides[0] = 512, x.strides[1] = 16; }},
      {"the largest stride", [](Arguments& x) { x.strides[0] = (uint64_t{1} << 40) - 16; }},
      {"the widest box", [](Arguments& x) { x.box[0] = 256, x.box[1] = 256, x.box[2] = 1; }},
      {"a box of all shared memory", [](Arguments& x) { x.box[0] = 8, x.box[1] = 64, x.box[2] = 228; }},
      {"steps", [](Arguments& x) { x.steps[0] = x.steps[1] = x.steps[2] = 8; }},
      {"a large box in large steps",
       [](Arguments& x) { x.box[0] = 64, x.box[1] = 256, x.box[2] = 256, x.steps[1] = x.steps[2] = 8; }},
      {"narrow under 128B", [](Arguments& x) { x.box[0] = 8, x.a.swizzle = 3; }},
      {"full span under 32B", [](Arguments& x) { x.box[0] = 16, x.a.swizzle = 1; }},
      {"interleave 16B with any swizzle", [](Arguments& x) { x.a.interleave = 1, x.a.swizzle = 2; }},
      {"interleave 32B", [](Arguments& x) { x.a.interleave = 2, x.a.swizzle = 1; }},
  };
  for (const auto& [what, change] : fine) {
    INFO(what);
    for (const Chip* chip : {&b200(), &h200()}) CHECK(refusal(change, *chip).value_or("taken") == "taken");
  }
  for (uint32_t type = 0; type <= 12; ++type) {
    INFO("type " << type);
    const auto with_type = [&](Arguments& x) { x.a.type = type, x.box[0] = 16; };
    const auto with_nan = [&](Arguments& x) { x.a.type = type, x.box[0] = 16, x.a.oob_fill = 1; };
    CHECK_FALSE(refusal(with_type, h200()).has_value());
    CHECK(refusal(with_nan, h200()).has_value() == (type < 6));
  }
  CHECK_FALSE(refusal([](Arguments& x) { x.a.type = 13, x.box[0] = 32; }, b200()).has_value());
  CHECK_FALSE(refusal([](Arguments& x) { x.a.type = 14, x.box[0] = 128, x.a.swizzle = 4; }, b200()).has_value());
  CHECK_FALSE(refusal([](Arguments& x) { x.a.type = 15, x.box[0] = 128, x.a.swizzle = 6; }, b200()).has_value());
  for (uint32_t swizzle = 4; swizzle <= 6; ++swizzle) {
    CHECK_FALSE(refusal([&](Arguments& x) { x.a.swizzle = swizzle; }, b200()).has_value());
  }
}

TEST_CASE("arguments become the map they describe") {
  Arguments x;
  x.a.rank = 3;
  x.a.swizzle = 3;
  x.a.l2_promotion = 2;
  x.a.oob_fill = 1;
  x.steps[0] = 4;  // ignored
  x.steps[2] = 2;
  const TensorMap map = make_tensor_map(x.a);
  CHECK(map.type == TensorMapType::float16);
  CHECK(map.swizzle == TensorMapSwizzle::b128);
  CHECK(map.promotion == TensorMapPromotion::l2_128b);
  CHECK(map.fill == TensorMapFill::nan);
  CHECK(map.rank == 3);
  CHECK(map.address == 0x2000'0000);
  CHECK(map.dims == std::array<uint64_t, 5>{256, 128, 16, 1, 1});
  CHECK(map.strides_bytes == std::array<uint64_t, 5>{0, 512, 512 * 128, 0, 0});
  CHECK(map.box == std::array<uint32_t, 5>{64, 8, 2, 1, 1});
  CHECK(map.element_strides == std::array<uint32_t, 5>{1, 1, 2, 1, 1});
}

TEST_CASE("a map survives its 128 bytes, also in its extremes") {
  std::mt19937_64 random(7);
  std::vector<TensorMap> maps;
  for (int i = 0; i < 500; ++i) maps.push_back(test::random_case(random, true, 65536).map);
  TensorMap extreme = maps.back();
  extreme.rank = 5;
  extreme.address = ~uint64_t{15};
  extreme.dims.fill(uint64_t{1} << 32);
  extreme.strides_bytes = {0, (uint64_t{1} << 40) - 16, (uint64_t{1} << 40) - 32, 0, 16};
  extreme.box.fill(256);
  extreme.element_strides.fill(8);
  extreme.type = TensorMapType::u6_align16;
  extreme.promotion = TensorMapPromotion::l2_256b;
  maps.push_back(extreme);
  for (const TensorMap& map : maps) {
    TensorMapObject object = encode_tensor_map(map);
    CHECK(decode_tensor_map(object.data(), 0x1000) == map);
    object[10] &= ~std::byte{0x20};  // bit 21 of the second word: CUTLASS does so
    CHECK(decode_tensor_map(object.data(), 0x1000) == map);
    // CUTLASS, cute/arch/copy_sm90_desc.hpp and Triton's driver.c: what they do to maps of drivers up to 13.1.
    uint64_t word;
    std::memcpy(&word, object.data() + 8, sizeof word);
    CHECK((word & uint64_t{1} << 21) == 0);
  }
}

namespace {

std::pair<FaultCode, std::string> fault_of(const TensorMapObject& object, uint64_t address) {
  try {
    decode_tensor_map(object.data(), address);
  } catch (const Trap& trap) {
    return {trap.code, trap.what()};
  }
  return {FaultCode{}, "no fault"};
}

}  // namespace

TEST_CASE("anything but a map is told apart from one") {
  const TensorMapObject good = encode_tensor_map(TensorMap{.address = 4096});
  REQUIRE(fault_of(good, 64).second == "no fault");

  // An H200 answers 715 to a zeroed map, and 716 to one that is not aligned to 64 bytes.
  const auto [zero_code, zero_text] = fault_of(TensorMapObject{}, 0x7000);
  CHECK(zero_code == FaultCode::illegal_instruction);
  CHECK_THAT(zero_text, test::contains("no tensor map at 0x7000") && test::contains("__grid_constant__"));
  const auto [odd_code, odd_text] = fault_of(good, 0x7020);
  CHECK(odd_code == FaultCode::misaligned_address);
  CHECK_THAT(odd_text, test::contains("0x7020") && test::contains("64 bytes"));

  // Every single bit counts.
  for (size_t byte = 0; byte < good.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      TensorMapObject bad = good;
      bad[byte] ^= std::byte{1} << bit;
      INFO("byte " << byte << " bit " << bit);
      CHECK(fault_of(bad, 0x7000).first == FaultCode::illegal_instruction);
    }
  }
  TensorMapObject changed = good;
  changed[40] ^= std::byte{1};
  CHECK_THAT(fault_of(changed, 0x7000).second, test::contains("was changed") && test::contains("tensormap.replace"));
}

TEST_CASE("swizzle formulas, bit by bit") {
  for (uint32_t s = 0; s <= 6; ++s) {
    const auto swizzle = static_cast<TensorMapSwizzle>(s);
    for (uint32_t address = 0; address < 1 << 13; ++address) {
      if (swizzled(swizzle, address) != test::swizzle_model(swizzle, address)) {
        FAIL_CHECK(name_of(swizzle) << " at " << address);
        break;
      }
    }
  }
}

TEST_CASE("maps in the chip's form, as CuTe DSL's host code writes them") {
  using Words = std::array<uint64_t, 16>;
  const auto decoded = [](const Words& words) {
    return decode_tensor_map(reinterpret_cast<const std::byte*>(&words), 0);
  };
  constexpr uint64_t kLeft = 0x00005624bce8ab68;  // what was there before

  // 256 rows of 256 fp16, boxes of 64 x 128.
  Words words{0x7f990f993000, 0x0000002000246312, 0, 0, 0x000000ff000000ff, 0, 0x3f00000000000000, 0x7f, 4, kLeft, 5};
  TensorMap map = decoded(words);
  TensorMap wanted;
  wanted.type = TensorMapType::float16;
  wanted.swizzle = TensorMapSwizzle::b128;
  wanted.promotion = TensorMapPromotion::l2_128b;
  wanted.rank = 2;
  wanted.address = 0x7f990f993000;
  wanted.dims = {256, 256, 1, 1, 1};
  wanted.strides_bytes = {0, 512, 0, 0, 0};
  wanted.box = {64, 128, 1, 1, 1};
  wanted.replaced = true;
  CHECK(map == wanted);

  // 2 x 256 x 128 bytes, and 2 x 256 x 256 bf16 with the 64-byte swizzle.
  map = decoded({0x7f2af003e000, 0x0000000800046022, 0x800, 0, 0x000000ff0000007f, 1, 0x7f00000000000000, 0x7f});
  CHECK(map.type == TensorMapType::uint8);
  CHECK(map.dims == std::array<uint64_t, 5>{128, 256, 2, 1, 1});
  CHECK(map.strides_bytes == std::array<uint64_t, 5>{0, 128, 0x8000, 0, 0});
  CHECK(map.box == std::array<uint32_t, 5>{128, 128, 1, 1, 1});
  map = decoded({0x7f2aef4c0000, 0x0000002000244522, 0x2000, 0, 0x000000ff000000ff, 1, 0x1f00000000000000, 0x7f});
  CHECK(map.type == TensorMapType::bfloat16);
  CHECK(map.swizzle == TensorMapSwizzle::b64);
  CHECK(map.box == std::array<uint32_t, 5>{32, 128, 1, 1, 1});

  // fp32 read as TF32, M-major (with atoms of 32 bytes) and K-major, and plain fp32.
  words = {0x7f1cb7188000, 0x00000040000d63a2, 0x1000, 0, 0x0000003f000000ff, 0, 0x1f00000000000000, 0x1f};
  CHECK(decoded(words).type == TensorMapType::tfloat32);
  CHECK(decoded(words).swizzle == TensorMapSwizzle::b128_atom32);
  words[1] = 0x00000010000563a2;
  CHECK(decoded(words).type == TensorMapType::tfloat32);
  CHECK(decoded(words).swizzle == TensorMapSwizzle::b128);
  words[1] = 0x00000040002463a2;
  CHECK(decoded(words).type == TensorMapType::float32);

  // Anything in the other bits, and it is none.
  for (const int bit : {0, 3, 22, 31}) {
    Words other = words;
    other[1] ^= uint64_t{1} << bit;
    CHECK_THROWS_AS(decoded(other), Trap);
  }
  words[5] = 1;
  words[4] = 0;
  CHECK_NOTHROW(decoded(words));
  words[7] = 0x1ff;  // a box of 2 in the third dimension is fine, one in the fourth of three is not
  CHECK_NOTHROW(decoded(words));
  words[7] = 0x100ff;
  CHECK_THROWS_AS(decoded(words), Trap);
}

TEST_CASE("maps as an H200's driver makes them are read as what it was given") {
  std::ifstream stream(SOURCE_FOLDER "/tests/golden/h200_tensor_maps.json");
  const auto golden = nlohmann::json::parse(stream);
  REQUIRE(golden["maps"].size() == 200);
  for (const auto& m : golden["maps"]) {
    std::array<uint64_t, 16> words;
    for (size_t i = 0; i < 16; ++i) words[i] = std::stoull(m["words"][i].get<std::string>(), nullptr, 16);
    const auto dims = m["dims"].get<std::vector<uint64_t>>();
    auto strides = m["strides"].get<std::vector<uint64_t>>();
    strides.push_back(0);  // that of one dimension is looked at by nobody, but must be somewhere
    const auto steps = m["steps"].get<std::vector<uint32_t>>();
    TensorMapArguments a{.type = m["type"], .rank = m["rank"]};
    a.global_address = std::stoull(m["address"].get<std::string>(), nullptr, 16);
    a.global_dim = dims.data(), a.global_strides = strides.data(), a.element_strides = steps.data();
    a.interleave = m["interleave"], a.swizzle = m["swizzle"], a.l2_promotion = m["promotion"], a.oob_fill = m["fill"];
    std::vector<uint32_t> box;
    std::vector<int32_t> lower, upper;
    a.im2col = m["im2col"] == 1;
    if (a.im2col) {
      box = {m["channels"], m["pixels"]};
      lower = m["lower"].get<std::vector<int32_t>>(), upper = m["upper"].get<std::vector<int32_t>>();
      a.lower_corner = lower.data(), a.upper_corner = upper.data();
    } else {
      box = m["box"].get<std::vector<uint32_t>>();
    }
    a.box_dim = box.data();
    INFO(m.dump());
    // The driver took them all, and so does the emulator.
    TensorMapObject object;
    a.map = &object;
    CHECK(tensor_map_refusal(a, h200()).value_or("taken") == "taken");
    TensorMap want = make_tensor_map(a);
    want.replaced = true;
    const auto got = decode_chip_tensor_map(reinterpret_cast<const std::byte*>(words.data()));
    REQUIRE(got);
    CHECK(*got == want);
    // A bit that is zero in all of them.
    words[1] |= uint64_t{1} << 25;
    CHECK(!decode_chip_tensor_map(reinterpret_cast<const std::byte*>(words.data())));
  }
  const TensorMapObject zeros{};
  CHECK(!decode_chip_tensor_map(zeros.data()));
}
