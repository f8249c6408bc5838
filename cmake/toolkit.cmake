# How CUDA sources are compiled and linked, for a system toolkit and for one unpacked from wheels (see tools/toolkit.py).
#
# Every file that holds kernels is compiled to machine code and PTX for one architecture: the machine code runs on that
# GPU, the PTX is what the emulator executes, and -no-compress keeps it readable with `strings`. -lineinfo gives profilers
# and the emulator's reports their source lines.

cmake_path(GET CMAKE_CUDA_COMPILER PARENT_PATH cuda_bin)
cmake_path(GET cuda_bin PARENT_PATH cuda_root)
file(REAL_PATH "${cuda_root}" cuda_root)

add_library(cuda_headers INTERFACE)
target_include_directories(cuda_headers SYSTEM INTERFACE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})

# The toolkit's own runtime library: what the executables are linked against, and what they load beside a real GPU.
find_library(cuda_runtime_library NAMES libcudart.so.13
             PATHS "${cuda_root}" PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib
             REQUIRED NO_DEFAULT_PATH)
cmake_path(GET cuda_runtime_library PARENT_PATH cuda_library_folder)

set(blackwell_architecture
  --generate-code=arch=compute_100f,code=sm_100f --generate-code=arch=compute_100f,code=compute_100f)
set(hopper_architecture
  --generate-code=arch=compute_90a,code=sm_90a --generate-code=arch=compute_90a,code=compute_90a)

set(any_architecture
  --generate-code=arch=compute_90,code=sm_90 --generate-code=arch=compute_90,code=compute_90)

# Compiles kernels of a target: hopper*.cu for compute_90a, gpu_*.cu for either chip, every other .cu for compute_100f.
function(cuda_kernels target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  foreach(source IN LISTS sources)
    cmake_path(GET source FILENAME name)
    if(name MATCHES "^gpu_")
      set_property(SOURCE "${source}" PROPERTY COMPILE_OPTIONS ${any_architecture})
    elseif(name MATCHES "^hopper")
      set_property(SOURCE "${source}" PROPERTY COMPILE_OPTIONS ${hopper_architecture})
    else()
      set_property(SOURCE "${source}" PROPERTY COMPILE_OPTIONS ${blackwell_architecture})
    endif()
  endforeach()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-lineinfo;-no-compress>")
  set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
endfunction()

# Where an executable looks for its CUDA runtime unless LD_LIBRARY_PATH says otherwise. A RUNPATH yields to that
# variable, an RPATH would not.
function(runtime_folder target folder)
  target_link_options(${target} PRIVATE -Wl,--enable-new-dtags)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "${folder}" BUILD_RPATH_USE_ORIGIN ON)
endfunction()

function(rung_executable target name sources folder runtime)
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE project_options cuda_headers harness)
  cuda_kernels(${target})
  runtime_folder(${target} "${runtime}")
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${folder}")
  if(TARGET emulated_cudart)
    add_dependencies(${target} emulated_cudart emulated_cuda)
  endif()
endfunction()

# Everything that a run needs, and nothing for the tests.
add_custom_target(rungs)

# A rung loads the emulator's runtime first: that one is always there, so that main is reached on any machine, and main
# starts itself again under the toolkit's where it finds a GPU (common/harness). The guard build bounds every wait.
function(add_rung folder)
  cmake_path(GET folder FILENAME name)
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp" "${folder}/*.cu")
  list(FILTER sources EXCLUDE REGEX "/(hopper_)?study[^/]*$")
  set(bin "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  # All but main once, for the rung's own executable and for the benchmark's.
  set(parts ${sources})
  list(FILTER parts EXCLUDE REGEX "/main.cpp$")
  add_library(${name}_parts OBJECT ${parts})
  target_link_libraries(${name}_parts PRIVATE project_options cuda_headers harness)
  cuda_kernels(${name}_parts)
  rung_executable(${name} ${name} "${folder}/main.cpp;$<TARGET_OBJECTS:${name}_parts>" "${bin}" "$ORIGIN/../lib")
  rung_executable(${name}_guard ${name} "${sources}" "${bin}/guard" "$ORIGIN/../../lib")
  target_compile_definitions(${name}_guard PRIVATE LADDER_GUARD)
  add_dependencies(rungs ${name} ${name}_guard)
endfunction()
