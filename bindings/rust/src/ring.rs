// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
//! The two rings. Slots are posted and returned in ring order.

use std::io;
use std::iter::FusedIterator;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::abi::{Desc, Meta, Word, META, PKT_CONT};
use crate::area::{Area, Frame, Packet};

/// Descriptors in a cache line
const LINE: u32 = 4;

/// What keeps the descriptors mapped
pub(crate) type Mapping = Arc<dyn Send + Sync>;

/// What both rings have
struct Ring {
    slots: NonNull<Desc>,
    /// Number of slots minus one; a ring that the socket lacks has none
    mask: u32,
    size: u32,
    /// Next slot to post
    posted: u32,
    /// Next slot that the kernel returns
    taken: u32,
    /// Slots from `taken` on that are known to have been returned
    seen: u32,
    /// Slots from `posted` on whose frames go back into them: they are posted by the
    /// cache line, as the kernel may be filling the rest of the line.
    held: u32,
    area: Area,
    _mapping: Mapping,
}

// SAFETY: The descriptors are atomics in a mapping that Ring keeps.
unsafe impl Send for Ring {}

impl Ring {
    /// # Safety
    ///
    /// `slots` are `size` descriptors, of this ring alone, as long as `mapping` lives.
    unsafe fn new(slots: NonNull<Desc>, size: u32, area: Area, mapping: Mapping) -> Ring {
        assert!(size == 0 || size.is_power_of_two());
        let mask = size.saturating_sub(1);
        let (posted, taken, seen, held) = (0, 0, 0, 0);
        Ring {
            slots,
            mask,
            size,
            posted,
            taken,
            seen,
            held,
            area,
            _mapping: mapping,
        }
    }

    #[inline]
    fn at(&self, position: u32) -> &Desc {
        // SAFETY: within the ring; nothing is accessed if there is none
        unsafe { self.slots.add_index(position & self.mask) }
    }

    #[inline]
    fn pending(&self) -> u32 {
        self.posted.wrapping_sub(self.taken).wrapping_add(self.held)
    }

    /// Slots that can be posted
    #[inline]
    fn free(&self) -> u32 {
        self.size - self.pending()
    }

    #[inline]
    fn peek(&mut self, max: u32) -> u32 {
        let max = max.min(self.posted.wrapping_sub(self.taken));
        let mut n = self.seen;
        while n < max && self.at(self.taken.wrapping_add(n)).is_ready() {
            n += 1;
        }
        self.seen = n;
        n.min(max)
    }

    #[inline]
    fn take(&mut self, n: u32) {
        debug_assert!(n <= self.seen);
        self.taken = self.taken.wrapping_add(n);
        self.seen -= n;
    }

    /// Post held slots, with the frames that they have.
    #[inline]
    fn release(&mut self, n: u32) {
        for i in (0..n).rev() {
            self.at(self.posted.wrapping_add(i)).give_same();
        }
        self.posted = self.posted.wrapping_add(n);
        self.held -= n;
    }

    /// Post n slots, the last one first: when the kernel sees the first, it can read all.
    #[inline]
    fn post(&mut self, n: u32, mut slot: impl FnMut(u32) -> (u64, Word)) {
        debug_assert!(self.held == 0 && n <= self.free());
        for i in (0..n).rev() {
            let (idx, word) = slot(i);
            self.at(self.posted.wrapping_add(i)).give(idx, word);
        }
        self.posted = self.posted.wrapping_add(n);
    }

    /// Post the frames of n returned slots on another ring, whose area is the same.
    #[inline]
    fn move_to(&mut self, to: &mut Ring, n: u32, keep: bool) -> u32 {
        assert!(
            self.area.id() == to.area.id(),
            "the rings have different areas"
        );
        to.release(to.held);
        let n = n.min(to.free());
        let from = &*self;
        to.post(n, |i| {
            let (idx, word) = from.at(from.taken.wrapping_add(i)).read();
            (idx, if keep { word.kept() } else { Word::EMPTY })
        });
        self.release(self.held);
        self.take(n);
        n
    }

