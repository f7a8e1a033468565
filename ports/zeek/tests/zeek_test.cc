// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
//
// Usage: zeek_test PLUGIN
//
// Loads the plugin as Zeek does, and runs its packet source on a veth pair that it makes. It needs root
// and a network namespace of its own.

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <set>

#include "zeek_stub.h"

using zeek::Packet;
using zeek::iosource::PktSrc;

// --- Zeek's side ----------------------------------------------------------

static std::map<std::string, zeek::ValPtr, std::less<>> options;
static std::list<zeek::iosource::PktSrcComponent*> components;
static zeek::plugin::Plugin* loaded;
static std::set<int> registered;
static std::string informed;

static void set(const char* name, zeek_uint_t value) {
    options[name] = std::make_shared<zeek::Val>();
    options[name]->value = value;
}

static void set_defaults() {
    set("AF_Packet::buffer_size", 16 * 1024 * 1024);
    set("AF_Packet::enable_hw_timestamping", 0);
    set("AF_Packet::enable_defrag", 0);
    set("AF_Packet::enable_fanout", 1);
    set("AF_Packet::fanout_mode", 0);
    set("AF_Packet::fanout_id", 23);
    set("AF_Packet::link_type", DLT_EN10MB);
    set("AF_Packet::checksum_validation_mode", 1);
    set("Pcap::snaplen", 9216);
}

namespace zeek {

const ValPtr& id::find_val(std::string_view name) {
    auto found = options.find(name);

    if ( found == options.end() ) {
        printf("Bail out! Zeek has no %s\n", std::string(name).c_str());
        exit(1);
    }
    return found->second;
}

void Packet::Init(int arg_link_type, timeval* arg_ts, uint32_t arg_caplen, uint32_t arg_len, const u_char* arg_data,
                  bool, std::string) {
    *this = Packet();
    link_type = static_cast<uint32_t>(arg_link_type);
    ts = *arg_ts;
    cap_len = arg_caplen;
    len = arg_len;
    data = arg_data;
    time = static_cast<double>(ts.tv_sec) + static_cast<double>(ts.tv_usec) / 1e6;
}

namespace plugin {

Plugin::Plugin() { loaded = this; }
void Plugin::AddComponent(iosource::PktSrcComponent* c) { components.push_back(c); }

class Loader {
public:
    static Configuration Configure() { return loaded->Configure(); }
};

} // namespace plugin

namespace iosource {

PktSrcComponent::PktSrcComponent(const std::string&, const std::string& arg_prefixes, InputType arg_type,
                                 factory_callback arg_factory)
    : prefixes(arg_prefixes), type(arg_type), factory(arg_factory) {}

detail::BPF_Program* PktSrc::GetBPFFilter(int index) {
    return static_cast<size_t>(index) < filters.size() ? filters[static_cast<size_t>(index)].get() : nullptr;
}

bool PktSrc::PrecompileFilter(int index, const std::string& filter) {
    auto code = std::make_unique<detail::BPF_Program>();
    pcap_t* pcap = pcap_open_dead(props.link_type, static_cast<int>(id::find_val("Pcap::snaplen")->AsCount()));

    code->compiled = ! pcap_compile(pcap, &code->program, filter.c_str(), 1, PCAP_NETMASK_UNKNOWN);
    pcap_close(pcap);
    if ( filters.size() <= static_cast<size_t>(index) )
        filters.resize(static_cast<size_t>(index) + 1);
    filters[static_cast<size_t>(index)] = std::move(code);
    return GetBPFFilter(index)->compiled;
}

bool PktSrc::ApplyBPFFilter(int index, const pcap_pkthdr* hdr, const u_char* pkt) {
    return pcap_offline_filter(GetBPFFilter(index)->GetProgram(), hdr, pkt);
}

void PktSrc::Opened(const Properties& arg_props) {
    props = arg_props;
    open = true;
    if ( ! PrecompileFilter(0, "") || ! SetFilter(0) )
        Close();
    else
        registered.insert(props.selectable_fd);
}

void PktSrc::Closed() {
    open = false;
    // kqueue() cannot forget one that is closed.
    if ( fcntl(props.selectable_fd, F_GETFD) < 0 )
        printf("# Closed(), but the descriptor was closed before\n");
    else
        registered.erase(props.selectable_fd);
}

void PktSrc::Info(const std::string& msg) { informed += msg + "\n"; }
void PktSrc::Error(const std::string& msg) { error = msg; }

// What Zeek's manager and main loop do with a source
class Manager {
public:
    explicit Manager(const std::string& path, bool is_live = true) : src(components.front()->factory(path, is_live)) {}

