# Libraries of the emulator: zstd and LZ4 unpack fatbins, Highway is the SIMD, fmt the formatting.
find_package(fmt REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(lz4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)

add_library(emulator_dependencies INTERFACE)
target_link_libraries(emulator_dependencies INTERFACE
  fmt::fmt PkgConfig::zstd PkgConfig::lz4 PkgConfig::hwy Threads::Threads)
