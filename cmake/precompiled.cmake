# The library headers that nearly every file includes, read once for all rooms; and those of the tests, for all tests.
# Nothing of ours is in them: changing a header of the project rebuilds only who includes it. Each file still includes
# what it uses; the linter reads every file without them.
set(everywhere
  <algorithm> <array> <chrono> <cstdint> <expected> <filesystem> <functional> <map> <memory> <optional> <set> <span>
  <string> <string_view> <utility> <variant> <vector> <fmt/core.h> <fmt/format.h>)
add_compile_options(-pthread)  # some libraries ask for it, and then everybody must, or the headers count as others
set(nothing ${CMAKE_BINARY_DIR}/nothing.cpp)
file(GENERATE OUTPUT ${nothing} CONTENT "")

add_library(bulkhead_precompiled OBJECT ${nothing})
target_link_libraries(bulkhead_precompiled PRIVATE fmt::fmt bulkhead_warnings)
target_precompile_headers(bulkhead_precompiled PRIVATE ${everywhere})
if(BULKHEAD_TESTS)
  add_library(bulkhead_precompiled_tests OBJECT ${nothing})
  target_link_libraries(bulkhead_precompiled_tests PRIVATE fmt::fmt GTest::gmock rapidcheck bulkhead_warnings)
  target_precompile_headers(bulkhead_precompiled_tests PRIVATE ${everywhere} <gtest/gtest.h> <gmock/gmock.h> <rapidcheck.h>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # else the compiler cache never finds the same twice
endif()
