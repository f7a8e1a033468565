// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)

//go:build linux

package tpacket4

import (
	"fmt"
	"syscall"
	"unsafe"
)

// descriptors in a cache line
const line = 4

// A Frame is the number of a frame of an area. The program owns the frames that it has
// taken from a ring and not posted. To post a frame twice is a fault of the program.
type Frame uint32

// A Packet is a frame with data: Len bytes at Offset.
type Packet struct {
	Frame  Frame
	Len    uint32
	Offset uint16
	// More says that the packet goes on in the next frame.
	More bool
	// HasMeta says that the frame starts with metadata.
	HasMeta bool
	// Errno is the kernel's error, if not 0: the frame has no packet, or was not sent.
	Errno syscall.Errno
}

// A Ring is the Rx or the Tx ring of a socket. One goroutine may use it at a time; the two
// rings of a socket are independent.
type Ring struct {
	slots  []desc
	mask   uint32
	posted uint32 // next slot to post
	taken  uint32 // next slot that the kernel returns
	seen   uint32 // slots from taken on that are known to have been returned
	held   uint32 // slots from posted on, posted by the cache line
	area   *Area
}

func (r *Ring) at(position uint32) *desc {
	return &r.slots[position&r.mask]
}

// Free returns the number of slots that can be posted.
func (r *Ring) Free() int {
	return len(r.slots) - r.Pending() - int(r.held)
}

// Pending returns the number of slots that were posted and not taken.
func (r *Ring) Pending() int {
	return int(r.posted - r.taken)
}

func (r *Ring) peek(limit int) int {
	if pending := r.Pending(); limit > pending {
		limit = pending
	}
	n := r.seen
	for int(n) < limit && r.at(r.taken+n).ready() {
		n++
	}
	r.seen = n
	if int(n) < limit {
		return int(n)
	}
	return limit
}

func (r *Ring) take(n uint32) {
	r.taken += n
	r.seen -= n
}

// release posts n held slots, with the frames that they have, the last one first: when
// the kernel sees the first, it can read all.
func (r *Ring) release(n uint32) {
	for i := n; i > 0; i-- {
		d := r.at(r.posted + i - 1)
		d.give(d.idx, 0)
	}
	r.posted += n
	r.held -= n
}

// Post posts empty frames on an Rx ring and returns how many: fewer if the ring is full.
func (r *Ring) Post(frames []Frame) int {
	r.release(r.held)
	n := r.Free()
	if n > len(frames) {
		n = len(frames)
	}
	for i := n - 1; i >= 0; i-- {
		r.at(r.posted+uint32(i)).give(uint64(frames[i]), 0)
	}
	r.posted += uint32(n)
	return n
}

// Send posts packets on a Tx ring and returns how many: fewer if the ring is full. The
// kernel sends them at the next Kick.
func (r *Ring) Send(packets []Packet) int {
	n := r.Free()
	if n > len(packets) {
		n = len(packets)
	}
	for i := n - 1; i >= 0; i-- {
		p := &packets[i]
		var flags uint8
		if p.More {
			flags |= pktCont
		}
		if p.HasMeta {
			flags |= descMeta
		}
		w := makeWord(p.Len, p.Offset, flags)
		r.at(r.posted+uint32(i)).give(uint64(p.Frame), w)
	}
	r.posted += uint32(n)
	return n
}

// preparePoll ends readability of the socket at the slots that were taken.
func (r *Ring) preparePoll() {
	r.release(r.held)
	// Else the slot taken last is posted, or there is no ring.
	if len(r.slots) > 0 && r.Free() > 0 {
		d := r.at(r.taken - 1)
		storeWord(d, makeWord(0, 0, descSeen))
	}
}

// A Batch is a number of returned slots at the head of a ring: received packets, or frames
// that were sent. It is valid until the next call of its ring.
type Batch struct {
	r *Ring
	n int
}

// Peek looks at slots that were returned, at most limit. Those that are not recycled,
// forwarded or taken are seen again the next time.
func (r *Ring) Peek(limit int) Batch {
	return Batch{r, r.peek(limit)}
}

// Len returns the number of slots. A packet longer than a frame has several.
func (b Batch) Len() int {
	return b.n
}

func (b Batch) slot(i int) (uint64, word) {
	if uint(i) >= uint(b.n) {
		panic("tpacket4: index out of range")
	}
	return b.r.at(b.r.taken + uint32(i)).read()
}