    bool Open() {
        src->Open();
        return src->IsOpen();
    }

    void Close() {
        if ( src->IsOpen() )
            src->Close();
    }

    bool IsReadable(int timeout = 0) const {
        pollfd pfd = {src->props.selectable_fd, POLLIN, 0};
        int ready = poll(&pfd, 1, timeout), err;
        socklen_t len = sizeof(err);

        // The kqueue() that Zeek has on Linux reads the error, and so clears it.
        if ( ready > 0 && (pfd.revents & POLLERR) )
            getsockopt(pfd.fd, SOL_SOCKET, SO_ERROR, &err, &len);
        return ready > 0;
    }

    // Sleeps as Zeek does if there is no packet. Call Done() after a packet.
    bool Next(Packet* pkt, int timeout = 2000) {
        while ( src->IsOpen() ) {
            if ( src->ExtractNextPacket(pkt) )
                return true;
            if ( src->IsOpen() && ! IsReadable(timeout) )
                return false;
        }
        return false;
    }

    void Done() { src->DoneWithPacket(); }

    PktSrc::Stats Statistics() {
        PktSrc::Stats stats;

        src->Statistics(&stats);
        return stats;
    }

    std::string Error() const { return src->ErrorMsg() ? src->ErrorMsg() : ""; }

    std::unique_ptr<PktSrc> src;
};

} // namespace iosource
} // namespace zeek

using zeek::iosource::Manager;

// --- results --------------------------------------------------------------

static int tests, failures;
static bool good;

static bool check(bool is, const char* format, ...) {
    va_list args;

    if ( ! is ) {
        va_start(args, format);
        printf("# ");
        vprintf(format, args);
        printf("\n");
        va_end(args);
        good = false;
    }
    return is;
}

static bool check_eq(int line, const char* what, long long is, long long wanted) {
    return check(is == wanted, "line %d: %s is %lld, not %lld", line, what, is, wanted);
}

#define CHECK(cond) check(cond, "line %d: not %s", __LINE__, #cond)
#define CHECK_EQ(a, b) check_eq(__LINE__, #a, static_cast<long long>(a), static_cast<long long>(b))
#define CHECK_HAS(text, part)                                                                                          \
    check((text).find(part) != std::string::npos, "line %d: \"%s\" without \"%s\"", __LINE__, (text).c_str(), part)

// --- packets --------------------------------------------------------------

static const unsigned int FLOWS = 16, HEADERS = 14 + 20 + 8;
static int sender = -1;

static int open_sender(bool offloads = false) {
    sockaddr_ll ll = {};
    int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1;

    ll.sll_family = AF_PACKET;
    ll.sll_ifindex = static_cast<int>(if_nametoindex("zeekB"));
    if ( offloads )
        setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one));
    if ( bind(fd, reinterpret_cast<sockaddr*>(&ll), sizeof(ll)) ) {
        perror("bind");
        exit(1);
    }
    return fd;
}

static void make_pair() {
    const char* command =
        "ip link del zeekA 2>/dev/null;"
        "ip link add zeekA mtu 9000 numtxqueues 2 numrxqueues 2 type veth peer name zeekB mtu 9000 numtxqueues 2 "
        "numrxqueues 2 && for i in zeekA zeekB; do"
        "	n=/proc/sys/net/ipv6/conf/$i/disable_ipv6; [ ! -e $n ] || echo 1 >$n;"
        "	ip link set $i up;"
        "done; for i in $(seq 100); do"
        "	[ $(cat /sys/class/net/zeekA/operstate) != up ] || break; sleep 0.1;"
        "done";

    if ( system(command) )
        exit(1);
    if ( sender >= 0 )
        close(sender);
    sender = open_sender();
}

