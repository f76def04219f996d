# What the compilers must not find.
add_library(bulkhead_warnings INTERFACE)
target_compile_options(bulkhead_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast -Wimplicit-fallthrough -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A name that hides another of its own function. That one hides a name of the namespace is clang's to find: g++ minds types too, and a
  # test's `Row` may be hidden by that of a neighbour compiled with it.
  target_compile_options(bulkhead_warnings INTERFACE -Wshadow=local)
  # It takes a file that is compiled with its neighbours for a header, whose anonymous types should be nobody's members.
  target_compile_options(bulkhead_warnings INTERFACE -Wno-subobject-linkage)
  # g++ 12 sees freed, uninitialised or overrun memory in std::variant, std::optional and std::string where there is none; the sanitizer builds look for the real thing.
  target_compile_options(bulkhead_warnings INTERFACE -Wno-maybe-uninitialized -Wno-dangling-pointer -Wno-free-nonheap-object -Wno-restrict
    -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-missing-field-initializers)
else()
  # libstdc++ 12 calls its own deprecated get_temporary_buffer in stable algorithms.
  target_compile_options(bulkhead_warnings INTERFACE -Wno-deprecated-declarations)
  target_compile_options(bulkhead_warnings INTERFACE -Wshadow -Wno-missing-designated-field-initializers -Wno-missing-field-initializers)
endif()
