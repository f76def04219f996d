// A folder of the test's own that stands for /sys, filled like a kernel would, and gone after it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace bulkhead::rdma {

class FakeTree {
public:
    FakeTree() {
        std::string pattern = std::filesystem::temp_directory_path() / "bulkhead-sys-XXXXXX";
        root_ = ::mkdtemp(pattern.data());
    }
    ~FakeTree() {
        std::error_code wrong;
        std::filesystem::remove_all(root_, wrong);
    }
    FakeTree(const FakeTree&) = delete;
    FakeTree& operator=(const FakeTree&) = delete;

    std::string root() const { return root_; }
    void write(const std::string& path, const std::string& text) const {
        std::filesystem::create_directories((root_ / path).parent_path());
        std::ofstream{root_ / path} << text;
    }
    std::string read(const std::string& path) const {
        std::ifstream file{root_ / path};
        return {std::istreambuf_iterator<char>{file}, {}};
    }
    void link(const std::string& path, const std::string& target) const {
        std::filesystem::create_directories((root_ / path).parent_path());
        std::filesystem::remove(root_ / path);
        std::filesystem::create_symlink(target, root_ / path);
    }
    void remove(const std::string& path) const { std::filesystem::remove_all(root_ / path); }

    // A physical function with so many virtual ones, none of which has a driver.
    void add_physical(const std::string& address, const std::string& driver, unsigned functions) const {
        const std::string folder = "bus/pci/devices/" + address;
        write(folder + "/vendor", "0x8086\n");
        write(folder + "/device", "0x10c9\n");
        write(folder + "/subsystem_vendor", "0x1af4\n");
        write(folder + "/subsystem_device", "0x1100\n");
        write(folder + "/sriov_totalvfs", "7\n");
        write(folder + "/sriov_numvfs", std::to_string(functions) + "\n");
        write(folder + "/sriov_drivers_autoprobe", "1\n");
        link(folder + "/driver", "../../../bus/pci/drivers/" + driver);
        for (unsigned vf = 0; vf < functions; ++vf) {
            const std::string of = address.substr(0, 8) + "10." + std::to_string(vf);
            link(folder + "/virtfn" + std::to_string(vf), "../" + of);
            write("bus/pci/devices/" + of + "/driver_override", "\n");
            link("bus/pci/devices/" + of + "/iommu_group", "../../../kernel/iommu_groups/" + std::to_string(20 + vf));
        }
    }
    // A row of a GID table. Without a type: as on a kernel that answers EINVAL for it.
    struct Row {
        unsigned index;
        std::string gid, type, netdev;
    };
    void add_port(const std::string& device, const std::string& layer, unsigned rows,
                  const std::vector<Row>& filled) const {
        const std::string port = "class/infiniband/" + device + "/ports/1";
        write(port + "/link_layer", layer + "\n");
        write(port + "/state", "4: ACTIVE\n");
        write(port + "/pkeys/0", "0xffff\n");
        write(port + "/pkeys/1", "0x0000\n");
        for (unsigned row = 0; row < rows; ++row)
            write(port + "/gids/" + std::to_string(row), "0000:0000:0000:0000:0000:0000:0000:0000\n");
        for (const Row& row : filled) {
            write(port + "/gids/" + std::to_string(row.index), row.gid + "\n");
            write(port + "/gid_attrs/types/" + std::to_string(row.index), row.type + "\n");
            write(port + "/gid_attrs/ndevs/" + std::to_string(row.index), row.netdev + "\n");
        }
    }

private:
    std::filesystem::path root_;
};

}  // namespace bulkhead::rdma