static uint32_t sum16(const u_char* p, size_t n) {
    uint32_t sum = 0;

    for ( ; n; n -= 2, p += 2 )
        sum += static_cast<uint32_t>(p[0] << 8 | p[1]);
    return sum;
}

// A UDP packet with a number; a flow has ports of its own. With vlan, it has a tag.
static std::vector<u_char> packet(uint32_t seq, unsigned int len, unsigned int flow, unsigned int vlan = 0) {
    std::vector<u_char> p(len);

    for ( unsigned int i = HEADERS + 4; i < len; i++ )
        p[i] = static_cast<u_char>(i * 7 + seq);
    memset(&p[0], 0, HEADERS);
    memcpy(&p[0], "\2\0\0\0\0\1\2\0\0\0\0\2\x8\0\x45", 15);
    p[16] = static_cast<u_char>((len - 14) >> 8);
    p[17] = static_cast<u_char>(len - 14);
    p[22] = 64;
    p[23] = IPPROTO_UDP;
    memcpy(&p[26], "\xc0\0\2\1\xc0\0\2\2", 8);
    uint32_t sum = sum16(&p[14], 20);
    sum = ~((sum & 0xffff) + (sum >> 16));
    p[24] = static_cast<u_char>(sum >> 8);
    p[25] = static_cast<u_char>(sum);
    p[34] = 40;
    p[35] = static_cast<u_char>(flow);
    p[37] = static_cast<u_char>(100 + flow);
    p[38] = static_cast<u_char>((len - 34) >> 8);
    p[39] = static_cast<u_char>(len - 34);
    seq = htonl(seq);
    memcpy(&p[HEADERS], &seq, 4);
    if ( vlan ) {
        const u_char tag[] = {0x81, 0, static_cast<u_char>(vlan >> 8), static_cast<u_char>(vlan)};
        p.insert(p.begin() + 12, tag, tag + 4);
    }
    return p;
}

// Not every other packet, as some types of fanout take
static unsigned int flow_of(uint32_t seq) { return (seq ^ seq / FLOWS) % FLOWS; }

static unsigned int length_of(uint32_t seq) {
    static const unsigned int lengths[] = {60, 300, 1400, 61, 4500, 1792, 8000};

    return lengths[seq % 7];
}

static void send_one(const std::vector<u_char>& p) {
    while ( send(sender, p.data(), p.size(), 0) < 0 )
        if ( errno != ENOBUFS ) {
            check(false, "send: %s", strerror(errno));
            return;
        }
}

static void send_all(uint32_t from, uint32_t to, unsigned int len = 0) {
    for ( uint32_t seq = from; seq < to; seq++ )
        send_one(packet(seq, len ? len : length_of(seq), flow_of(seq)));
}

static uint32_t seq_of(const Packet& pkt, unsigned int tag = 0) {
    uint32_t seq;

    memcpy(&seq, pkt.data + HEADERS + tag, 4);
    return ntohl(seq);
}

static double now() {
    timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return static_cast<double>(ts.tv_sec) + static_cast<double>(ts.tv_nsec) / 1e9;
}

// Is this the packet of its number, up to the snap length?
static bool is_right(const Packet& pkt, unsigned int len = 0, unsigned int snaplen = 9216, unsigned int vlan = 0) {
    if ( ! CHECK(pkt.cap_len >= HEADERS + 8) )
        return false;

    const uint32_t seq = seq_of(pkt, vlan ? 4 : 0);
    const auto wanted = packet(seq, len ? len : length_of(seq), flow_of(seq), vlan);

    return check(pkt.len == wanted.size() && pkt.cap_len == std::min(pkt.len, snaplen) && pkt.link_type == DLT_EN10MB &&
                     ! memcmp(pkt.data, wanted.data(), pkt.cap_len),
                 "packet %u: %u of %u bytes, not of %zu, or other data", seq, pkt.cap_len, pkt.len, wanted.size());
}

// --- the tests ------------------------------------------------------------

