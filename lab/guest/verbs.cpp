// What a program does with the file of an RDMA device, without a library between it and the kernel: for guests of the
// lab.
//
//     lab-verbs open FILE          opens it
//     lab-verbs handles FILE       opens it and has the kernel make a context, again and again, until that is refused
//     lab-verbs objects FILE       one context, and protection domains in it until that is refused
//
// Prints how many it had and what the kernel said then, and ends with that number of the error.
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

constexpr int most = 100'000;

// A command of the older door of uverbs, which takes it as a write.
template <class Request, class Answer>
int tell(int file, std::uint32_t command, Request request, Answer& answer) {
    struct {
        ib_uverbs_cmd_hdr header;
        Request request;
    } words{{command, sizeof(words) / 4, sizeof answer / 4}, request};
    words.request.response = reinterpret_cast<std::uintptr_t>(&answer);
    return ::write(file, &words, sizeof words) == static_cast<ssize_t>(sizeof words) ? 0 : errno;
}

int make_context(const char* path, int& file) {
    file = ::open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return errno;
    ib_uverbs_get_context_resp answer{};
    return tell(file, IB_USER_VERBS_CMD_GET_CONTEXT, ib_uverbs_get_context{}, answer);
}

int report(const char* of, int had, int error) {
    std::printf("%s=%d %s\n", of, had, error == 0 ? "and no end" : std::strerror(error));
    return error;
}

}  // namespace

int main(int count, char** words) {
    if (count != 3) return 2;
    const std::string_view what = words[1];
    int file = -1, had = 0, error = 0;
    if (what == "open") {
        if (::open(words[2], O_RDWR | O_CLOEXEC) < 0) error = errno;
        return report("open", error == 0 ? 1 : 0, error);
    }
    if (what == "handles") {
        for (; had < most && error == 0; had += error == 0 ? 1 : 0) error = make_context(words[2], file);
        return report("handles", had, error);
    }
    if (what != "objects") return 2;
    error = make_context(words[2], file);
    for (; had < most && error == 0; had += error == 0 ? 1 : 0) {
        std::array<std::uint32_t, 8> answer{};
        error = tell(file, IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{}, answer);
    }
    return report("objects", had, error);
}
