// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
//
// What the plugin uses of Zeek's classes, written from their documentation: for a test without Zeek.
// The Makefile makes headers of Zeek's names that include this one.

#pragma once

#include <pcap.h>
#include <sys/time.h>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using zeek_int_t = int64_t;
using zeek_uint_t = uint64_t;

namespace zeek {

// A script's value
class Val {
public:
    zeek_uint_t value = 0;

    zeek_uint_t AsCount() const { return value; }
    zeek_int_t AsEnum() const { return static_cast<zeek_int_t>(value); }
    bool AsBool() const { return value; }
};

using ValPtr = std::shared_ptr<Val>;

namespace id {

const ValPtr& find_val(std::string_view name);

} // namespace id

class Packet {
public:
    void Init(int link_type, timeval* ts, uint32_t caplen, uint32_t len, const u_char* data, bool copy = false,
              std::string tag = "");

    double time = 0;
    timeval ts = {};
    const u_char* data = nullptr;
    uint32_t len = 0;
    uint32_t cap_len = 0;
    uint32_t link_type = 0;
    bool l4_checksummed = false;
};

namespace iosource {

namespace detail {

class BPF_Program {
public:
    ~BPF_Program() { pcap_freecode(&program); }
    bpf_program* GetProgram() { return compiled ? &program : nullptr; }

    bool compiled = false;
    bpf_program program = {};
};

} // namespace detail

class IOSource {
public:
    virtual ~IOSource() = default;
    bool IsOpen() const { return open; }

protected:
    bool open = false;
};

class PktSrc : public IOSource {
public:
    struct Stats {
        uint64_t received = 0;
        uint64_t dropped = 0;
        uint64_t link = 0;
        uint64_t bytes_received = 0;
    };

    static const uint32_t NETMASK_UNKNOWN = 0xffffffff;

    const char* ErrorMsg() const { return error.empty() ? nullptr : error.c_str(); }
    detail::BPF_Program* GetBPFFilter(int index);
    bool ApplyBPFFilter(int index, const pcap_pkthdr* hdr, const u_char* pkt);
    virtual bool PrecompileFilter(int index, const std::string& filter);
    virtual bool SetFilter(int index) = 0;
    virtual void Statistics(Stats* stats) = 0;

protected:
    friend class Manager;

    struct Properties {
        std::string path;
        int selectable_fd = -1;
        int link_type = -1;
        uint32_t netmask = NETMASK_UNKNOWN;
        bool is_live = false;
    };

    void Opened(const Properties& props);
    void Closed();
    void Info(const std::string& msg);
    void Error(const std::string& msg);

    virtual void Open() = 0;
    virtual void Close() = 0;
    virtual bool ExtractNextPacket(Packet* pkt) = 0;
    virtual void DoneWithPacket() = 0;

private:
    Properties props;
    std::string error;
    std::vector<std::unique_ptr<detail::BPF_Program>> filters;
};

class PktSrcComponent {
public:
    enum InputType { LIVE, TRACE, BOTH };
    using factory_callback = PktSrc* (*)(const std::string& path, bool is_live);

    PktSrcComponent(const std::string& name, const std::string& prefixes, InputType type, factory_callback factory);

    std::string prefixes;
    InputType type;
    factory_callback factory;
};

} // namespace iosource

namespace plugin {

struct VersionNumber {
    int major, minor, patch;
};

class Configuration {
public:
    std::string name;
    std::string description;
    VersionNumber version = {};
};

class Plugin {
public:
    Plugin();
    virtual ~Plugin() = default;

protected:
    friend class iosource::PktSrc;
    friend class Loader;

    virtual Configuration Configure() = 0;
    void AddComponent(iosource::PktSrcComponent* c);
};

} // namespace plugin
} // namespace zeek