// Packets of all lengths, from both queues: each once, in the order of its flow, with its stamp
static void receives(const char* path) {
    const uint32_t nr = 2100, burst = 70;
    std::map<uint32_t, uint32_t> last;
    std::set<uint32_t> seen;
    bool digits = false;
    double stamp = 0, begin = now();
    uint64_t bytes = 0;
    Manager m(path);
    Packet pkt;

    if ( ! check(m.Open(), "%s", m.Error().c_str()) )
        return;
    CHECK_EQ(registered.size(), 1);
    CHECK_EQ(system("ip -d link show zeekA | grep -q 'promiscuity [1-9]'"), 0);
    for ( uint32_t sent = 0; good && sent < nr; sent += burst ) {
        send_all(sent, sent + burst);
        while ( seen.size() < sent + burst && CHECK(m.Next(&pkt)) && is_right(pkt) ) {
            uint32_t seq = seq_of(pkt);

            CHECK(seen.insert(seq).second);
            CHECK(! last.count(flow_of(seq)) || last[flow_of(seq)] < seq);
            last[flow_of(seq)] = seq;
            check(pkt.time >= begin - 1e-6 && pkt.time <= now() + 1e-6, "stamp %.9f", pkt.time);
            const double rounded = static_cast<double>(pkt.ts.tv_sec) + static_cast<double>(pkt.ts.tv_usec) / 1e6;
            check(pkt.time > rounded - 1e-6 && pkt.time < rounded + 2e-6, "%.9f, but %.9f", pkt.time, rounded);
            digits |= pkt.time != rounded;
            stamp = std::max(stamp, pkt.time);
            bytes += pkt.len;
            CHECK(! pkt.l4_checksummed);
            m.Done();
        }
    }
    CHECK(! m.Next(&pkt, 20));
    CHECK(stamp > begin);
    CHECK(digits);
    auto stats = m.Statistics();
    CHECK_EQ(stats.received, nr);
    CHECK_EQ(stats.link, nr);
    CHECK_EQ(stats.dropped, 0);
    CHECK_EQ(stats.bytes_received, bytes);
    m.Close();
    // Zeek asks for them after it has closed the source.
    CHECK_EQ(m.Statistics().link, nr);
    CHECK(registered.empty());
}

// The descriptor is readable while there are packets, also those of a batch, and only then.
static void sleeps(const char* path) {
    Manager m(path);
    Packet pkt;

    if ( ! check(m.Open(), "%s", m.Error().c_str()) )
        return;
    for ( int round = 0; round < 3; round++ ) {
        CHECK(! m.Next(&pkt, 0));
        CHECK(! m.IsReadable(20));
        send_all(0, 20);
        usleep(20000);
        for ( int i = 0; i < 20; i++ ) {
            CHECK(m.IsReadable(500));
            CHECK(m.Next(&pkt, 0));
            m.Done();
        }
    }
    // Those of any queue wake it.
    for ( uint32_t seq = 0; seq < FLOWS; seq++ ) {
        CHECK(! m.Next(&pkt, 0));
        send_all(seq, seq + 1);
        CHECK(m.IsReadable(500));
        CHECK(m.Next(&pkt, 0)) && CHECK_EQ(seq_of(pkt), seq);
        m.Done();
    }
    m.Close();
}

static void vlan_tags(const char* path) {
    const unsigned int tag = 5 << 13 | 1 << 12 | 100;
    Manager m(path);
    Packet pkt;

    if ( ! check(m.Open(), "%s", m.Error().c_str()) )
        return;
    for ( uint32_t seq = 0; seq < 7; seq++ ) {
        send_one(packet(seq, length_of(seq), flow_of(seq), tag));
        CHECK(m.Next(&pkt)) && is_right(pkt, 0, 9216, tag);
        m.Done();
    }
    // A filter sees the packet as Zeek does.
    CHECK(m.src->PrecompileFilter(1, "vlan 100 and udp dst port 105"));
    CHECK(m.src->SetFilter(1));
    for ( uint32_t seq = 0; seq < 40; seq++ )
        send_one(packet(seq, 100, flow_of(seq), seq < 20 ? tag : seq < 30 ? 7 : 0));
    CHECK(m.Next(&pkt)) && CHECK_EQ(seq_of(pkt, 4), 5);
    m.Done();
    CHECK(! m.Next(&pkt, 20));
    m.Close();
}

