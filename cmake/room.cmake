# One room = one folder = one library. Beside x.hpp and x.cpp sit x_test.cpp (into one test program per room),
# x_bench.cpp (one benchmark program per room) and x_fuzz.cpp (one libFuzzer program per file).
# The arrows between rooms are listed in docs/tour.md; src/bulkhead/house_test.cpp holds every #include to that list.

add_library(bulkhead_warnings INTERFACE)
target_compile_options(bulkhead_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast -Wimplicit-fallthrough -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees freed or uninitialised memory in std::variant and std::optional where there is none; the sanitizer builds look for the real thing.
  target_compile_options(bulkhead_warnings INTERFACE -Wno-maybe-uninitialized -Wno-free-nonheap-object -Wno-restrict -Wno-missing-field-initializers)
else()
  target_compile_options(bulkhead_warnings INTERFACE -Wno-missing-designated-field-initializers -Wno-missing-field-initializers)
endif()

function(bulkhead_test target)
  target_link_libraries(${target} PRIVATE bulkhead_warnings GTest::gmock GTest::gtest_main rapidcheck)
  target_compile_definitions(${target} PRIVATE
    BULKHEAD_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    BULKHEAD_SHARED_DIR="${CMAKE_SOURCE_DIR}/../shared")
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 900)
endfunction()

function(bulkhead_room name)
  cmake_parse_arguments(ROOM "" "" "ROOMS;LIBRARIES;TEST_LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  set(tests ${sources})
  set(benches ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cpp$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|_fuzz|/main)\\.cpp$")

  list(TRANSFORM ROOM_ROOMS PREPEND bulkhead_)
  if(sources)
    add_library(bulkhead_${name} STATIC ${sources})
    target_include_directories(bulkhead_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(bulkhead_${name} PUBLIC ${ROOM_ROOMS} fmt::fmt PRIVATE ${ROOM_LIBRARIES} bulkhead_warnings)
  else()
    add_library(bulkhead_${name} INTERFACE)
    target_include_directories(bulkhead_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(bulkhead_${name} INTERFACE ${ROOM_ROOMS} fmt::fmt)
  endif()

  if(BULKHEAD_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE bulkhead_${name} ${ROOM_TEST_LIBRARIES})
    bulkhead_test(${name}_test)
  endif()
  if(BULKHEAD_BENCH AND benches)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE bulkhead_${name} benchmark::benchmark benchmark::benchmark_main bulkhead_warnings)
  endif()
  if(BULKHEAD_FUZZ)
    foreach(fuzzer ${fuzzers})
      get_filename_component(target ${fuzzer} NAME_WE)
      add_executable(${target} ${fuzzer})
      target_link_libraries(${target} PRIVATE bulkhead_${name} bulkhead_warnings)
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()
