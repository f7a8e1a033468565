// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)

//go:build linux

package tpacket4

import (
	"reflect"
	"syscall"
	"testing"
)

const slots = 8

// onHeap makes two rings in ordinary memory; the test is the kernel.
func onHeap(t testing.TB) (rx, tx *Ring, area *Area) {
	area = &Area{memory: make([]byte, 2*slots*2048), frameSize: 2048, frames: 2 * slots}
	rx, tx = new(Ring), new(Ring)
	rx.init(make([]desc, slots), area)
	tx.init(make([]desc, slots), area)
	if n := rx.Post(area.Frames()); n != slots {
		t.Fatalf("posted %d frames", n)
	}
	return rx, tx, area
}

// kernel returns a slot that it has, with the same frame.
func (d *desc) kernel(length uint32, offset uint16, errno, flags uint8) {
	if d.ready() {
		panic("the kernel does not have the slot")
	}
	w := makeWord(length, offset, flags)
	for shift := 0; errno != 0 && shift < 64; shift += 8 {
		if (w | word(errno)<<shift).errno() == errno {
			w |= word(errno) << shift
			break
		}
	}
	storeWord(d, w)
}

func receive(r *Ring, from, n int) {
	for i := from; i < from+n; i++ {
		r.slots[i%slots].kernel(uint32(60+i), 64, 0, 0)
	}
}

func TestOrder(t *testing.T) {
	rx, _, _ := onHeap(t)
	for from := 0; from < 100; from += 5 {
		receive(rx, from, 5)
		batch := rx.Peek(64)
		if batch.Len() != 5 {
			t.Fatalf("%d slots", batch.Len())
		}
		for i := 0; i < 5; i++ {
			if n := len(batch.Data(i)); n != 60+from+i {
				t.Errorf("packet %d has %d bytes", from+i, n)
			}
		}
		batch.Recycle()
		rx.preparePoll()
		for i := range rx.slots {
			if rx.slots[i].ready() {
				t.Errorf("slot %d was not posted", i)
			}
		}
	}
}

func TestRecycleByTheLine(t *testing.T) {
	rx, _, _ := onHeap(t)
	receive(rx, 0, 3)
	rx.Peek(3).Recycle()
	if !rx.slots[0].ready() {
		t.Error("posted a part of a line")
	}
	receive(rx, 3, 1)
	rx.Peek(1).Recycle()
	if rx.slots[0].ready() {
		t.Error("did not post a line")
	}
}

func TestForwardAndRefill(t *testing.T) {
	rx, tx, _ := onHeap(t)
	receive(rx, 0, 5)
	rx.slots[5].kernel(0, 0, uint8(syscall.ECANCELED), 0)
	if n := rx.Peek(64).Forward(tx); n != 5 {
		t.Fatalf("forwarded %d", n)
	}
	if err := rx.Peek(64).Err(0); err != syscall.ECANCELED {
		t.Errorf("the error is %v", err)
	}
	if _, w := tx.slots[3].read(); w.len() != 63 || w.offset() != 64 {
		t.Errorf("%d bytes at %d", w.len(), w.offset())
	}
	for i := 0; i < 5; i++ {
		tx.slots[i].kernel(0, 0, 0, 0)
	}
	if n := tx.Peek(64).Refill(rx); n != 5 || rx.Free() != 0 {
		t.Errorf("refilled %d, %d slots are free", n, rx.Free())
	}
}

func TestTakeAndSend(t *testing.T) {
	rx, tx, area := onHeap(t)
	receive(rx, 0, 4)
	packets := rx.Peek(64).Take(nil)
	if len(packets) != 4 || rx.Free() != 4 {
		t.Fatalf("%d packets, %d free", len(packets), rx.Free())
	}
	packets[0].More = true
	area.SetMeta(&packets[0], Meta{Tstamp: 7})
	if n := tx.Send(packets); n != 4 || tx.Pending() != 4 {
		t.Errorf("sent %d, %d are pending", n, tx.Pending())
	}
	if _, w := tx.slots[0].read(); w.flags() != pktCont|descMeta|descKernel {
		t.Errorf("flags are %#x", w.flags())
	}
	tx.slots[0].kernel(0, 0, uint8(syscall.ENOBUFS), 0)
	sent := tx.Peek(64).Take(nil)
	if len(sent) != 1 || sent[0].Errno != syscall.ENOBUFS {
		t.Errorf("got %v", sent)
	}
	if n := tx.Send(make([]Packet, 9)); n != 5 {
		t.Errorf("sent %d with 5 free slots", n)
	}
}

func TestLayout(t *testing.T) {
	for _, c := range []struct {
		value any
		size  uintptr
	}{{Meta{}, metaSize}, {memregReq{}, 32}, {req4{}, 16}, {desc{}, descSize}, {Stats{}, 56}} {
		if typ := reflect.TypeOf(c.value); typ.Size() != c.size {
			t.Errorf("%v has %d bytes", typ, typ.Size())
		}
	}
}

// A capture allocates nothing a packet.
func TestAllocations(t *testing.T) {
	rx, _, _ := onHeap(t)
	from, bytes := 0, 0
	allocations := testing.AllocsPerRun(100, func() {
		receive(rx, from, 4)
		from += 4
		batch := rx.Peek(64)
		for i := 0; i < batch.Len(); i++ {
			bytes += len(batch.Data(i))
		}
		batch.Recycle()
	})
	if allocations != 0 || bytes == 0 {
		t.Errorf("%v allocations for 4 packets", allocations)
	}
}

func BenchmarkCapture(b *testing.B) {
	rx, _, _ := onHeap(b)
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		receive(rx, i%2*4, 4)
		rx.Peek(64).Recycle()
	}
}
