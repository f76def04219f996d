// A simulated node in a folder of its own, and the built library, loaded as any client loads it.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "bulkhead/hw/nvml/calls.hpp"

namespace bulkhead::nvml_sim {

class Library {
public:
    static Library& get() {
        static Library library;
        return library;
    }
    template <class F>
    F* symbol(const char* name) const {
        return reinterpret_cast<F*>(::dlsym(handle_, name));
    }

private:
    Library() : handle_{::dlopen(BULKHEAD_NVML_SIM, RTLD_NOW | RTLD_LOCAL)} {
        if (handle_ == nullptr) ADD_FAILURE() << ::dlerror();
    }
    void* handle_;
};

// NVML(nvmlDeviceGetName)(device, ...) calls the library.
#define NVML(name) (::bulkhead::nvml_sim::Library::get().symbol<::bulkhead::nvml::call::name>(#name))

class NvmlSim : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "bulkhead-node-XXXXXX").string();
        node_ = ::mkdtemp(pattern.data());
        use("gpus: 2 x h200-141gb\n");
    }
    void TearDown() override {
        while (NVML(nvmlShutdown)() == nvml::Return::success) {
        }
        std::filesystem::remove_all(node_);
    }
    // The node begins anew as this file says.
    void use(const std::string& file) {
        while (NVML(nvmlShutdown)() == nvml::Return::success) {
        }
        std::filesystem::remove(node_ / "state.bin");
        std::ofstream{node_ / "node.yaml"} << file;
        ::setenv("BULKHEAD_SIM_NODE", node_.c_str(), 1);
        ASSERT_EQ(NVML(nvmlInit_v2)(), nvml::Return::success);
    }
    nvml::Device device(std::uint32_t index = 0) {
        nvml::Device handle = nullptr;
        EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(index, &handle), nvml::Return::success);
        return handle;
    }
    // What an operator would type; the exit status.
    int gpusim(const std::string& action, const std::string& options = {}) {
        return std::system(
            (std::string{BULKHEAD_GPUSIM} + " " + action + " " + node_.string() + " " + options).c_str());
    }
    std::filesystem::path node_;
};

}  // namespace bulkhead::nvml_sim