    /// A returned slot, which the caller takes.
    #[inline]
    fn packet(&self, position: u32) -> Packet {
        let (idx, word) = self.at(position).read();
        let frame = Frame {
            idx: idx as u32,
            area: self.area.id(),
        };
        Packet {
            frame,
            len: word.len(),
            offset: word.offset(),
            flags: word.flags() & (PKT_CONT | META),
            error: word.error(),
        }
    }
}

trait AddIndex {
    unsafe fn add_index<'a>(self, index: u32) -> &'a Desc;
}

impl AddIndex for NonNull<Desc> {
    #[inline]
    unsafe fn add_index<'a>(self, index: u32) -> &'a Desc {
        // SAFETY: as for the caller
        unsafe { &*self.as_ptr().add(index as usize) }
    }
}

/// The ring of empty frames that come back with packets
pub struct RxRing {
    ring: Ring,
}

/// The ring of packets that come back as frames when they are sent
pub struct TxRing {
    ring: Ring,
}

impl RxRing {
    pub(crate) unsafe fn new(
        slots: NonNull<Desc>,
        size: u32,
        area: Area,
        mapping: Mapping,
    ) -> RxRing {
        // SAFETY: as for the caller
        RxRing {
            ring: unsafe { Ring::new(slots, size, area, mapping) },
        }
    }

    /// Number of slots that can be posted
    pub fn free(&self) -> usize {
        self.ring.free() as usize
    }

    /// Post frames, from the end of `frames`, until there are none or the ring is full.
    /// Returns how many. The kernel writes packets to them.
    #[inline]
    pub fn post(&mut self, frames: &mut Vec<Frame>) -> usize {
        let ring = &mut self.ring;
        ring.release(ring.held);
        let n = ring.free().min(frames.len() as u32);
        let start = frames.len() - n as usize;
        let area = ring.area.id();
        ring.post(n, |i| {
            let frame = &frames[start + i as usize];
            assert!(frame.area == area, "a frame of another area");
            (frame.idx as u64, Word::EMPTY)
        });
        frames.truncate(start);
        n as usize
    }

    /// Look at packets that have been received, at most `max`. Those that are neither
    /// recycled, forwarded nor taken are seen again the next time.
    #[inline]
    pub fn peek(&mut self, max: usize) -> Received<'_> {
        let n = self.ring.peek(max.min(u32::MAX as usize) as u32);
        Received {
            ring: &mut self.ring,
            n,
        }
    }

    /// Let the socket be readable only for packets that [`peek`](Self::peek) has not
    /// returned or that are still there. Functions that wait call this.
    pub fn prepare_poll(&mut self) {
        let ring = &mut self.ring;
        ring.release(ring.held);
        // Else the slot taken last is posted, or there is no ring.
        if ring.free() > 0 {
            ring.at(ring.taken.wrapping_sub(1)).mark_seen();
        }
    }
}

/// Received packets, at the head of the Rx ring
#[must_use = "packets stay on the ring until they are recycled, forwarded or taken"]
pub struct Received<'a> {
    ring: &'a mut Ring,
    n: u32,
}

/// A slot of [`Received`]
#[derive(Clone, Copy)]
pub struct Slot<'a> {
    ring: &'a Ring,
    idx: u64,
    word: Word,
}

impl<'a> Received<'a> {
    /// Number of slots; a packet longer than a frame has several.
    #[inline]
    pub fn len(&self) -> usize {
        self.n as usize
    }

    /// Has nothing been received?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    #[inline]
    fn slot(&self, i: usize) -> (u64, Word) {
        assert!(i < self.n as usize);
        self.ring.at(self.ring.taken.wrapping_add(i as u32)).read()
    }

