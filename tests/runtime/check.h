#pragma once
// What the programs in this folder check with. They run on the emulated chip and, built for it, beside a real GPU: each
// expected error code and each rule on what waits for what was first seen on an H200 (driver 580, CUDA 13.0).

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <source_location>
#include <string>

inline int failures = 0;

inline void fail(const char* what, const std::source_location& at) {
  std::printf("%s:%u: %s\n", at.file_name(), static_cast<unsigned>(at.line()), what);
  std::fflush(stdout);
  ++failures;
}

inline void expect(bool holds, const char* what, const std::source_location& at = std::source_location::current()) {
  if (!holds) fail(what, at);
}

template <class A, class B>
void expect_equal(const A& got, const B& wanted, const std::source_location& at = std::source_location::current()) {
  if (!(got == wanted)) fail(("got " + std::to_string(got) + ", wanted " + std::to_string(wanted)).c_str(), at);
}

inline void expect_error(cudaError_t got, cudaError_t wanted,
                         const std::source_location& at = std::source_location::current()) {
  if (got != wanted)
    fail((std::string("got ") + cudaGetErrorName(got) + ", wanted " + cudaGetErrorName(wanted)).c_str(), at);
}

inline void expect_success(cudaError_t got, const std::source_location& at = std::source_location::current()) {
  expect_error(got, cudaSuccess, at);
}

/// The call failed as it should, and the thread remembers it until it is asked.
inline void expect_remembered(cudaError_t got, cudaError_t wanted,
                              const std::source_location& at = std::source_location::current()) {
  expect_error(got, wanted, at);
  expect_error(cudaPeekAtLastError(), wanted, at);
  expect_error(cudaGetLastError(), wanted, at);
  expect_error(cudaGetLastError(), cudaSuccess, at);
}

inline bool emulated() {
  cudaDeviceProp properties;
  return cudaGetDeviceProperties(&properties, 0) == cudaSuccess && std::strstr(properties.name, "emulated");
}

/// Runs `body` in a process of its own (a faulted context never recovers) and returns what that wrote to stderr. To be
/// called before this process has used CUDA.
template <class Body>
std::string in_child(Body&& body, const std::source_location& at = std::source_location::current()) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    failures = 0;
    body();
    std::fflush(nullptr);
    _exit(failures ? 1 : 0);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) fail(("child process: status " + std::to_string(status) + "\n" + text).c_str(), at);
  return text;
}

inline int result() {
  std::printf(failures ? "%d checks failed\n" : "all checks passed\n", failures);
  return failures ? 1 : 0;
}
