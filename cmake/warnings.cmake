# What the compilers must not find.
add_library(bulkhead_warnings INTERFACE)
target_compile_options(bulkhead_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast -Wimplicit-fallthrough -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees freed, uninitialised or overrun memory in std::variant, std::optional and std::string where there is none; the sanitizer builds look for the real thing.
  target_compile_options(bulkhead_warnings INTERFACE -Wno-maybe-uninitialized -Wno-dangling-pointer -Wno-free-nonheap-object -Wno-restrict
    -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-missing-field-initializers)
else()
  target_compile_options(bulkhead_warnings INTERFACE -Wno-missing-designated-field-initializers -Wno-missing-field-initializers)
endif()