    /// A slot
    #[inline]
    pub fn get(&self, i: usize) -> Slot<'_> {
        let (idx, word) = self.slot(i);
        Slot {
            ring: self.ring,
            idx,
            word,
        }
    }

    /// All slots
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Slot<'_>> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// The data of a slot, to change it
    #[inline]
    pub fn data_mut(&mut self, i: usize) -> &mut [u8] {
        let (idx, word) = self.slot(i);
        // SAFETY: The slot was returned, and `self` is borrowed.
        unsafe {
            self.ring
                .area
                .slice(idx, word.offset().into(), word.len() as usize)
        }
    }

    /// Only look at the first `n` slots.
    pub fn first(self, n: usize) -> Received<'a> {
        Received {
            n: self.n.min(n as u32),
            ring: self.ring,
        }
    }

    /// Post the frames again. The packets in them are lost.
    #[inline]
    pub fn recycle(self) {
        let (ring, mut n) = (self.ring, self.n);
        // Slots were taken before, so the frames move up.
        while n > 0 && ring.free() > 0 {
            // as many as overwrite nothing that is still to be read
            let m = n.min(ring.free());
            ring.release(ring.held);
            for i in (0..m).rev() {
                let (idx, _) = ring.at(ring.taken.wrapping_add(i)).read();
                ring.at(ring.posted.wrapping_add(i)).give(idx, Word::EMPTY);
            }
            ring.posted = ring.posted.wrapping_add(m);
            ring.take(m);
            n -= m;
        }
        // Else every frame goes back into its own slot.
        ring.take(n);
        ring.held += n;
        let end = ring.posted.wrapping_add(ring.held) & !(LINE - 1);
        let whole = end.wrapping_sub(ring.posted);
        if whole <= ring.held {
            ring.release(whole);
        }
    }

    /// Send the packets, up to the first slot with an error and as long as there is room
    /// on the Tx ring. Returns how many slots; the others stay.
    #[inline]
    pub fn forward(self, tx: &mut TxRing) -> usize {
        let first = self.ring.taken;
        let good = (0..self.n)
            .take_while(|i| self.ring.at(first.wrapping_add(*i)).word().error() == 0)
            .count();
        self.ring.move_to(&mut tx.ring, good as u32, true) as usize
    }

    /// Take the packets from the ring. Those that the iterator has not returned stay.
    #[inline]
    pub fn take(self) -> Taken<'a> {
        Taken {
            ring: self.ring,
            n: self.n,
            i: 0,
        }
    }
}

impl<'a> Slot<'a> {
    /// The data of the packet in this frame
    #[inline]
    pub fn data(&self) -> &'a [u8] {
        let (offset, len) = (self.word.offset().into(), self.word.len() as usize);
        // SAFETY: The slot was returned, and what it is of is borrowed.
        unsafe { self.ring.area.slice(self.idx, offset, len) }
    }

    /// Bytes of data
    #[inline]
    pub fn len(&self) -> usize {
        self.word.len() as usize
    }

    /// Is there no data?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Does the packet go on in the next slot?
    #[inline]
    pub fn more(&self) -> bool {
        self.word.flags() & PKT_CONT != 0
    }

    /// The packet's metadata, if the ring has them; in the packet's first slot
    #[inline]
    pub fn meta(&self) -> Option<Meta> {
        // SAFETY: as for data()
        (self.word.flags() & META != 0).then(|| unsafe { self.ring.area.meta_of(self.idx) })
    }

    /// The kernel's error: the slot has no packet.
    pub fn error(&self) -> Option<io::Error> {
        let error = self.word.error();
        (error != 0).then(|| io::Error::from_raw_os_error(error.into()))
    }
}

/// Takes packets from the Rx ring, see [`Received::take`]
pub struct Taken<'a> {
    ring: &'a mut Ring,
    n: u32,
    i: u32,
}

impl Iterator for Taken<'_> {
    type Item = Packet;

    #[inline]
    fn next(&mut self) -> Option<Packet> {
        if self.i == self.n {
            return None;
        }
        self.i += 1;
        Some(self.ring.packet(self.ring.taken.wrapping_add(self.i - 1)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.n - self.i) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Taken<'_> {}
impl FusedIterator for Taken<'_> {}

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        self.ring.release(self.ring.held);
        self.ring.take(self.i);
    }
}

