# Build options, compiler flags and the defaults that only a top-level build sets.
include(CMakeDependentOption)
option(LEASEHOLD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(LEASEHOLD_WERROR "Treat warnings in our targets as errors" OFF)
option(LEASEHOLD_TSAN_MAILBOXES
  "Tell ThreadSanitizer what CAF's mailboxes order; for programs on a scheduler of several workers" OFF)
set(LEASEHOLD_SANITIZE "" CACHE STRING "Sanitizers: address,undefined or thread")

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
  endif()
  find_program(LEASEHOLD_CCACHE ccache)
  if(LEASEHOLD_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/cached)
    add_compile_options(-fpch-preprocess)
  endif()
  find_program(LEASEHOLD_MOLD mold)
  if(LEASEHOLD_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

if(LEASEHOLD_SANITIZE)
  add_compile_options(-fsanitize=${LEASEHOLD_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LEASEHOLD_SANITIZE})
  # GCC takes the instrumented paths of a variant for uninitialised ones.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(LEASEHOLD_SANITIZE MATCHES thread)
    # ThreadSanitizer does not know fences; Asio's own locks order everything that it checks.
    add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
  if(LEASEHOLD_SANITIZE MATCHES undefined)
    # CAF 0.17 binds references to null in init_fun_factory.hpp; its RTTI is not exported either.
    add_compile_options(-fno-sanitize=null,vptr -fno-sanitize-recover=undefined)
  endif()
endif()

# Flags of our own targets; links PRIVATE, so that a consumer never inherits them.
add_library(leasehold_warnings INTERFACE)
target_compile_options(leasehold_warnings INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  # GCC 12 warns wrongly about concatenations of std::string (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${LEASEHOLD_WERROR}>:-Werror>)

# Makes a target one of ours: warnings on, and an alias under leasehold::.
function(leasehold_own target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:leasehold_warnings>)
endfunction()
