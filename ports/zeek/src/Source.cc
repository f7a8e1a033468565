// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)

#include "Source.h"

#include <net/if.h>
#include <sys/ioctl.h>
// The first one defines some macros that the kernel's header then does not.
#include <pcap.h>
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <tpacket4_device.h>
#include <algorithm>
#include <cstdlib>

#include "zeek/ID.h"
#include "zeek/Val.h"

using namespace af_packet_v4;

namespace {

// In zero-copy mode, a packet of 1500 bytes needs one frame.
constexpr unsigned int FRAME_SIZE = 2048;

// Slots that are given back together. The longest packet, of 512 KiB, takes 290.
constexpr unsigned int BATCH = 512;

// In copy mode, packets lie one behind the other. Have a slot for so many bytes of memory.
constexpr unsigned int SLOT_BYTES = 256;

// Frames for the card to fill. Packets that wait for Zeek are in those of the group's member.
constexpr unsigned int FEEDER_SLOTS = 2048;

constexpr unsigned int MIN_SLOTS = 1024;
constexpr unsigned int MAX_SLOTS = 1024 * 1024;

// The interface that has each packet twice
constexpr char LOOPBACK[] = "lo";

// Values of AF_Packet::ChecksumMode. Its header is in another place in each version of Zeek.
constexpr int CHECKSUM_OFF = 0;
constexpr int CHECKSUM_KERNEL = 2;

// Values of AF_Packet::FanoutMode
constexpr unsigned int FANOUT_TYPES[] = {
    PACKET_FANOUT_HASH, PACKET_FANOUT_CPU, PACKET_FANOUT_QM, PACKET_FANOUT_CBPF, PACKET_FANOUT_EBPF,
};

// An option of the built-in packet source, or of pcap's
const zeek::ValPtr& option(const char* name) { return zeek::id::find_val(name); }

} // namespace

Source::Source(const std::string& path, bool is_live) {
    props.path = path;
    props.is_live = is_live;
}

Source::~Source() { Close(); }

zeek::iosource::PktSrc* Source::Instantiate(const std::string& path, bool is_live) { return new Source(path, is_live); }

bool Source::Fail(const std::string& what) {
    Error(props.path + ": " + what);
    return false;
}

bool Source::Fail(enum tp4_where where, int err, int queue) {
    std::string what = queue < 0 ? "" : "queue " + std::to_string(queue) + ": ";

    return Fail(what + tp4_strerror(where, err));
}

// Reads queues and ranges of them, as in "0,2-5".
bool Source::ReadQueues(const char* text) {
    do {
        char* end;
        unsigned long first = strtoul(text, &end, 10), last = first;

        if ( *text < '0' || *text > '9' )
            return false;

        if ( *end == '-' ) {
            text = end + 1;
            last = strtoul(text, &end, 10);
            if ( *text < '0' || *text > '9' )
                return false;
        }

        if ( last < first || last > UINT16_MAX )
            return false;

        for ( ; first <= last; first++ )
            if ( std::find(queues.begin(), queues.end(), static_cast<int>(first)) == queues.end() )
                queues.push_back(static_cast<int>(first));

        text = end;
    } while ( *text++ == ',' );

    return ! text[-1];
}

// Reads "eth0", "zc:eth0", "zc:eth0:0,2-5" or "zc:eth0+stack".
bool Source::ReadPath() {
    static const std::string stack = "+stack";

    queues.clear();
    ifname = props.path;
    zerocopy = ! ifname.compare(0, 3, "zc:");
    to_stack = false;
    if ( ! zerocopy )
        return true;

    ifname.erase(0, 3);
    to_stack = ifname.size() > stack.size() && ! ifname.compare(ifname.size() - stack.size(), stack.size(), stack);
    if ( to_stack )
        ifname.resize(ifname.size() - stack.size());

    const auto colon = ifname.find(':');

    if ( colon != std::string::npos ) {
        if ( ! ReadQueues(ifname.c_str() + colon + 1) )
            return Fail("\"" + ifname.substr(colon + 1) + "\" is not a list of queues, as in 0,2-5");
        ifname.resize(colon);
    }

    if ( to_stack && fanout )
        return Fail("+stack needs AF_Packet::enable_fanout=F");
    return true;
}