impl TxRing {
    pub(crate) unsafe fn new(
        slots: NonNull<Desc>,
        size: u32,
        area: Area,
        mapping: Mapping,
    ) -> TxRing {
        // SAFETY: as for the caller
        TxRing {
            ring: unsafe { Ring::new(slots, size, area, mapping) },
        }
    }

    /// Number of slots that can be posted
    pub fn free(&self) -> usize {
        self.ring.free() as usize
    }

    /// Number of packets that were posted and not completed
    pub fn pending(&self) -> usize {
        self.ring.pending() as usize
    }

    /// Post packets, from the start of `packets`, until there are none or the ring is
    /// full. Returns how many. They are sent at the next [`kick`](crate::Socket::kick).
    #[inline]
    pub fn send(&mut self, packets: &mut Vec<Packet>) -> usize {
        let ring = &mut self.ring;
        let n = ring.free().min(packets.len() as u32);
        let area = ring.area.id();
        ring.post(n, |i| {
            let packet = &packets[i as usize];
            assert!(packet.frame.area == area, "a frame of another area");
            (packet.frame.idx as u64, packet.word())
        });
        packets.drain(..n as usize).for_each(drop);
        n as usize
    }

    /// Look at frames whose packets have been sent or refused, at most `max`.
    #[inline]
    pub fn peek(&mut self, max: usize) -> Completed<'_> {
        let n = self.ring.peek(max.min(u32::MAX as usize) as u32);
        Completed {
            ring: &mut self.ring,
            n,
        }
    }
}

/// Frames at the head of the Tx ring whose packets have been sent or refused
#[must_use = "frames stay on the ring until they are refilled or taken"]
pub struct Completed<'a> {
    ring: &'a mut Ring,
    n: u32,
}

impl<'a> Completed<'a> {
    /// Number of frames
    #[inline]
    pub fn len(&self) -> usize {
        self.n as usize
    }

    /// Has nothing been sent?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Post the frames on the Rx ring, as long as it has room. Returns how many.
    #[inline]
    pub fn refill(self, rx: &mut RxRing) -> usize {
        self.ring.move_to(&mut rx.ring, self.n, false) as usize
    }

