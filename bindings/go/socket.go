// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)

//go:build linux

// Package tpacket4 accesses rings of Linux packet sockets without copies: AF_PACKET V4.
//
// A program posts empty frames of an [Area] on the Rx ring of a [Socket] and gets them
// back with packets; it posts packets on the Tx ring and gets the frames back once they
// are sent. In copy mode, the socket is a tap on any device. In zero-copy mode, it owns a
// queue pair of a device, and packets are not copied.
//
// It needs a kernel with TPACKET_V4, no cgo and no library. A goroutine that waits for
// packets does not occupy a thread, and deadlines work as for other sockets.
package tpacket4

import (
	"errors"
	"fmt"
	"math/bits"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// An Area is memory for packets, divided into frames of equal size.
type Area struct {
	memory    []byte
	memfd     *os.File
	frameSize int
	frames    int
}

// NewArea allocates memory for a number of frames of frameSize bytes, a power of two from
// 2048 to the page size.
func NewArea(frames, frameSize int) (*Area, error) {
	page := os.Getpagesize()
	if frames <= 0 || frames > 1<<24 || frameSize < 64 || frameSize > page {
		return nil, fmt.Errorf("tpacket4: %d frames of %d bytes", frames, frameSize)
	}
	name := []byte("tpacket4\x00")
	const cloexec = 1
	fd, _, errno := syscall.Syscall(sysMemfdCreate, uintptr(unsafe.Pointer(&name[0])), cloexec, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("memfd_create", errno)
	}
	file := os.NewFile(fd, "tpacket4")
	length := (frames*frameSize + page - 1) / page * page
	if err := file.Truncate(int64(length)); err != nil {
		file.Close()
		return nil, err
	}
	memory, err := syscall.Mmap(int(fd), 0, length, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		file.Close()
		return nil, os.NewSyscallError("mmap", err)
	}
	return &Area{memory, file, frameSize, frames}, nil
}

// Close unmaps the memory, which must not be used any more. The kernel keeps it until the
// last socket that uses it is closed.
func (a *Area) Close() error {
	err := syscall.Munmap(a.memory)
	a.memory = nil
	return errors.Join(err, a.memfd.Close())
}

// Frames returns the numbers of all frames, for the program that owns them at first.
func (a *Area) Frames() []Frame {
	frames := make([]Frame, a.frames)
	for i := range frames {
		frames[i] = Frame(i)
	}
	return frames
}

// FrameSize returns the bytes of a frame.
func (a *Area) FrameSize() int {
	return a.frameSize
}

// File returns the memfd, which can be passed to another process.
func (a *Area) File() *os.File {
	return a.memfd
}

func (a *Area) slice(idx uint64, offset, length int) []byte {
	if idx >= uint64(a.frames) || offset+length > a.frameSize {
		panic("tpacket4: no such frame")
	}
	start := int(idx)*a.frameSize + offset
	return a.memory[start : start+length : start+length]
}

// Frame returns the memory of a frame that the program owns.
func (a *Area) Frame(f Frame) []byte {
	return a.slice(uint64(f), 0, a.frameSize)
}

// Data returns the data of a packet that the program owns.
func (a *Area) Data(p Packet) []byte {
	return a.slice(uint64(p.Frame), int(p.Offset), int(p.Len))
}

// SetMeta writes metadata to a packet to send, whose offset must be at least 64.
func (a *Area) SetMeta(p *Packet, m Meta) {
	if p.Offset < metaSize {
		panic("tpacket4: no room for metadata")
	}
	*(*Meta)(unsafe.Pointer(&a.slice(uint64(p.Frame), 0, metaSize)[0])) = m
	p.HasMeta = true
}

// Config has the options of a socket.
type Config struct {
	Rx, Tx   int     // descriptors, a power of two that fills whole pages; 0: no such ring
	Headroom int     // bytes to reserve before the data of each received packet
	Meta     bool    // packets have metadata
	ToStack  bool    // zero-copy mode: the stack gets copies of received packets
	Keep     bool    // zero-copy mode: the host's packets do not wait for this program
	Protocol uint16  // copy mode: receive only this one, for example 0x0800
	Share    *Socket // a socket of this process that has registered the area
}

// A Socket is a packet socket with rings.
type Socket struct {
	Rx, Tx Ring

	file    *os.File
	conn    syscall.RawConn
	mapping []byte
	rings   int // bytes
	hasRx   bool
	proto   uint16
}

func setsockopt(fd uintptr, level, option int, value unsafe.Pointer, size uintptr) error {
	_, _, errno := syscall.Syscall6(syscall.SYS_SETSOCKOPT, fd, uintptr(level), uintptr(option), uintptr(value), size, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func setInt(fd uintptr, option int, value int32) error {
	return setsockopt(fd, solPacket, option, unsafe.Pointer(&value), 4)
}

// step names what failed, and what helps.
func step(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case name == "socket" && errors.Is(err, syscall.EPERM):
		name += ": needs CAP_NET_RAW"
	case name == "PACKET_VERSION":
		name += ": this kernel has no TPACKET_V4"
	case name == "PACKET_MEMREG" && errors.Is(err, syscall.ENOBUFS):
		name += ": exceeds the limit of locked memory (ulimit -l)"
	case name == "ring" && errors.Is(err, syscall.EINVAL):
		name += ": needs a power of two of descriptors that fills whole pages"
	}
	return fmt.Errorf("tpacket4: %s: %w", name, err)
}

// Open creates a socket. It receives nothing before Bind.
func Open(area *Area, c Config) (*Socket, error) {
	if c.Rx < 0 || c.Tx < 0 || c.Rx > 1<<20 || c.Tx > 1<<20 || c.Rx+c.Tx == 0 ||
		bits.OnesCount(uint(c.Rx)) > 1 || bits.OnesCount(uint(c.Tx)) > 1 {
		return nil, step("ring", syscall.EINVAL)
	}
	flags := syscall.SOCK_RAW | syscall.SOCK_CLOEXEC | syscall.SOCK_NONBLOCK
	raw, err := syscall.Socket(syscall.AF_PACKET, flags, 0)
	if err != nil {
		return nil, step("socket", err)
	}
	s := &Socket{
		file:  os.NewFile(uintptr(raw), "packet socket"),
		rings: (c.Rx + c.Tx) * descSize,
		hasRx: c.Rx > 0,
		proto: c.Protocol,
	}
	if err := s.setUp(uintptr(raw), area, c); err != nil {
		s.file.Close()
		return nil, err
	}
	return s, nil
}

func (s *Socket) setUp(fd uintptr, area *Area, c Config) error {
	if err := setInt(fd, packetVersion, tpacketV4); err != nil {
		return step("PACKET_VERSION", err)
	}
	mrFd := int32(fd)
	if c.Share != nil {
		if err := c.Share.control(func(fd uintptr) error { mrFd = int32(fd); return nil }); err != nil {
			return err
		}
	} else {
		req := memregReq{
			addr:         uint64(uintptr(unsafe.Pointer(&area.memory[0]))),
			len:          uint64(len(area.memory)),
			frameSize:    uint32(area.frameSize),
			dataHeadroom: uint32(c.Headroom),
		}
		if c.Meta && c.Headroom < metaSize {
			req.dataHeadroom = metaSize
		}
		if err := setsockopt(fd, solPacket, packetMemreg, unsafe.Pointer(&req), unsafe.Sizeof(req)); err != nil {
			return step("PACKET_MEMREG", err)
		}
	}
	var rxFlags, txFlags uint32
	if c.Meta {
		rxFlags, txFlags = ringMeta, ringMeta
	}
	if c.ToStack {
		rxFlags |= ringToStack
	}
	if c.Keep {
		rxFlags |= ringKeep
	}
	for _, ring := range []struct {
		option, nr int
		flags      uint32
	}{{packetRxRing, c.Rx, rxFlags}, {packetTxRing, c.Tx, txFlags}} {
		if ring.nr == 0 {
			continue
		}
		req := req4{mrFd: mrFd, descNr: uint32(ring.nr), flags: ring.flags}
		if err := setsockopt(fd, solPacket, ring.option, unsafe.Pointer(&req), unsafe.Sizeof(req)); err != nil {
			return step("ring", err)
		}
	}
	var err error
	// The status page is behind the rings.
	s.mapping, err = syscall.Mmap(int(fd), 0, s.rings+os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return step("mmap", err)
	}
	slots := unsafe.Slice((*desc)(unsafe.Pointer(&s.mapping[0])), c.Rx+c.Tx)
	s.Rx.init(slots[:c.Rx], area)
	s.Tx.init(slots[c.Rx:], area)
	s.conn, err = s.file.SyscallConn()
	return err
}

// Close closes the socket. The frames that the kernel had belong to the program again, but
// the device may still read packets in flight.
func (s *Socket) Close() error {
	err := s.file.Close()
	s.Rx, s.Tx = Ring{}, Ring{}
	return errors.Join(err, syscall.Munmap(s.mapping))
}

func (s *Socket) control(f func(fd uintptr) error) error {
	var inner error
	if err := s.conn.Control(func(fd uintptr) { inner = f(fd) }); err != nil {
		return err
	}
	return inner
}

// Bind binds the socket to a device, by name. It then receives.
func (s *Socket) Bind(device string) error {
	ifi, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	protocol := s.proto
	if protocol == 0 {
		protocol = syscall.ETH_P_ALL
	}
	if !s.hasRx {
		protocol = 0
	}
	if !bigEndian {
		protocol = bits.ReverseBytes16(protocol)
	}
	address := &syscall.SockaddrLinklayer{Protocol: protocol, Ifindex: ifi.Index}
	return step("bind", s.control(func(fd uintptr) error { return syscall.Bind(int(fd), address) }))
}

// ZeroCopy enters zero-copy mode with a queue pair of the device, counted from 0. It needs
// CAP_NET_ADMIN.
func (s *Socket) ZeroCopy(queue int) error {
	return step("PACKET_ZEROCOPY", s.control(func(fd uintptr) error {
		return setInt(fd, packetZerocopy, int32(queue)+1)
	}))
}

// CopyMode leaves zero-copy mode. Frames come back with ECANCELED.
func (s *Socket) CopyMode() error {
	return step("PACKET_ZEROCOPY", s.control(func(fd uintptr) error {
		return setInt(fd, packetZerocopy, 0)
	}))
}

// Fanout joins a fanout group, of a type PACKET_FANOUT_*.
func (s *Socket) Fanout(group, kind uint16) error {
	return step("PACKET_FANOUT", s.control(func(fd uintptr) error {
		return setInt(fd, packetFanout, int32(uint32(group)|uint32(kind)<<16))
	}))
}

// Stats reads the counters, and sets them to 0.
func (s *Socket) Stats() (Stats, error) {
	var stats Stats
	size := uint32(unsafe.Sizeof(stats))
	err := s.control(func(fd uintptr) error {
		_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, solPacket, packetStatistics,
			uintptr(unsafe.Pointer(&stats)), uintptr(unsafe.Pointer(&size)), 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
	return stats, step("PACKET_STATISTICS", err)
}

// Kick lets the kernel send what was posted. It does not wait for a full device, but
// leaves packets to the next kick.
func (s *Socket) Kick() error {
	err := s.control(func(fd uintptr) error {
		_, _, errno := syscall.Syscall6(syscall.SYS_SENDTO, fd, 0, 0, syscall.MSG_DONTWAIT, 0, 0)
		if errno != 0 && errno != syscall.EAGAIN && errno != syscall.EINTR {
			return errno
		}
		return nil
	})
	return step("send", err)
}

// NeedKick says whether the kernel waits for a Kick after packets were posted.
func (s *Socket) NeedKick() bool {
	// An atomic load is not reordered with the stores of the ring.
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&s.mapping[s.rings]))) != 0
}

// SetReadDeadline sets the deadline of WaitReadable, as for net.Conn.
func (s *Socket) SetReadDeadline(t time.Time) error {
	return s.file.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline of WaitWritable.
func (s *Socket) SetWriteDeadline(t time.Time) error {
	return s.file.SetWriteDeadline(t)
}

// socketError returns the socket's error, such as ENETDOWN, which is reported once.
func socketError(fd uintptr) error {
	errno, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
	if err != nil {
		return err
	}
	if errno != 0 {
		return syscall.Errno(errno)
	}
	return nil
}

// poll kicks the queue of the device in zero-copy mode, and lets the runtime's next wait
// see new packets only.
func poll(fd uintptr, events int16) {
	pfd := struct {
		fd              int32
		events, revents int16
	}{fd: int32(fd), events: events}
	var none [2]int64
	syscall.Syscall6(sysPpoll, uintptr(unsafe.Pointer(&pfd)), 1, uintptr(unsafe.Pointer(&none)), 0, 0, 0)
}

const (
	pollIn  = 1
	pollOut = 4
)

// WaitReadable sleeps until the Rx ring has packets that were not taken, recycled or
// forwarded, or until the deadline, with os.ErrDeadlineExceeded.
func (s *Socket) WaitReadable() error {
	s.Rx.preparePoll()
	var inner error
	err := s.conn.Read(func(fd uintptr) bool {
		if s.Rx.peek(1) > 0 {
			return true
		}
		poll(fd, pollIn)
		inner = socketError(fd)
		return inner != nil || s.Rx.peek(1) > 0
	})
	runtime.KeepAlive(s)
	return errors.Join(err, inner)
}

// WaitWritable sleeps until frames have come back on the Tx ring.
func (s *Socket) WaitWritable() error {
	var inner error
	err := s.conn.Write(func(fd uintptr) bool {
		if s.Tx.peek(1) > 0 {
			return true
		}
		poll(fd, pollOut)
		inner = socketError(fd)
		return inner != nil || s.Tx.peek(1) > 0
	})
	runtime.KeepAlive(s)
	return errors.Join(err, inner)
}