// Looks for the interface and its queues.
bool Source::FindDevice() {
    struct tp4_device device;

    ifindex = static_cast<int>(if_nametoindex(ifname.c_str()));
    if ( ! ifindex )
        return Fail(TP4_IN_BIND, ENODEV);

    if ( zerocopy && queues.empty() ) {
        int err = tp4_device(ifindex, &device);

        if ( err || ! device.queues )
            return Fail("the kernel does not say how many queues it has, or it is down: name them, as in zc:" + ifname +
                        ":0");
        for ( unsigned int i = 0; i < device.queues; i++ )
            queues.push_back(static_cast<int>(i));
    }

    if ( queues.size() + fanout > TP4_WAIT_MAX )
        return Fail("has more than " + std::to_string(TP4_WAIT_MAX - fanout) + " queues: name some");
    return true;
}

// Slots of a socket in zero-copy mode
unsigned int Source::QueueSlots() const { return fanout ? std::min(slots, FEEDER_SLOTS) : slots; }

// Makes an area for all sockets.
bool Source::CreateArea() {
    const size_t size = option("AF_Packet::buffer_size")->AsCount();
    size_t frames = size / FRAME_SIZE;

    for ( slots = MAX_SLOTS;; slots /= 2 ) {
        if ( zerocopy )
            frames = fanout * slots + queues.size() * QueueSlots();
        if ( slots == MIN_SLOTS || (zerocopy ? frames * FRAME_SIZE : static_cast<size_t>(slots) * SLOT_BYTES) <= size )
            break;
    }

    int err = tp4_area_create(&area, static_cast<__u32>(frames), FRAME_SIZE);

    return ! err || Fail(TP4_IN_AREA, err);
}

// Joins the fanout group and enters zero-copy mode, on a queue if it is not -1.
bool Source::Configure(tp4_socket* s, int queue) {
    const auto group = static_cast<unsigned int>(option("AF_Packet::fanout_id")->AsCount());
    int err = 0;

    // The option is for the next bind(), so that the socket receives nothing else.
    if ( queue >= 0 && ! fanout )
        err = tp4_zerocopy(s, queue + 1);
    if ( err )
        return Fail(TP4_IN_ZEROCOPY, err, queue);

    err = tp4_bind(s, ifindex);
    if ( err )
        return Fail(TP4_IN_BIND, err, queue);

    if ( ! fanout )
        return true;

    auto type = FANOUT_TYPES[option("AF_Packet::fanout_mode")->AsEnum()];

    if ( option("AF_Packet::enable_defrag")->AsBool() )
        type |= PACKET_FANOUT_FLAG_DEFRAG;
    if ( ifname == LOOPBACK )
        type |= PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
    err = tp4_fanout(s, group, type);
    if ( err )
        return Fail("fanout group " + std::to_string(group) + ": " +
                    (err == -EPERM  ? "a queue feeds it: CAP_NET_ADMIN or the user of that process is needed" :
                     err == -EINVAL ? "it is of another interface or mode" :
                                      strerror(-err)));

    if ( queue >= 0 )
        err = tp4_zerocopy(s, queue + 1);

    if ( err == -EBUSY ) {
        // The packets come by the group. Its frames are not used again: as a member, it may have
        // exchanged them.
        Info(ifname + ": queue " + std::to_string(queue) + " is another worker's, or another program's");
        tp4_close(s);
        q.nr--;
    }
    else if ( err )
        return Fail(TP4_IN_ZEROCOPY, err, queue);
    return true;
}

// Opens a socket: of a queue, or with -1, in copy mode.
bool Source::OpenSocket(int queue) {
    tp4_socket* s = &q.s[q.nr];
    tp4_options options = {};

    options.area = &area;
    options.rx_nr = queue < 0 ? slots : QueueSlots();
    options.meta = 1;
    options.packed = ! zerocopy;
    options.to_stack = to_stack;
    options.mr_fd = q.nr ? q.s[0].fd : 0;

    int err = tp4_open(s, &options);

    if ( err )
        return Fail(s->failed, err, queue);
    q.nr++;

    for ( unsigned int i = 0; i < options.rx_nr; i++ ) {
        tp4_ring_post(&s->rx, &next_frame, 1);
        next_frame += zerocopy;
    }

    if ( option("AF_Packet::enable_hw_timestamping")->AsBool() )
        err = tp4_setopt(s->fd, PACKET_TIMESTAMP, SOF_TIMESTAMPING_RAW_HARDWARE);
    if ( ! err && ifname == LOOPBACK )
        err = tp4_setopt(s->fd, PACKET_IGNORE_OUTGOING, 1);
    return err ? Fail(strerror(-err)) : Configure(s, queue);
}

