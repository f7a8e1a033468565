// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)

// Capture writes packets to a pcap file.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"tpacket4.example/go"
	"tpacket4.example/go/gopacketsource"
)

const frames = 4096

func capture(device, name string, count int) error {
	area, err := tpacket4.NewArea(frames, 2048)
	if err != nil {
		return err
	}
	s, err := tpacket4.Open(area, tpacket4.Config{Rx: frames, Meta: true})
	if err != nil {
		return err
	}
	defer s.Close()
	s.Rx.Post(area.Frames())
	if err := s.Bind(device); err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	// It writes the header and the data of each packet by themselves.
	out := bufio.NewWriterSize(file, 1<<16)
	w := pcapgo.NewWriterNanos(out)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		return err
	}
	// The goroutine sleeps without a thread, and wakes at the deadline.
	if err := s.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "ready")
	source := gopacketsource.New(s)
	for i := 0; i < count; i++ {
		data, ci, err := source.ZeroCopyReadPacketData()
		if err != nil {
			return err
		}
		if err := w.WritePacket(ci, data); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	stats, err := s.Stats()
	if err != nil {
		return err
	}
	fmt.Printf("%d packets, %d dropped\n", count, stats.Drops)
	return file.Close()
}

func main() {
	count := 0
	if len(os.Args) == 4 {
		count, _ = strconv.Atoi(os.Args[3])
	}
	if count <= 0 {
		fmt.Fprintln(os.Stderr, "usage: capture DEVICE FILE COUNT")
		os.Exit(2)
	}
	if err := capture(os.Args[1], os.Args[2], count); err != nil {
		fmt.Fprintln(os.Stderr, "capture:", err)
		os.Exit(1)
	}
}
