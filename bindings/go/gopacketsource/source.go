// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)

//go:build linux

// Package gopacketsource reads the packets of a socket for gopacket.
package gopacketsource

import (
	"time"

	"github.com/gopacket/gopacket"

	"tpacket4.example/go"
)

// A Source is a gopacket.PacketDataSource and a gopacket.ZeroCopyPacketDataSource. The
// socket's rings should have metadata, for timestamps.
type Source struct {
	socket *tpacket4.Socket
	batch  tpacket4.Batch
	next   int // slot of the batch
	joined []byte
}

// New makes a source of a bound socket, whose Rx ring it then uses alone.
func New(socket *tpacket4.Socket) *Source {
	return &Source{socket: socket}
}

var (
	_ gopacket.PacketDataSource         = (*Source)(nil)
	_ gopacket.ZeroCopyPacketDataSource = (*Source)(nil)
)

// refill recycles what has been read, and waits for packets.
func (s *Source) refill() error {
	for {
		if s.next > 0 {
			s.batch.First(s.next).Recycle()
			s.next = 0
		}
		// A packet longer than a frame may not be there as a whole.
		s.batch = s.socket.Rx.Peek(256)
		for n := s.batch.Len(); n > 0; n-- {
			if !s.batch.More(n - 1) {
				s.batch = s.batch.First(n)
				return nil
			}
		}
		if err := s.socket.WaitReadable(); err != nil {
			return err
		}
	}
}

// ZeroCopyReadPacketData returns the next packet, which is valid until the next call.
func (s *Source) ZeroCopyReadPacketData() ([]byte, gopacket.CaptureInfo, error) {
	if s.next == s.batch.Len() {
		s.batch = s.batch.First(s.next)
		if err := s.refill(); err != nil {
			s.batch, s.next = tpacket4.Batch{}, 0
			return nil, gopacket.CaptureInfo{}, err
		}
	}
	first := s.next
	if err := s.batch.Err(first); err != nil {
		s.next++
		return nil, gopacket.CaptureInfo{}, err
	}
	data := s.batch.Data(first)
	for s.next++; s.batch.More(s.next - 1); s.next++ {
		if s.next == first+1 {
			s.joined = append(s.joined[:0], data...)
		}
		s.joined = append(s.joined, s.batch.Data(s.next)...)
		data = s.joined
	}
	ci := gopacket.CaptureInfo{CaptureLength: len(data), Length: len(data)}
	if meta := s.batch.Meta(first); meta != nil {
		ci.Timestamp = time.Unix(0, int64(meta.Tstamp))
		ci.InterfaceIndex = int(meta.Ifindex)
		if wire := int(meta.WireLen); wire > ci.Length {
			ci.Length = wire
		}
	} else {
		ci.Timestamp = time.Now()
	}
	return data, ci, nil
}

// ReadPacketData returns a copy of the next packet.
func (s *Source) ReadPacketData() ([]byte, gopacket.CaptureInfo, error) {
	data, ci, err := s.ZeroCopyReadPacketData()
	if err != nil {
		return nil, ci, err
	}
	return append([]byte(nil), data...), ci, nil
}