static void snap_length(const char* path) {
    for ( unsigned int snaplen : {100u, 3000u} ) {
        set("Pcap::snaplen", snaplen);
        Manager m(path);
        Packet pkt;

        if ( ! check(m.Open(), "%s", m.Error().c_str()) )
            return;
        for ( unsigned int vlan : {0u, 5u} )
            for ( uint32_t seq = 0; seq < 7; seq++ ) {
                send_one(packet(seq, length_of(seq), flow_of(seq), vlan));
                CHECK(m.Next(&pkt)) && is_right(pkt, 0, snaplen, vlan);
                m.Done();
            }
        m.Close();
    }
}

static void filters(const char* path) {
    const bool in_kernel = options["AF_Packet::enable_fanout"]->AsBool() || strncmp(path, "zc:", 3);
    Manager m(path);
    Packet pkt;

    if ( ! check(m.Open(), "%s", m.Error().c_str()) )
        return;
    CHECK(! m.src->PrecompileFilter(1, "no such filter"));
    CHECK(! m.src->SetFilter(2));
    CHECK(m.src->PrecompileFilter(1, "udp dst port 103"));
    // also for what was received before
    send_all(0, FLOWS);
    usleep(20000);
    CHECK(m.src->SetFilter(1));
    send_all(FLOWS, 2 * FLOWS);
    for ( uint32_t seq : {3u, FLOWS + 2u} ) {
        CHECK(m.Next(&pkt)) && CHECK_EQ(seq_of(pkt), seq);
        m.Done();
    }
    CHECK(! m.Next(&pkt, 20));
    CHECK(m.src->SetFilter(0));
    send_all(0, FLOWS);
    for ( uint32_t i = 0; i < FLOWS; i++ ) {
        CHECK(m.Next(&pkt)) && is_right(pkt);
        m.Done();
    }
    auto stats = m.Statistics();
    CHECK_EQ(stats.received, FLOWS + 2);
    // The kernel has filtered those of the second time, if it does.
    CHECK_EQ(stats.link, in_kernel ? 2 * FLOWS + 1 : 3 * FLOWS);
    m.Close();
}

// Packets that find no memory are counted once, however often the counters are read.
static void drops(const char* path) {
    const uint32_t nr = 12000;
    uint64_t got = 0;
    Packet pkt;

    set("AF_Packet::buffer_size", 1024 * 1024);
    Manager m(path);
    if ( ! check(m.Open(), "%s", m.Error().c_str()) )
        return;
    for ( uint32_t seq = 0; seq < nr; seq += 3000 ) {
        send_all(seq, seq + 3000, 1400);
        usleep(20000);
        m.Statistics();
    }
    for ( ; m.Next(&pkt, 50); m.Done(), got++ )
        is_right(pkt, 1400);
    auto stats = m.Statistics();
    CHECK_EQ(stats.received, got);
    CHECK_EQ(stats.link, nr);
    CHECK_EQ(stats.received + stats.dropped, nr);
    CHECK(got >= 500 && stats.dropped > 1000);
    // It goes on.
    send_all(0, 20);
    for ( int i = 0; i < 20; i++ ) {
        CHECK(m.Next(&pkt)) && is_right(pkt);
        m.Done();
    }
    m.Close();
}

// The kernel does not write to a packet that Zeek still has, however many come.
static void keeps_memory(const char* path) {
    Packet pkt;

    set("AF_Packet::buffer_size", 1024 * 1024);
    Manager m(path);
    if ( ! check(m.Open(), "%s", m.Error().c_str()) )
        return;
    for ( int round = 0; round < 3; round++ ) {
        send_all(0, 600, 100);
        usleep(20000);
        for ( int i = 0; i < 300; i++ ) {
            CHECK(m.Next(&pkt));
            m.Done();
        }
        CHECK(m.Next(&pkt));
        const uint32_t seq = seq_of(pkt);
        send_all(1000, 8000, 100);
        is_right(pkt, 100);
        CHECK_EQ(seq_of(pkt), seq);
        m.Done();
        while ( m.Next(&pkt, 50) )
            m.Done();
    }
    m.Close();
}

static size_t count_files() {
    size_t nr = 0;

    for ( int fd = 0; fd < 1000; fd++ )
        nr += fcntl(fd, F_GETFD) >= 0;
    return nr;
}