bool Source::EnableHardwareStamps() {
    hwtstamp_config config = {};
    ifreq ifr = {};

    if ( ! option("AF_Packet::enable_hw_timestamping")->AsBool() )
        return true;

    config.tx_type = HWTSTAMP_TX_OFF;
    config.rx_filter = HWTSTAMP_FILTER_ALL;
    ifname.copy(ifr.ifr_name, IFNAMSIZ - 1);
    ifr.ifr_data = reinterpret_cast<char*>(&config);
    return ! ioctl(q.s[0].fd, SIOCSHWTSTAMP, &ifr) || Fail(std::string("hardware timestamps: ") + strerror(errno));
}

// Makes a file descriptor that is readable while any socket has packets or an error. Zeek's kqueue
// would clear the error of a socket, and not tell it.
bool Source::RegisterSockets() {
    q.epoll = epoll_create1(EPOLL_CLOEXEC);
    if ( q.epoll < 0 )
        return Fail(strerror(errno));

    for ( unsigned int i = 0; i < q.nr; i++ ) {
        epoll_event event = {};

        event.events = EPOLLIN;
        event.data.u32 = i;
        if ( epoll_ctl(q.epoll, EPOLL_CTL_ADD, q.s[i].fd, &event) )
            return Fail(strerror(errno));
    }
    return true;
}

void Source::Open() {
    int err = 0;

    fanout = option("AF_Packet::enable_fanout")->AsBool();
    snaplen = static_cast<uint32_t>(option("Pcap::snaplen")->AsCount());
    checksums = static_cast<int>(option("AF_Packet::checksum_validation_mode")->AsEnum());
    counted = {};
    next_frame = 0;
    q.epoll = -1;

    bool done = props.is_live ? ReadPath() && FindDevice() && CreateArea() : Fail("this source reads no files");

    // A group gets a feeder when it has a member.
    if ( done && (fanout || ! zerocopy) )
        done = OpenSocket(-1);
    for ( size_t i = 0; done && i < queues.size(); i++ )
        done = OpenSocket(queues[i]);

    if ( done )
        err = tp4_promisc(&q.s[0], ifindex);
    if ( err )
        done = Fail(std::string("promiscuous mode: ") + strerror(-err));

    if ( ! done || ! EnableHardwareStamps() || ! RegisterSockets() ) {
        Close();
        return;
    }

    props.selectable_fd = q.epoll;
    props.link_type = static_cast<int>(option("AF_Packet::link_type")->AsCount());
    Opened(props);
}

void Source::Close() {
    if ( ! area.addr )
        return;

    ReadCounters();
    // Before the file descriptor is closed, as Zeek could not forget it then.
    if ( IsOpen() )
        Closed();
    tp4_close_queues(&q);
    tp4_area_destroy(&area);
    returned = next = 0;
}

// Copies a packet of several frames, of which the first has been read, up to the snap length.
u_char* Source::Join(u_char* data, uint32_t* len) {
    joined.assign(data, data + *len);
    const tpacket4_desc* d;
    do {
        d = tp4_ring_at(&current->rx, next++);
        if ( joined.size() < snaplen )
            joined.insert(joined.end(), tp4_data(&area, d), tp4_data(&area, d) + d->len);
    } while ( d->flags & TP4_PKT_CONT );
    *len = static_cast<uint32_t>(joined.size());
    return joined.data();
}