    /// Take the frames. [`Packet::error`] says which were not sent.
    #[inline]
    pub fn take(self) -> Taken<'a> {
        Taken {
            ring: self.ring,
            n: self.n,
            i: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::area::tests::on_heap;

    const SIZE: u32 = 8;

    /// Rings of 8 slots, and the kernel's view of them
    fn rings() -> (RxRing, TxRing, &'static [Desc], &'static [Desc], Vec<Frame>) {
        let (area, frames) = on_heap(2 * SIZE);
        let mut all = Vec::new();
        for _ in 0..2 {
            let slots: Vec<_> = (0..SIZE).map(|_| Desc::new()).collect();
            all.push(&*slots.leak());
        }
        let start = |slots: &'static [Desc]| NonNull::from(&slots[0]);
        let none = || -> Mapping { Arc::new(()) };
        // SAFETY: leaked memory
        unsafe {
            let rx = RxRing::new(start(all[0]), SIZE, area.clone(), none());
            let tx = TxRing::new(start(all[1]), SIZE, area, none());
            (rx, tx, all[0], all[1], frames)
        }
    }

    /// The kernel returns n slots from `from` on, with packets of their number's length.
    fn receive(slots: &[Desc], from: u32, n: u32) {
        for i in from..from + n {
            let slot = &slots[(i % SIZE) as usize];
            let (idx, _) = slot.read();
            slot.kernel_returns(idx, 60 + i, 64, 0, 0);
        }
    }

    #[test]
    fn packets_come_in_order_over_the_wrap() {
        let (mut rx, _, slots, _, mut frames) = rings();
        assert_eq!(rx.post(&mut frames), SIZE as usize);
        assert_eq!((rx.free(), frames.len()), (0, SIZE as usize));
        for from in (0..100).step_by(5) {
            receive(slots, from, 5);
            let received = rx.peek(64);
            let lens: Vec<_> = received.iter().map(|s| s.len() as u32 - 60).collect();
            assert_eq!(lens, (from..from + 5).collect::<Vec<_>>());
            received.recycle();
            rx.prepare_poll();
            assert!(slots.iter().all(|s| !s.is_ready()));
        }
    }

    #[test]
    fn recycled_slots_are_posted_by_the_line() {
        let (mut rx, _, slots, _, mut frames) = rings();
        rx.post(&mut frames);
        receive(slots, 0, 3);
        rx.peek(3).recycle();
        assert!(slots[..3].iter().all(|s| s.is_ready()));
        receive(slots, 3, 1);
        rx.peek(1).recycle();
        assert!(slots.iter().all(|s| !s.is_ready()));
    }

    #[test]
    fn taken_frames_are_the_programs_until_posted() {
        let (mut rx, _, slots, _, mut frames) = rings();
        rx.post(&mut frames);
        receive(slots, 0, 6);
        let mut kept: Vec<Packet> = rx.peek(4).take().collect();
        assert_eq!((kept.len(), rx.free()), (4, 4));
        // Not all that were seen are taken.
        kept.extend(rx.peek(64).take().take(1));
        assert_eq!(rx.peek(64).len(), 1);
        rx.peek(64).recycle();
        let mut back: Vec<_> = kept.into_iter().map(Packet::into_frame).collect();
        assert_eq!(rx.post(&mut back), 5);
        let mut all: Vec<_> = slots.iter().map(|s| s.read().0).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), SIZE as usize);
    }

    #[test]
    fn forwarded_packets_keep_their_place() {
        let (mut rx, mut tx, slots, sent, mut frames) = rings();
        rx.post(&mut frames);
        receive(slots, 0, 7);
        let mut received = rx.peek(64);
        received.data_mut(0).fill(9);
        assert_eq!(received.forward(&mut tx), 7);
        assert_eq!((tx.pending(), rx.free()), (7, 7));
        let (_, word) = sent[3].read();
        assert_eq!((word.len(), word.offset()), (63, 64));
        for slot in &sent[..7] {
            slot.kernel_returns(slot.read().0, 0, 0, 0, 0);
        }
        assert_eq!(tx.peek(64).refill(&mut rx), 7);
        assert_eq!((tx.free(), rx.free()), (8, 0));
    }

    #[test]
    fn forwarding_stops_at_an_error() {
        let (mut rx, mut tx, slots, _, mut frames) = rings();
        rx.post(&mut frames);
        receive(slots, 0, 2);
        slots[2].kernel_returns(slots[2].read().0, 0, 0, libc::ECANCELED as u8, 0);
        assert_eq!(rx.peek(64).forward(&mut tx), 2);
        let packet = rx.peek(64).take().next().unwrap();
        assert_eq!(
            packet.error().unwrap().raw_os_error(),
            Some(libc::ECANCELED)
        );
    }

    #[test]
    fn a_full_ring_leaves_packets() {
        let (_, mut tx, _, sent, frames) = rings();
        let mut packets: Vec<_> = frames.into_iter().map(|f| Packet::new(f, 0, 60)).collect();
        packets[0].set_more(true);
        assert_eq!(tx.send(&mut packets), SIZE as usize);
        assert_eq!((tx.send(&mut packets), packets.len()), (0, SIZE as usize));
        assert_eq!(sent[0].read().1.flags(), PKT_CONT | crate::abi::DESC_KERNEL);
        sent[0].kernel_returns(sent[0].read().0, 0, 0, libc::ENOBUFS as u8, 0);
        assert!(tx.peek(8).take().next().unwrap().error().is_some());
        assert_eq!(
            (tx.send(&mut packets), packets.len()),
            (1, SIZE as usize - 1)
        );
    }
}