static void reopens(const char* path) {
    const size_t files = count_files();
    Packet pkt;

    {
        Manager m(path);
        for ( int round = 0; round < 3; round++ ) {
            if ( ! check(m.Open(), "%s", m.Error().c_str()) )
                return;
            send_all(0, 30);
            for ( int i = 0; i < 10; i++ ) { // and leaves some
                CHECK(m.Next(&pkt)) && is_right(pkt);
                m.Done();
            }
            m.Close();
            CHECK(! m.src->IsOpen());
            CHECK_EQ(count_files(), files);
        }
        CHECK(m.Open());
    }
    // Without Close()
    CHECK_EQ(count_files(), files);
    registered.clear();
}

static void down_and_removed(const char* path) {
    Manager m(path);
    Packet pkt;

    if ( ! check(m.Open(), "%s", m.Error().c_str()) )
        return;
    informed.clear();
    CHECK_EQ(system("ip link set zeekA down"), 0);
    CHECK(! m.Next(&pkt, 20));
    CHECK(m.src->IsOpen());
    CHECK_HAS(informed, ": the device is down");
    CHECK(! m.IsReadable(20));
    CHECK_EQ(system("ip link set zeekA up"), 0);
    usleep(100000);
    send_all(0, 20);
    for ( int i = 0; i < 20; i++ ) {
        CHECK(m.Next(&pkt)) && is_right(pkt);
        m.Done();
    }
    // Those that were received before are still delivered.
    send_all(0, 20);
    usleep(20000);
    CHECK_EQ(system("ip link del zeekA"), 0);
    for ( int i = 0; i < 20; i++ ) {
        CHECK(m.Next(&pkt)) && is_right(pkt);
        m.Done();
    }
    CHECK(! m.Next(&pkt));
    CHECK(! m.src->IsOpen());
    CHECK_HAS(m.Error(), ": the device was removed");
    CHECK_HAS(informed, ": the device was removed");
    CHECK(registered.empty());
    make_pair();
}

// A worker in another process: writes the numbers of the packets that it gets, until there are none
static pid_t start_worker(const char* path, int* out) {
    int to[2];

    if ( pipe(to) )
        exit(1);
    fflush(stdout);
    pid_t pid = fork();
    if ( pid ) {
        uint32_t ready = 0;

        close(to[1]);
        *out = to[0];
        CHECK(read(*out, &ready, 4) == 4 && ready == 1);
        return pid;
    }

    Manager m(path);
    Packet pkt;
    uint32_t word = m.Open();
    if ( write(to[1], &word, 4) != 4 )
        _exit(1);
    while ( m.Next(&pkt, 500) ) {
        good = true;
        word = is_right(pkt, 200) ? seq_of(pkt) : UINT32_MAX;
        m.Done();
        if ( write(to[1], &word, 4) != 4 )
            _exit(1);
    }
    m.Close();
    _exit(0);
}

// Two workers in a fanout group. first: who opens first, and feeds the group in zero-copy mode
static void fans_out(const char* path, bool other_first) {
    const uint32_t nr = 1600;
    std::map<uint32_t, int> worker_of;
    std::set<uint32_t> seen;
    uint32_t seq;
    int other = -1;
    pid_t pid = 0;
    Packet pkt;

    informed.clear();
    if ( other_first )
        pid = start_worker(path, &other);
    Manager m(path);
    if ( ! check(m.Open(), "%s", m.Error().c_str()) )
        return;
    if ( ! other_first )
        pid = start_worker(path, &other);
    if ( other_first && ! strncmp(path, "zc:", 3) )
        CHECK_HAS(informed, ": queue 1 is another worker's");

    auto got = [&](uint32_t seq, int worker) {
        CHECK(seq < nr) && CHECK(seen.insert(seq).second);
        CHECK(! worker_of.count(flow_of(seq)) || worker_of[flow_of(seq)] == worker);
        worker_of[flow_of(seq)] = worker;
    };

    for ( uint32_t sent = 0; sent < nr; sent += 80 ) {
        send_all(sent, sent + 80, 200);
        for ( ; m.Next(&pkt, 5); m.Done() )
            is_right(pkt, 200), got(seq_of(pkt), 1);
    }
    for ( ; m.Next(&pkt, 20); m.Done() )
        is_right(pkt, 200), got(seq_of(pkt), 1);
    const auto mine = seen.size();
    m.Close();
    while ( read(other, &seq, 4) == 4 )
        got(seq, 2);
    CHECK_EQ(seen.size(), nr);
    check(mine >= nr / FLOWS && mine <= nr - nr / FLOWS, "%zu of %u packets to one worker", mine, nr);
    waitpid(pid, nullptr, 0);
    close(other);
}

