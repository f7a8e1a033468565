// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)

// Forward receives on a device, swaps MAC addresses and sends back: l2fwd.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"tpacket4.example/go"
)

const (
	frames    = 2048
	batchSize = 64
)

func forward(device string, count, queue int) error {
	area, err := tpacket4.NewArea(frames, 2048)
	if err != nil {
		return err
	}
	s, err := tpacket4.Open(area, tpacket4.Config{Rx: frames, Tx: frames})
	if err != nil {
		return err
	}
	defer s.Close()
	s.Rx.Post(area.Frames())
	if queue >= 0 {
		if err := s.ZeroCopy(queue); err != nil {
			return err
		}
	}
	if err := s.Bind(device); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "ready")
	forwarded := 0
	for forwarded < count || s.Tx.Pending() > 0 {
		most := batchSize
		if forwarded >= count {
			most = 0 // what was sent comes back, and no more is taken
		}
		batch := s.Rx.Peek(most)
		for i := 0; i < batch.Len(); i++ {
			if data := batch.Data(i); len(data) >= 12 {
				to := [6]byte(data)
				copy(data, data[6:12])
				copy(data[6:], to[:])
			}
		}
		sent := batch.Forward(&s.Tx)
		forwarded += sent
		// While more packets wait, they are sent with those.
		last := batch.Len() < batchSize || sent < batch.Len()
		if last && s.Tx.Pending() > 0 && (queue < 0 || s.NeedKick()) {
			if err := s.Kick(); err != nil {
				return err
			}
		}
		if s.Tx.Peek(batchSize).Refill(&s.Rx) == 0 && batch.Len() == 0 {
			if err := s.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
				return err
			}
			if err := s.WaitReadable(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
		}
	}
	fmt.Printf("%d packets\n", forwarded)
	return nil
}

func main() {
	numbers := []int{1 << 62, -1}
	ok := len(os.Args) >= 2 && len(os.Args) <= 4
	for i := 2; ok && i < len(os.Args); i++ {
		n, err := strconv.Atoi(os.Args[i])
		ok = err == nil && n >= 0
		numbers[i-2] = n
	}
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: forward DEVICE [COUNT [QUEUE]]")
		os.Exit(2)
	}
	if err := forward(os.Args[1], numbers[0], numbers[1]); err != nil {
		fmt.Fprintln(os.Stderr, "forward:", err)
		os.Exit(1)
	}
}
