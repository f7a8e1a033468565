// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)

//go:build linux

package tpacket4

import (
	"sync/atomic"
	"unsafe"
)

// The kernel's interface, as in <linux/if_packet.h>
const (
	solPacket        = 263
	packetRxRing     = 5
	packetStatistics = 6
	packetVersion    = 10
	packetTxRing     = 13
	packetFanout     = 18
	packetMemreg     = 25
	packetZerocopy   = 26
	tpacketV4        = 3

	ringMeta    = 0x1
	ringToStack = 0x2
	ringKeep    = 0x4

	descKernel = 0x80
	descSeen   = 0x40
	pktCont    = 0x01
	descMeta   = 0x02

	metaSize = 64
	descSize = 16
)

type memregReq struct {
	addr, len                              uint64
	frameSize, dataHeadroom, unit, reqFlag uint32
}

type req4 struct {
	mrFd     int32
	descNr   uint32
	flags    uint32
	reserved uint32
}

// Meta is the metadata of a packet, struct tpacket4_meta. The kernel's header describes
// the members and their flags.
type Meta struct {
	Tstamp     uint64 // ns
	Flags      uint32
	WireLen    uint32
	Ifindex    uint32
	Protocol   [2]byte // big endian
	Hatype     uint16
	VlanTCI    uint16
	VlanTPID   uint16
	PktType    uint8
	Halen      uint8
	XDPMetaLen uint16
	Addr       [8]byte
	Hash       uint32
	GSOSize    uint16
	CsumStart  uint16
	CsumOffset uint16
	GSOType    uint8
	_          uint8
	InnerStart uint16
	_          uint16
	_          [2]uint32
}

// Stats are counters of a socket, struct tpacket_stats_v4. Reading them sets them to 0.
type Stats struct {
	Packets, Drops uint32
	RxRingFull     uint64 // drops: the program had all slots
	RxNoDesc       uint64 // drops: too few frames were posted
	RxInvalidDescs uint64
	TxRingFull     uint64 // kicks that a full device stopped
	TxNoDesc       uint64 // kicks that found nothing posted
	TxInvalidDescs uint64
}

// desc is a descriptor. One store of the word passes the slot on.
type desc struct {
	idx  uint64
	word uint64
}

// word is the second half of a descriptor, in memory: u32 length, u16 offset, u8 error,
// u8 flags.
type word uint64

var bigEndian = func() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 0
}()

func makeWord(length uint32, offset uint16, flags uint8) word {
	if bigEndian {
		return word(length)<<32 | word(offset)<<16 | word(flags)
	}
	return word(length) | word(offset)<<32 | word(flags)<<56
}

func (w word) len() uint32 {
	if bigEndian {
		return uint32(w >> 32)
	}
	return uint32(w)
}

func (w word) offset() uint16 {
	if bigEndian {
		return uint16(w >> 16)
	}
	return uint16(w >> 32)
}

func (w word) errno() uint8 {
	if bigEndian {
		return uint8(w >> 8)
	}
	return uint8(w >> 48)
}

func (w word) flags() uint8 {
	if bigEndian {
		return uint8(w)
	}
	return uint8(w >> 56)
}

// kept is the word without error, owner and mark.
func (w word) kept() word {
	return makeWord(w.len(), w.offset(), w.flags()&(pktCont|descMeta))
}

func (d *desc) ready() bool {
	return word(atomic.LoadUint64(&d.word)).flags()&descKernel == 0
}

// read reads a slot that the program owns.
func (d *desc) read() (uint64, word) {
	return d.idx, word(atomic.LoadUint64(&d.word))
}

// give fills a slot that the program owns, and passes it to the kernel.
func (d *desc) give(idx uint64, w word) {
	d.idx = idx
	atomic.StoreUint64(&d.word, uint64(w|makeWord(0, 0, descKernel)))
}

// storeWord changes a slot that the program owns.
func storeWord(d *desc, w word) {
	atomic.StoreUint64(&d.word, uint64(w))
}