// When the worker that feeds the others ends, they have the packets as in copy mode.
static void feeder_ends(const char* path) {
    std::set<uint32_t> seen;
    Manager first(path), second(path);
    Packet pkt;

    if ( ! CHECK(first.Open()) || ! CHECK(second.Open()) )
        return;
    first.Close();
    send_all(0, 320);
    while ( seen.size() < 320 && CHECK(second.Next(&pkt)) && is_right(pkt) ) {
        CHECK(seen.insert(seq_of(pkt)).second);
        second.Done();
    }
    second.Close();
}

// A packet of the stack that has no checksum yet
static void checksums(const char* path) {
    // a struct virtio_net_hdr, VIRTIO_NET_HDR_F_NEEDS_CSUM, whose header is not for C++
    const uint16_t start_offset[] = {34, 6};
    std::vector<u_char> p(10);
    const auto plain = packet(0, 200, 0);
    Packet pkt;

    p[0] = 1;
    memcpy(&p[6], start_offset, sizeof(start_offset));
    p.insert(p.end(), plain.begin(), plain.end());
    for ( int mode = 0; mode < 3; mode++ ) {
        set("AF_Packet::checksum_validation_mode", static_cast<zeek_uint_t>(mode));
        Manager m(path);
        if ( ! check(m.Open(), "%s", m.Error().c_str()) )
            return;
        int fd = open_sender(true);
        CHECK_EQ(send(fd, p.data(), p.size(), 0), 210);
        close(fd);
        CHECK(m.Next(&pkt)) && CHECK(pkt.l4_checksummed);
        m.Done();
        send_all(0, 1);
        CHECK(m.Next(&pkt)) && CHECK_EQ(pkt.l4_checksummed, mode == 0);
        m.Done();
        m.Close();
    }
}

static void refuses(const char* path, const char* sentence) {
    const size_t files = count_files();
    Manager m(path);

    CHECK(! m.Open());
    CHECK_HAS(m.Error(), sentence);
    CHECK_EQ(count_files(), files);
}

static void errors(const char*) {
    refuses("nosuch", "nosuch: there is no such interface");
    refuses("zc:nosuch", "there is no such interface");
    refuses("zc:zeekA:", "is not a list of queues");
    refuses("zc:zeekA:1-", "is not a list of queues");
    refuses("zc:zeekA:2-1", "is not a list of queues");
    refuses("zc:zeekA:0,x", "is not a list of queues");
    refuses("zc:zeekA:0 1", "is not a list of queues");
    refuses("zc:zeekA:99999", "is not a list of queues");
    refuses("zc:zeekA:0-63", "more than 63 queues");
    refuses("zc:zeekA:7", "queue 7: the device, or its veth peer, has no such queue pair");
    refuses("zc:zeekA+stack", "needs AF_Packet::enable_fanout=F");
    refuses("zc:lo:0", "queue 0: the device has no zero-copy mode");
    set("AF_Packet::enable_defrag", 1);
    refuses("zc:zeekA:0", "queue 0: ");
    set("AF_Packet::enable_defrag", 0);
    set("AF_Packet::enable_hw_timestamping", 1);
    refuses("zeekA", "hardware timestamps: ");
    set("AF_Packet::enable_hw_timestamping", 0);

    Manager cpu("zeekA");
    CHECK(cpu.Open());
    set("AF_Packet::fanout_mode", 1);
    refuses("zeekA", "fanout group 23: it is of another interface or mode");
    cpu.Close();

    set("AF_Packet::enable_fanout", 0);
    Manager taken("zc:zeekA:1");
    CHECK(taken.Open());
    refuses("zc:zeekA", "queue 1: the socket is in zero-copy mode, or the queue pair is in use");
    taken.Close();

    Manager file("zeekA", false);
    CHECK(! file.Open());
    CHECK(! file.Error().empty());
}

