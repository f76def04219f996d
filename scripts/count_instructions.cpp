// One kind of question, asked so many times: count_instructions fit|place|plan|plan-worst|plan-refused N. Run under
// callgrind by scripts/count-instructions.sh, which subtracts the set-up by asking twice as often.
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "bulkhead/gpu/instance_list.hpp"

using namespace bulkhead::gpu;

namespace {

struct Question {
    std::vector<Instance> existing;
    std::vector<Wanted> wanted;
};

// Full GPUs. The dearest was found by timing 60,000 random ones with random wishes.
constexpr const char* full_gpus[][3]{
    {"", "1g.10gb@0,1g.10gb@1,1g.10gb@2,1g.10gb@3,1g.10gb@4,1g.10gb@5,1g.10gb@6", "3g.40gb"},
    {"1g.10gb@0,1g.10gb@1", "1g.10gb@2,1g.10gb@3,1g.10gb@4,1g.10gb@5,1g.10gb@6", "3g.40gb"},
    {"3g.40gb@0", "1g.10gb@4,1g.10gb@5,1g.10gb@6", "2g.20gb"},
    {"", "2g.20gb@0,2g.20gb@2,2g.20gb@4,1g.10gb@6", "4g.40gb"},
    {"", "1g.20gb@0,1g.20gb@2,1g.20gb@4,1g.20gb@6", "3g.40gb,2g.20gb"},
    {"1g.10gb@0,1g.10gb@1,1g.10gb@5", "1g.10gb@2,1g.10gb@3,1g.10gb@4,1g.10gb@6", "2g.20gb,1g.10gb"},
};
constexpr const char* dearest[3]{"", "1g.10gb@0,1g.10gb@1,1g.10gb@2,1g.10gb@3,1g.10gb@4,1g.10gb@5,1g.10gb@6",
                                 "1g.10gb+me,2x2g.20gb,1g.10gb"};
constexpr const char* refused[3]{"1g.10gb@1,1g.10gb@4", "1g.10gb@0,1g.10gb@2,1g.10gb@3,1g.10gb@5,1g.10gb@6", "3g.40gb"};

Question question(const Board& board, const char* const (&row)[3]) {
    return {read_existing(board, row[0], row[1]).value(), read_wanted(board, row[2]).value()};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::string_view kind = argv[1];
    const std::size_t times = std::strtoul(argv[2], nullptr, 10);
    const Board& board = *find_board("h100-80gb-sxm5").value();
    const Geometry geometry{board};
    std::vector<Question> questions;
    if (kind == "plan-worst")
        questions.push_back(question(board, dearest));
    else if (kind == "plan-refused")
        questions.push_back(question(board, refused));
    else
        for (const auto& row : full_gpus) questions.push_back(question(board, row));

    std::size_t sum = 0;  // printed, so that no question is optimised away
    for (std::size_t i = 0; i < times; ++i) {
        const Occupancy now = Occupancy::of_state(i * 37 % 512);
        if (kind == "fit")
            sum += geometry.fit(now, i % 7).bits();
        else if (kind == "place")
            sum += geometry.place(now, i % 7).value_or(9);
        else {
            const Question& q = questions[i % questions.size()];
            const auto answer = plan(geometry, q.existing, q.wanted);
            sum += answer ? answer->steps.size() : 100;
        }
    }
    std::printf("%zu\n", sum);
}
