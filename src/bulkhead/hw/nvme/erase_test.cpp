// What QEMU cannot do, and what no drive should: the real erase over a scripted drive.
#include "bulkhead/hw/nvme/erase.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/hw/nvme/scripted_drive_test.hpp"

namespace bulkhead::nvme {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Tried {
    Erasure erasure;
    bool verified = false;
    std::string why;
    std::int64_t residue = 0;
    std::string samples;
};

// As an agent has it done; whoever talks to the drive is gone afterwards.
Tried wipe(ScriptedDrive& drive, const ErasePolicy& policy = {}, std::size_t samples = 200) {
    ScriptedTransport transport{drive};
    const EraseSettings settings{.policy = policy, .samples = samples};
    Tried tried{.erasure = erase(transport, settings, {.key = "k", .seed = 7}, drive.clock())};
    tried.why = tried.erasure.why;
    if (!tried.erasure.done) return tried;
    const EraseVerdict verdict = verify(transport, tried.erasure, samples, 11);
    tried.verified = verdict.erased();
    tried.why = verdict.why_not();
    tried.residue = verdict.bytes_residue();
    tried.samples = print_samples(tried.erasure, verdict);
    return tried;
}

TEST(Erase, formats_each_namespace_and_says_what_it_sent_and_saw) {
    ScriptedDrive drive;
    drive.add(5);
    const Tried tried = wipe(drive);
    EXPECT_TRUE(tried.verified) << tried.why;
    EXPECT_EQ(tried.erasure.method, EraseMethod::format_erase);
    EXPECT_EQ(tried.erasure.command, "admin 80h nsid 1h cdw10 00000200h; admin 80h nsid 5h cdw10 00000200h");
    EXPECT_EQ(tried.erasure.status, "00h (success); 00h (success)");
    EXPECT_EQ(tried.erasure.skipped.size(), 3u);
    EXPECT_EQ(drive.resets, 1) << "what was read back was read from the drive, not from a memory of it";
    EXPECT_THAT(tried.samples, HasSubstr("417 places looked at before, 417 of them not empty, 0 unreadable"));
}

TEST(Erase, waits_for_sanitize_and_compares_the_command_in_its_log) {
    ScriptedDrive drive;
    drive.sanicap = 1;
    const Tried tried = wipe(drive);
    EXPECT_TRUE(tried.verified) << tried.why;
    EXPECT_EQ(tried.erasure.method, EraseMethod::sanitize_crypto);
    EXPECT_EQ(tried.erasure.status, "SSTAT 0101h SCDW10 00000004h SPROG FFFFh");
    EXPECT_GE(drive.seconds, drive.sanitize_seconds);
}

TEST(Erase, noise_after_a_lost_key_passes_where_no_zeros_are_promised) {
    ScriptedDrive drive;
    drive.sanicap = 1;
    drive.noise = true;
    EXPECT_FALSE(wipe(drive).verified) << "this one promises zeros";
    drive.spaces[1].deallocated = 0;
    drive.soil(1);
    const Tried tried = wipe(drive);
    EXPECT_TRUE(tried.verified) << tried.why;
}

TEST(Erase, noise_on_a_drive_that_was_almost_empty_shows_nothing_until_it_is_wiped_again) {
    ScriptedDrive drive;
    drive.sanicap = 1;
    drive.spaces[1].deallocated = 0;
    ASSERT_TRUE(wipe(drive).verified);  // of zeros
    for (std::size_t i = 0; i < 4096; ++i) drive.spaces[1].contents[i] = static_cast<std::uint8_t>('a' + i % 23);
    drive.noise = true;
    const Tried first = wipe(drive);
    EXPECT_FALSE(first.verified);
    EXPECT_THAT(first.why, HasSubstr("too little is known of namespace 1 from before"));
    EXPECT_EQ(first.residue, 0);
    const Tried again = wipe(drive);
    EXPECT_TRUE(again.verified) << again.why;
}

TEST(Erase, a_drive_that_keeps_what_it_had_is_found_out) {
    for (const std::uint32_t sanicap : {0U, 1U, 2U}) {
        ScriptedDrive drive;
        drive.sanicap = sanicap;
        drive.add(2);
        drive.lies = {2};
        const Tried tried = wipe(drive);
        EXPECT_TRUE(tried.erasure.done) << "it says that all went well";
        EXPECT_FALSE(tried.verified);
        EXPECT_GT(tried.residue, 0);
        EXPECT_THAT(tried.why, HasSubstr("of namespace 2 holds what it held before"));
    }
}

TEST(Erase, a_drive_that_keeps_a_part_of_ciphertext_is_found_out_also_among_noise) {
    for (const bool noise : {false, true}) {
        ScriptedDrive drive;
        drive.sanicap = 1;
        drive.spaces[1].deallocated = noise ? 0 : 1;
        drive.noise = noise;
        drive.soil_with_ciphertext(1);
        drive.keeps = 20;
        const Tried tried = wipe(drive);
        EXPECT_FALSE(tried.verified);
        EXPECT_GT(tried.residue, 0);
        EXPECT_LT(tried.residue, 4 << 19) << "and the rest is gone";
        EXPECT_THAT(tried.why, HasSubstr("holds what it held before"));
    }
}

TEST(Erase, what_is_given_up_by_whoever_asked_ends_soon_whatever_goes_on) {
    struct Row {
        std::string_view says;
        std::uint32_t sanicap;
        ErasePolicy policy;
        int asked;  // how often before it is to stop
        bool untouched;
    };
    for (const Row& row : {Row{"looking", 0, {}, 5, true}, Row{"sanitizing", 1, {}, 230, false},
                           Row{"overwriting", 0, {.order = {EraseMethod::host_zeroes}}, 230, false}}) {
        ScriptedDrive drive;
        drive.add(1, 64 << 20);
        drive.sanicap = row.sanicap;
        drive.hangs = true;
        EraseClock clock = drive.clock();
        int asked = 0;
        clock.stop = [&] { return ++asked > row.asked; };
        ScriptedTransport transport{drive};
        const Erasure erasure =
            erase(transport, {.policy = row.policy, .samples = 200}, {.key = "k", .seed = 7}, clock);
        EXPECT_FALSE(erasure.done) << row.says;
        EXPECT_THAT(erasure.why, HasSubstr("the agent was stopped")) << row.says;
        EXPECT_EQ(erasure.untouched, row.untouched) << row.says;
        EXPECT_LE(asked, row.asked + 3) << row.says;
    }
    ScriptedDrive drive;
    ScriptedTransport transport{drive};
    EraseClock clock = drive.clock();
    const Erasure erasure = erase(transport, {}, {.key = "k", .seed = 7}, clock);
    ASSERT_TRUE(erasure.done);
    clock.stop = [] { return true; };
    EXPECT_FALSE(verify(transport, erasure, 200, 1, clock).erased());
}

TEST(Erase, a_method_that_fails_has_failed_and_no_other_is_tried) {
    ScriptedDrive drive;
    drive.sanicap = 3;
    drive.fna = 4;
    drive.refuses_sanitize = 0x01;
    const Tried tried = wipe(drive);
    EXPECT_FALSE(tried.erasure.done);
    EXPECT_FALSE(tried.erasure.untouched);
    EXPECT_THAT(tried.why, HasSubstr("the drive answered 01h (invalid command opcode) to admin 84h"));
    EXPECT_EQ(drive.received, (std::vector<EraseCommand>{{0x84, 0, 4}}));
}

TEST(Erase, a_sanitize_that_fails_can_be_ordered_again) {
    ScriptedDrive drive;
    drive.sanicap = 1;
    drive.fails_to_sanitize = true;
    EXPECT_THAT(wipe(drive).why, HasSubstr("Sanitize has failed: SSTAT 0003h"));
    drive.fails_to_sanitize = false;
    const Tried again = wipe(drive);  // reads are answered 1Ch until then
    EXPECT_TRUE(again.verified) << again.why;
    EXPECT_EQ(again.erasure.before.kept(), 0u);
    EXPECT_THAT(again.samples, HasSubstr("the 199 places at random that could have told"));
    // Where it shows noise, nobody can say that it is other noise than before.
    ScriptedDrive noisy;
    noisy.sanicap = 1;
    noisy.noise = true;
    noisy.spaces[1].deallocated = 0;
    noisy.sstat = 3;
    const Tried unknown = wipe(noisy);
    EXPECT_FALSE(unknown.verified);
    EXPECT_THAT(unknown.why, HasSubstr("nothing of its namespace is known from before"));
    EXPECT_THAT(unknown.samples, HasSubstr("the 0 places at random that could have told"));
    EXPECT_TRUE(wipe(noisy).verified) << "ordered again, there is something to compare with";
}

TEST(Erase, after_a_failed_sanitize_format_is_refused_and_nothing_counts_as_erased) {
    ScriptedDrive drive;
    drive.sanicap = 1;
    drive.sstat = 3;
    const Tried tried = wipe(drive, {.order = {EraseMethod::format_erase}});
    EXPECT_FALSE(tried.verified);
    EXPECT_THAT(tried.why, HasSubstr("1Ch (Sanitize failed)"));
}

TEST(Erase, a_log_about_another_command_or_writes_since_is_no_success) {
    ScriptedDrive forgetful;
    forgetful.sanicap = 2;
    forgetful.forgets_its_command = true;
    EXPECT_THAT(wipe(forgetful).why, HasSubstr("about another command than the one that was sent (00000002h)"));
    ScriptedDrive written;
    written.sanicap = 2;
    written.written_since = true;
    EXPECT_THAT(wipe(written).why, HasSubstr("was written to since"));
}

TEST(Erase, a_sanitize_that_survived_a_loss_of_power_is_waited_for_and_counts) {
    ScriptedDrive drive;
    drive.sanicap = 1;
    drive.begin_sanitize(4);  // by an agent that is gone
    const Tried tried = wipe(drive);
    EXPECT_TRUE(tried.verified) << tried.why;
    EXPECT_THAT(drive.received, IsEmpty()) << "it was not sent twice";
    EXPECT_THAT(tried.erasure.command, HasSubstr("sent earlier and waited for"));
}

TEST(Erase, a_sanitize_that_survived_and_leaves_noise_is_sent_again_to_be_compared) {
    for (const bool lies : {false, true}) {
        ScriptedDrive drive;
        drive.sanicap = 1;
        drive.noise = true;
        drive.spaces[1].deallocated = 0;
        drive.soil_with_ciphertext(1);
        if (lies) drive.lies = {1};
        drive.begin_sanitize(4);
        const Tried tried = wipe(drive);
        EXPECT_EQ(tried.verified, !lies) << tried.why;
        EXPECT_EQ(drive.received, (std::vector<EraseCommand>{{0x84, 0, 4}}));
        EXPECT_GT(tried.erasure.before.kept(), 0u);
    }
}

TEST(Erase, somebody_elses_sanitize_is_waited_for_and_does_not_count) {
    ScriptedDrive drive;
    drive.sanicap = 7;
    drive.begin_sanitize(2);
    const Tried tried = wipe(drive);
    EXPECT_TRUE(tried.verified) << tried.why;
    EXPECT_EQ(drive.received, (std::vector<EraseCommand>{{0x84, 0, 4}}));
    EXPECT_EQ(tried.erasure.status, "SSTAT 0101h SCDW10 00000004h SPROG FFFFh");
}

TEST(Erase, a_controller_that_is_away_in_the_middle_is_asked_again) {
    ScriptedDrive drive;
    drive.sanicap = 1;
    drive.sanitize_seconds = 40;
    ScriptedTransport transport{drive};
    EraseClock clock = drive.clock();
    clock.sleep = [&drive, sleep = clock.sleep](std::chrono::milliseconds time) {
        sleep(time);
        if (drive.seconds == 3) drive.away_until = 33;  // the power is cut, and comes back
    };
    const Erasure erasure = erase(transport, {}, {.key = "k", .seed = 1}, clock);
    EXPECT_TRUE(erasure.done) << erasure.why;
    EXPECT_TRUE(verify(transport, erasure, 200, 1).erased());
}

TEST(Erase, what_hangs_is_given_up_after_twice_what_it_said_or_what_such_a_thing_takes_at_most) {
    struct Row {
        std::uint32_t sanicap, estimate;
        std::int64_t seconds;
    };
    for (const Row& row : {Row{1, 5, 70}, Row{1, 0xFFFFFFFF, 600}, Row{2, 0xFFFFFFFF, 4 * 3600},
                           Row{2, 30'000, erase_at_most.count()}}) {
        ScriptedDrive drive;
        drive.sanicap = row.sanicap;
        drive.estimate = row.estimate;
        drive.hangs = true;
        const Tried tried = wipe(drive);
        EXPECT_THAT(tried.why, HasSubstr("Sanitize has not ended within"));
        EXPECT_NEAR(static_cast<double>(drive.seconds), static_cast<double>(row.seconds), 3);
    }
}

TEST(Erase, a_format_that_fails_half_way_leaves_a_drive_that_is_not_erased_until_one_succeeds) {
    ScriptedDrive drive;
    drive.add(2);
    drive.format_fails[2] = 0x06;
    EXPECT_THAT(wipe(drive).why, HasSubstr("the drive answered 06h (internal error) to admin 80h nsid 2h"));
    // Whoever asks it now is answered 84h: that is not what an empty drive says.
    ScriptedTransport transport{drive};
    ASSERT_TRUE(transport.hold(std::vector<std::uint32_t>{1, 2}));
    const auto facts = look_at(transport);
    ASSERT_TRUE(facts);
    Erasure pretended;
    pretended.facts = *facts;
    pretended.covers = {1, 2};
    const EraseVerdict verdict = verify(transport, pretended, 200, 1);
    EXPECT_FALSE(verdict.erased());
    EXPECT_THAT(verdict.why_not(), HasSubstr("of namespace 2 cannot be read: 84h (Format in progress)"));
    drive.format_fails.clear();
    const Tried again = wipe(drive);
    EXPECT_TRUE(again.verified) << again.why;
}

TEST(Erase, a_power_cut_in_a_format_leaves_a_mix_and_the_next_wipe_takes_all_of_it) {
    ScriptedDrive drive;
    std::fill_n(drive.spaces[1].contents.begin(), drive.spaces[1].contents.size() / 2, std::uint8_t{0});
    const Tried tried = wipe(drive);
    EXPECT_TRUE(tried.verified) << tried.why;
    EXPECT_LT(tried.erasure.before.kept(), tried.erasure.before.places().size());
    EXPECT_GT(tried.erasure.before.kept(), 0u);
}

TEST(Erase, what_is_refused_is_left_alone) {
    ScriptedDrive guarded;
    guarded.spaces[1].write_protected = true;
    ScriptedDrive held;
    held.held_elsewhere = {1};
    ScriptedDrive shared;
    shared.several = true;
    shared.controllers = {1, 2};
    shared.spaces[1].shared = true;
    ScriptedDrive dumb;
    dumb.oacs = 0;
    const std::vector<std::pair<ScriptedDrive*, std::string>> rows{
        {&guarded, "namespace 1 is write protected"},
        {&held, "held by somebody else"},
        {&shared, "shared with 1 other controller"},
        {&dumb, "it offers no method that policy allows"},
    };
    for (const auto& [drive, why] : rows) {
        const Tried tried = wipe(*drive);
        EXPECT_THAT(tried.why, HasSubstr(why));
        EXPECT_TRUE(tried.erasure.untouched) << why;
        EXPECT_THAT(drive->received, IsEmpty()) << why;
    }
}

TEST(Erase, a_subsystem_of_one_controller_is_nobody_elses_whatever_it_could_hold) {
    ScriptedDrive drive;
    drive.several = true;
    drive.spaces[1].shared = true;
    EXPECT_TRUE(wipe(drive).verified);
    drive.controllers.clear();  // does not tell
    EXPECT_THAT(wipe(drive).why, HasSubstr("controllers of which the drive does not tell"));
}

TEST(Erase, a_detached_namespace_is_found_attached_erased_and_read) {
    ScriptedDrive drive;
    drive.add(2);
    drive.spaces[2].active = false;
    const Tried tried = wipe(drive);
    EXPECT_TRUE(tried.verified) << tried.why;
    EXPECT_EQ(tried.erasure.covers, (std::vector<std::uint32_t>{1, 2}));
    EXPECT_EQ(std::ranges::count(drive.spaces[2].contents, 0), 4 << 20);
}

TEST(Erase, one_format_is_enough_where_it_erases_everything) {
    ScriptedDrive drive;
    drive.add(2);
    drive.fna = 2 | 4;
    EXPECT_TRUE(wipe(drive).verified);
    EXPECT_EQ(drive.received, (std::vector<EraseCommand>{{0x80, every_namespace, 0x400}}));
}

TEST(Erase, zeroes_are_written_by_the_host_where_policy_says_so_and_are_read_back) {
    ScriptedDrive drive;
    drive.oacs = 0;
    const ErasePolicy policy{.order = {EraseMethod::host_zeroes}};
    EXPECT_TRUE(wipe(drive, policy).verified);
    EXPECT_EQ(drive.flushes, 1);
    drive.soil(1);
    drive.fails_to_flush = true;
    EXPECT_THAT(wipe(drive, policy).why, HasSubstr("cannot be flushed")) << "it may still be in a cache";
    drive.fails_to_flush = false;
    // One that drops writes and holds what nobody can tell from noise.
    drive.spaces[1].deallocated = 0;
    drive.soil(1);
    drive.lies = {1};
    EXPECT_FALSE(wipe(drive, policy).verified);
}

TEST(Erase, noise_after_an_overwrite_is_no_erased_drive) {
    for (const EraseMethod method : {EraseMethod::sanitize_overwrite, EraseMethod::format_erase}) {
        ScriptedDrive drive;
        drive.sanicap = 4;
        drive.noise = true;
        drive.spaces[1].deallocated = 0;
        const Tried tried = wipe(drive, {.order = {method}});
        EXPECT_EQ(tried.verified, method == EraseMethod::format_erase) << tried.why;
        EXPECT_THAT(tried.why, HasSubstr(tried.verified ? "" : "holds noise, and was overwritten with zeros"));
    }
}

TEST(Erase, a_drive_that_is_gone_says_so) {
    ScriptedDrive drive;
    drive.away_until = 1000;
    const Tried tried = wipe(drive);
    EXPECT_THAT(tried.why, HasSubstr("no such device"));
    EXPECT_TRUE(tried.erasure.untouched);
}

}  // namespace
}  // namespace bulkhead::nvme