// Gives back what was read and looks for more packets.
bool Source::FindPackets() {
    int err = 0;

    if ( ! IsOpen() )
        return false;

    if ( returned ) {
        tp4_ring_recycle(&current->rx, returned);
        returned = next = 0;
        if ( tp4_rx_need_kick(current) )
            err = tp4_rx_kick(current);
    }

    if ( ! err ) {
        current = tp4_peek_queues(&q, BATCH, &returned);
        if ( current )
            return true;
        // Zeek may sleep now: posts what is held back, and reads the error of each socket.
        err = tp4_wait_queues(&q, POLLIN, 0);
    }

    if ( err == -ENETDOWN )
        Info(props.path + ": " + tp4_strerror(TP4_IN_WAIT, err));
    else if ( err < 0 ) {
        Fail(TP4_IN_WAIT, err);
        // Zeek asks for the error of a source that it cannot open only.
        Info(ErrorMsg());
        Close();
    }
    return false;
}

bool Source::ExtractNextPacket(zeek::Packet* pkt) {
    while ( next < returned || FindPackets() ) {
        const tpacket4_desc* d = tp4_ring_at(&current->rx, next++);

        // There is no packet in it: zero-copy mode has ended.
        if ( d->error )
            continue;

        u_char* data = tp4_data(&area, d);
        uint32_t len = d->len;
        // That of a packed ring is in front of the data.
        const auto* meta =
            zerocopy ? tp4_meta(&area, d) : reinterpret_cast<tpacket4_meta*>(data - sizeof(tpacket4_meta));
        const timespec when = tp4_meta_time(meta);

        if ( d->flags & TP4_PKT_CONT )
            data = Join(data, &len);

        pcap_pkthdr hdr = {};
        hdr.ts.tv_sec = when.tv_sec;
        hdr.ts.tv_usec = when.tv_nsec / 1000;
        hdr.caplen = std::min(len, snaplen);
        hdr.len = meta->wire_len;
        if ( ! ApplyBPFFilter(current_filter, &hdr, data) )
            continue;

        pkt->Init(props.link_type, &hdr.ts, hdr.caplen, hdr.len, data);
        // It has more digits than the above.
        pkt->time = static_cast<double>(when.tv_sec) + static_cast<double>(when.tv_nsec) / 1e9;
        // A packet of this host that has no checksum yet has none to validate.
        pkt->l4_checksummed = checksums == CHECKSUM_OFF || (meta->flags & TP4_META_CSUM) ||
                              (checksums == CHECKSUM_KERNEL && (meta->flags & TP4_META_RX_CSUM_VALID));
        counted.received++;
        counted.bytes_received += hdr.len;
        return true;
    }
    return false;
}

// The packets of a batch are given back together, when the next one is wanted.
void Source::DoneWithPacket() {}

// Each packet is filtered by the source, for nothing else does that in zero-copy mode, and a packet
// may have been received before. In copy mode, the kernel drops most, and copies only the snap length.
// It has taken out the VLAN tags that it puts back, so it cannot judge packets that had one.
bool Source::SetFilter(int index) {
    auto* code = GetBPFFilter(index);
    const auto* program = code ? code->GetProgram() : nullptr;

    if ( ! program )
        return false;
    current_filter = index;

    if ( zerocopy && ! fanout )
        return true;

    std::vector<sock_filter> insns = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, static_cast<__u32>(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, snaplen),
    };
    for ( unsigned int i = 0; i < program->bf_len; i++ ) {
        const auto& insn = program->bf_insns[i];
        insns.push_back({insn.code, insn.jt, insn.jf, insn.k});
    }

    const sock_fprog filter = {static_cast<unsigned short>(insns.size()), insns.data()};

    // One that is too long for the kernel must not leave the last one there.
    if ( setsockopt(q.s[0].fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) )
        setsockopt(q.s[0].fd, SOL_SOCKET, SO_DETACH_FILTER, nullptr, 0);
    return true;
}

// The kernel's counters start again when they are read.
void Source::ReadCounters() {
    for ( unsigned int i = 0; i < q.nr; i++ ) {
        tpacket_stats_v4 st;

        if ( tp4_stats(&q.s[i], &st) )
            continue;
        counted.link += st.tp_packets;
        counted.dropped += st.tp_drops;
    }
}

void Source::Statistics(Stats* stats) {
    ReadCounters();
    *stats = counted;
}