static void to_stack(const char*) {
    Manager tap("zeekA"), m("zc:zeekA+stack");
    Packet pkt;

    set("AF_Packet::enable_fanout", 0);
    CHECK(tap.Open());
    if ( ! check(m.Open(), "%s", m.Error().c_str()) )
        return;
    send_all(0, 20);
    for ( int i = 0; i < 20; i++ ) {
        CHECK(m.Next(&pkt)) && is_right(pkt);
        m.Done();
        CHECK(tap.Next(&pkt)) && is_right(pkt);
        tap.Done();
    }
    m.Close();
    tap.Close();
}

static void loopback(const char* path) {
    Manager m(path);
    sockaddr_in to = {};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    Packet pkt;

    CHECK_EQ(system("ip link set lo up"), 0);
    if ( ! check(m.Open(), "%s", m.Error().c_str()) )
        return;
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(9);
    CHECK_EQ(sendto(fd, "twelve bytes", 12, 0, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 12);
    CHECK(m.Next(&pkt)) && CHECK_EQ(pkt.len, HEADERS + 12);
    m.Done();
    // The ICMP error, but not the packet again
    while ( m.Next(&pkt, 50) ) {
        CHECK(pkt.data[23] == IPPROTO_ICMP);
        m.Done();
    }
    m.Close();
    close(fd);
}

static void plugin(const char*) {
    auto config = zeek::plugin::Loader::Configure();

    // Zeek takes the first of its plugins that has a prefix; those that are built in have the order of their names.
    CHECK(config.name == "AF_Packet::V4");
    CHECK_EQ(components.size(), 1);
    CHECK(components.front()->prefixes == "tpacket4:af_packet");
    CHECK(components.front()->type == zeek::iosource::PktSrcComponent::LIVE);
}

// --------------------------------------------------------------------------

static void run(const char* name, void (*test)(const char*), const char* path = "", bool fanout = true) {
    set_defaults();
    set("AF_Packet::enable_fanout", fanout);
    good = true;
    test(path);
    printf("%sok %d %s%s%s%s\n", good ? "" : "not ", ++tests, name, *path ? ": " : "", path,
           *path && ! fanout ? ", without fanout" : "");
    fflush(stdout);
    failures += ! good;
    registered.clear();
}

int main(int argc, char** argv) {
    const struct {
        const char* path;
        bool fanout;
    } modes[] = {{"zeekA", true}, {"zeekA", false}, {"zc:zeekA", true}, {"zc:zeekA", false}};

    if ( argc != 2 || ! dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) || ! loaded ) {
        fprintf(stderr, "usage: zeek_test PLUGIN (%s)\n", argc == 2 ? dlerror() : "");
        return 2;
    }
    set_defaults();
    make_pair();
    run("the plugin", plugin);
    for ( const auto& mode : modes ) {
        run("receives", receives, mode.path, mode.fanout);
        run("sleeps", sleeps, mode.path, mode.fanout);
        run("VLAN tags", vlan_tags, mode.path, mode.fanout);
        run("snap length", snap_length, mode.path, mode.fanout);
        run("filters", filters, mode.path, mode.fanout);
        run("drops", drops, mode.path, mode.fanout);
        run("keeps memory", keeps_memory, mode.path, mode.fanout);
        run("opens again", reopens, mode.path, mode.fanout);
        run("down and removed", down_and_removed, mode.path, mode.fanout);
    }
    run("receives", receives, "zc:zeekA:1,0", false);
    run("checksums", checksums, "zeekA");
    for ( const char* path : {"zeekA", "zc:zeekA"} ) {
        run("two workers", [](const char* p) { fans_out(p, false); }, path);
        run("two workers, the other one first", [](const char* p) { fans_out(p, true); }, path);
        run("the first worker ends", feeder_ends, path);
    }
    run("+stack", to_stack);
    run("loopback", loopback, "lo");
    run("loopback", loopback, "lo", false);
    run("errors", errors);
    printf("1..%d\n", tests);
    return failures > 0;
}
