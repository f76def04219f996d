#include "bulkhead/hw/vm/hypervisor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "bulkhead/hw/vm/library.hpp"

namespace bulkhead::vm {

namespace {

// Seconds between words to the daemon, and how many of them may go unanswered: then the line is dead, and known to be.
constexpr int keep_alive_seconds = 5;
constexpr unsigned keep_alive_misses = 3;

}  // namespace

// The daemon may be restarted under us: whoever does something asks whether the line is alive, and opens another where
// it is not. What others are about to do on the old one ends with an error, and is closed after that.
struct Hypervisor::Line {
    using Connection = std::shared_ptr<abi::Connection>;
    const Library& library;
    std::string uri;
    Line(const Library& loaded, std::string where) : library{loaded}, uri{std::move(where)} {}

    Result<Connection> connection() {
        const std::scoped_lock lock{mutex_};
        if (connection_ && library.virConnectIsAlive(connection_.get()) == 1) return connection_;
        connection_.reset();
        abi::Connection* const opened = library.virConnectOpen(uri.c_str());
        if (opened == nullptr)
            return std::unexpected(library.error(fmt::format("open {}", uri), "see that libvirtd or virtqemud runs"));
        // Drivers inside this process have no line to keep.
        (void)library.virConnectSetKeepAlive(opened, keep_alive_seconds, keep_alive_misses);
        connection_ = {opened, [&of = library](abi::Connection* done) { of.virConnectClose(done); }};
        return connection_;
    }

    // Does it to the domain of that name; what `when_absent` says, where there is none.
    template <class Answer, class Do>
    Result<Answer> with(const std::string& name, Answer when_absent, Do act) {
        const auto line = connection();
        if (!line) return std::unexpected(line.error());
        abi::Domain* const domain = library.virDomainLookupByName(line->get(), name.c_str());
        if (domain == nullptr) {
            if (library.was_no_domain()) return when_absent;
            return std::unexpected(library.error(fmt::format("look for {}", name)));
        }
        auto answer = act(domain);
        if (!answer && library.was_no_domain()) answer = when_absent;  // it ended meanwhile
        library.virDomainFree(domain);
        return answer;
    }

private:
    std::mutex mutex_;
    Connection connection_;
};

namespace {

std::string printed(unsigned long version) {
    return fmt::format("{}.{}.{}", version / 1'000'000, version / 1'000 % 1'000, version % 1'000);
}

MachineState state_of(abi::State state) {
    switch (state) {
        case abi::State::running:
        case abi::State::blocked:
            return MachineState::running;
        case abi::State::paused:
        case abi::State::suspended:
            return MachineState::paused;
        case abi::State::shutdown:
            return MachineState::ending;
        case abi::State::crashed:
            return MachineState::crashed;
        case abi::State::none:
        case abi::State::shutoff:
            return MachineState::ended;
    }
    return MachineState::ended;
}

}  // namespace

Result<Hypervisor> Hypervisor::open(HypervisorSettings settings) {
    const auto library = Library::load(settings.library);
    if (!library) return std::unexpected(library.error());
    auto line = std::make_shared<Line>(**library, std::move(settings.uri));
    if (const auto opened = line->connection(); !opened) return std::unexpected(opened.error());
    return Hypervisor{std::move(line)};
}

std::string Hypervisor::version() const {
    unsigned long libvirt = 0, qemu = 0;
    if (const auto line = line_->connection()) {
        line_->library.virConnectGetLibVersion(line->get(), &libvirt);
        line_->library.virConnectGetVersion(line->get(), &qemu);
    }
    return fmt::format("libvirt {}, QEMU {}", printed(libvirt), printed(qemu));
}

Result<bool> Hypervisor::has_kvm() const {
    const auto line = line_->connection();
    if (!line) return std::unexpected(line.error());
    char* const text = line_->library.virConnectGetCapabilities(line->get());
    if (text == nullptr) return std::unexpected(line_->library.error("list its capabilities"));
    const bool found = std::string_view{text}.find("<domain type='kvm'") != std::string_view::npos;
    std::free(text);
    return found;
}

Result<> Hypervisor::create(const std::string& xml, unsigned how) const {
    const auto line = line_->connection();
    if (!line) return std::unexpected(line.error());
    abi::Domain* const domain = line_->library.virDomainCreateXML(line->get(), xml.c_str(), how);
    if (domain == nullptr) return std::unexpected(line_->library.error("start a machine"));
    line_->library.virDomainFree(domain);
    return {};
}

Result<> Hypervisor::start(const std::string& xml) { return create(xml, 0); }
Result<> Hypervisor::start_paused(const std::string& xml) { return create(xml, abi::create_paused); }

Result<> Hypervisor::resume(const std::string& name) const {
    const auto runs = line_->with(name, false, [&](abi::Domain* domain) -> Result<bool> {
        if (line_->library.virDomainResume(domain) != 0)
            return std::unexpected(line_->library.error(fmt::format("let {} run", name)));
        return true;
    });
    if (!runs) return std::unexpected(runs.error());
    return *runs ? Result<>{} : fail(Code::not_found, fmt::format("{} ended before it ran", name), "");
}

Result<MachineState> Hypervisor::look(const std::string& name) const {
    return line_->with(name, MachineState::absent, [&](abi::Domain* domain) -> Result<MachineState> {
        int state = 0, reason = 0;
        if (line_->library.virDomainGetState(domain, &state, &reason, 0) != 0)
            return std::unexpected(line_->library.error(fmt::format("look at {}", name)));
        return state_of(static_cast<abi::State>(state));
    });
}

Result<std::vector<std::string>> Hypervisor::running(std::string_view prefix) const {
    abi::Domain** all = nullptr;
    const auto line = line_->connection();
    if (!line) return std::unexpected(line.error());
    const int count = line_->library.virConnectListAllDomains(line->get(), &all, abi::list_active);
    if (count < 0) return std::unexpected(line_->library.error("list its machines"));
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
        if (const char* const name = line_->library.virDomainGetName(all[i]);
            std::string_view{name}.starts_with(prefix))
            names.emplace_back(name);
        line_->library.virDomainFree(all[i]);
    }
    std::free(all);
    std::ranges::sort(names);
    return names;
}

Result<> Hypervisor::ask_to_end(const std::string& name) const {
    const auto asked = line_->with(name, true, [&](abi::Domain* domain) -> Result<bool> {
        if (line_->library.virDomainShutdown(domain) != 0)
            return std::unexpected(line_->library.error(fmt::format("ask {} to end", name)));
        return true;
    });
    return asked ? Result<>{} : std::unexpected(asked.error());
}

Result<> Hypervisor::destroy(const std::string& name) const {
    const auto gone = line_->with(name, true, [&](abi::Domain* domain) -> Result<bool> {
        if (line_->library.virDomainDestroy(domain) != 0 && !line_->library.was_no_domain())
            return std::unexpected(line_->library.error(fmt::format("destroy {}", name)));
        return true;
    });
    return gone ? Result<>{} : std::unexpected(gone.error());
}

}  // namespace bulkhead::vm
