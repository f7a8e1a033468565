// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)

#pragma once

#include <tpacket4.h>
#include <string>
#include <vector>

#include "zeek/iosource/PktSrc.h"

namespace af_packet_v4 {

/**
 * A packet source on sockets of AF_PACKET V4. In copy mode it has one socket. For "zc:eth0", it also
 * has one in zero-copy mode for each queue pair of the interface, which feeds the fanout group of the
 * first. Without fanout, it has only those for the queue pairs. All of them use one area.
 */
class Source final : public zeek::iosource::PktSrc {
public:
    Source(const std::string& path, bool is_live);
    ~Source() override;

    static zeek::iosource::PktSrc* Instantiate(const std::string& path, bool is_live);

protected:
    void Open() override;
    void Close() override;
    bool ExtractNextPacket(zeek::Packet* pkt) override;
    void DoneWithPacket() override;
    bool SetFilter(int index) override;
    void Statistics(Stats* stats) override;

private:
    bool ReadPath();
    bool ReadQueues(const char* text);
    bool FindDevice();
    unsigned int QueueSlots() const;
    bool CreateArea();
    bool OpenSocket(int queue);
    bool Configure(tp4_socket* s, int queue);
    bool EnableHardwareStamps();
    bool RegisterSockets();

    bool FindPackets();
    u_char* Join(u_char* data, uint32_t* len);
    void ReadCounters();
    bool Fail(const std::string& what);
    bool Fail(enum tp4_where where, int err, int queue = -1);

    Properties props;
    Stats counted;

    // What the options and the path say
    std::string ifname;
    std::vector<int> queues; // of zero-copy mode; none: copy mode
    bool zerocopy = false;
    bool to_stack = false;
    bool fanout = false;
    uint32_t snaplen = 0;
    int checksums = 0;

    int ifindex = 0;
    tp4_area area = {};
    unsigned int slots = 0; // of each socket but those that feed a group
    __u64 next_frame = 0;   // that no socket has got yet
    tp4_queues q = {};
    int current_filter = -1;

    tp4_socket* current = nullptr; // whose slots are being read
    unsigned int returned = 0;     // slots, of which so many have been read
    unsigned int next = 0;
    std::vector<u_char> joined; // a packet of several frames
};

} // namespace af_packet_v4
