# Finds the core of the C++ Actor Framework, 0.17.x, which Debian ships without a CMake package.
#
#   find_package(CAF REQUIRED)   defines the imported target CAF::core, and CAF_VERSION.
#
# The coordinator implements CAF's scheduler interface, which is not stable between minor versions:
# another one than 0.17 is reported as not found, with the reason.
find_path(CAF_INCLUDE_DIR NAMES caf/actor_system.hpp)
find_library(CAF_CORE_LIBRARY NAMES caf_core)
mark_as_advanced(CAF_INCLUDE_DIR CAF_CORE_LIBRARY)

set(CAF_VERSION "")
if(CAF_INCLUDE_DIR AND EXISTS "${CAF_INCLUDE_DIR}/caf/config.hpp")
  # CAF_VERSION is one number: major * 10000 + minor * 100 + patch.
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" _caf_line REGEX "^#define CAF_VERSION [0-9]+")
  if(_caf_line MATCHES "CAF_VERSION ([0-9]+)")
    math(EXPR _caf_major "${CMAKE_MATCH_1} / 10000")
    math(EXPR _caf_minor "${CMAKE_MATCH_1} / 100 % 100")
    math(EXPR _caf_patch "${CMAKE_MATCH_1} % 100")
    set(CAF_VERSION "${_caf_major}.${_caf_minor}.${_caf_patch}")
  endif()
endif()

set(_caf_supported FALSE)
set(_caf_reason "")
if(CAF_VERSION MATCHES "^0\\.17\\.")
  set(_caf_supported TRUE)
elseif(CAF_VERSION)
  set(_caf_reason "Version ${CAF_VERSION} in ${CAF_INCLUDE_DIR} is not 0.17.x; install libcaf-dev of Debian 12.")
else()
  set(_caf_reason "Install it with: apt-get install libcaf-dev")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF
  REQUIRED_VARS CAF_CORE_LIBRARY CAF_INCLUDE_DIR _caf_supported
  VERSION_VAR CAF_VERSION
  REASON_FAILURE_MESSAGE "${_caf_reason}")

if(CAF_FOUND AND NOT TARGET CAF::core)
  find_package(Threads REQUIRED)
  add_library(CAF::core UNKNOWN IMPORTED)
  set_target_properties(CAF::core PROPERTIES
    IMPORTED_LOCATION "${CAF_CORE_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
unset(_caf_line)
unset(_caf_major)
unset(_caf_minor)
unset(_caf_patch)
unset(_caf_reason)
unset(_caf_supported)