// Data returns the data of slot i, without a copy. It is valid until the frame is posted.
func (b Batch) Data(i int) []byte {
	idx, w := b.slot(i)
	return b.r.area.slice(idx, int(w.offset()), int(w.len()))
}

// More says whether the packet of slot i goes on in the next slot.
func (b Batch) More(i int) bool {
	_, w := b.slot(i)
	return w.flags()&pktCont != 0
}

// Meta returns the metadata of the packet that starts in slot i, without a copy, or nil if
// it has none.
func (b Batch) Meta(i int) *Meta {
	idx, w := b.slot(i)
	if w.flags()&descMeta == 0 {
		return nil
	}
	return (*Meta)(unsafe.Pointer(&b.r.area.slice(idx, 0, metaSize)[0]))
}

// Err returns the kernel's error of slot i: it has no packet, or its packet was not sent.
func (b Batch) Err(i int) error {
	if _, w := b.slot(i); w.errno() != 0 {
		return syscall.Errno(w.errno())
	}
	return nil
}

// First returns the first n slots of a batch.
func (b Batch) First(n int) Batch {
	if n > b.n {
		n = b.n
	}
	return Batch{b.r, n}
}

// Recycle posts the frames of an Rx ring again. Their packets are lost.
func (b Batch) Recycle() {
	r, n := b.r, uint32(b.n)
	// Slots were taken before, so the frames move up.
	for n > 0 && r.Free() > 0 {
		// as many as overwrite nothing that is still to be read
		m := uint32(r.Free())
		if m > n {
			m = n
		}
		r.release(r.held)
		for i := m; i > 0; i-- {
			idx, _ := r.at(r.taken + i - 1).read()
			r.at(r.posted+i-1).give(idx, 0)
		}
		r.posted += m
		r.take(m)
		n -= m
	}
	// Else every frame goes back into its own slot, by the cache line.
	r.take(n)
	r.held += n
	end := (r.posted + r.held) &^ (line - 1)
	if whole := end - r.posted; whole <= r.held {
		r.release(whole)
	}
}

func (b Batch) moveTo(to *Ring, keep bool) int {
	if b.r.area != to.area {
		panic("tpacket4: the rings have different areas")
	}
	to.release(to.held)
	n := to.Free()
	if n > b.n {
		n = b.n
	}
	for i := n - 1; i >= 0; i-- {
		idx, w := b.r.at(b.r.taken + uint32(i)).read()
		if keep {
			w = w.kept()
		} else {
			w = 0
		}
		to.at(to.posted+uint32(i)).give(idx, w)
	}
	to.posted += uint32(n)
	b.r.release(b.r.held)
	b.r.take(uint32(n))
	return n
}

// Forward sends received packets without a copy, up to the first slot with an error and
// as long as there is room on the Tx ring, and returns how many slots. The others stay.
func (b Batch) Forward(tx *Ring) int {
	for i := 0; i < b.n; i++ {
		if _, w := b.slot(i); w.errno() != 0 {
			b.n = i
		}
	}
	return b.moveTo(tx, true)
}

// Refill posts frames that were sent on an Rx ring, as long as that has room, and returns
// how many.
func (b Batch) Refill(rx *Ring) int {
	return b.moveTo(rx, false)
}

// Take takes all slots from the ring and appends their packets to packets. The program
// owns the frames then.
func (b Batch) Take(packets []Packet) []Packet {
	for i := 0; i < b.n; i++ {
		idx, w := b.slot(i)
		packets = append(packets, Packet{
			Frame:   Frame(idx),
			Len:     w.len(),
			Offset:  w.offset(),
			More:    w.flags()&pktCont != 0,
			HasMeta: w.flags()&descMeta != 0,
			Errno:   syscall.Errno(w.errno()),
		})
	}
	b.r.release(b.r.held)
	b.r.take(uint32(b.n))
	return packets
}

func (r *Ring) init(slots []desc, area *Area) {
	if n := len(slots); n&(n-1) != 0 {
		panic(fmt.Sprintf("tpacket4: a ring of %d slots", n))
	}
	*r = Ring{slots: slots, area: area}
	if len(slots) > 0 {
		r.mask = uint32(len(slots)) - 1
	}
}
