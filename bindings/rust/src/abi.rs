// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
//! The kernel's interface, as in <linux/if_packet.h>.

use std::sync::atomic::{AtomicU64, Ordering};

pub const PACKET_VERSION: i32 = 10;
pub const PACKET_RX_RING: i32 = 5;
pub const PACKET_TX_RING: i32 = 13;
pub const PACKET_STATISTICS: i32 = 6;
pub const PACKET_FANOUT: i32 = 18;
pub const PACKET_MEMREG: i32 = 25;
pub const PACKET_ZEROCOPY: i32 = 26;
pub const TPACKET_V4: i32 = 3;

pub const RING_META: u32 = 1;
pub const RING_TO_STACK: u32 = 2;
pub const RING_KEEP: u32 = 4;

pub const DESC_KERNEL: u8 = 0x80;
pub const DESC_SEEN: u8 = 0x40;
pub const PKT_CONT: u8 = 0x01;
pub const META: u8 = 0x02;

/// Size of [`Meta`], at the start of a packet's first frame
pub const META_SIZE: usize = 64;

#[repr(C)]
#[derive(Default)]
pub struct MemregReq {
    pub addr: u64,
    pub len: u64,
    pub frame_size: u32,
    pub data_headroom: u32,
    pub frame_unit: u32,
    pub flags: u32,
}

#[repr(C)]
pub struct Req4 {
    pub mr_fd: i32,
    pub desc_nr: u32,
    pub flags: u32,
    pub reserved: u32,
}

/// Metadata of a packet. [`Area::meta`](crate::Area::meta) returns a copy.
///
/// The kernel's header describes the members and their flags.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // struct tpacket4_meta
pub struct Meta {
    pub tstamp: u64,
    pub flags: u32,
    pub wire_len: u32,
    pub ifindex: u32,
    /// Big endian
    pub protocol: u16,
    pub hatype: u16,
    pub vlan_tci: u16,
    pub vlan_tpid: u16,
    pub pkt_type: u8,
    pub halen: u8,
    pub xdp_meta_len: u16,
    pub addr: [u8; 8],
    pub hash: u32,
    pub gso_size: u16,
    pub csum_start: u16,
    pub csum_offset: u16,
    pub gso_type: u8,
    reserved0: u8,
    pub inner_start: u16,
    reserved1: u16,
    reserved: [u32; 2],
}

/// Counters of a socket. Reading them sets them to 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // struct tpacket_stats_v4
pub struct Stats {
    pub packets: u32,
    pub drops: u32,
    /// Drops: the program had all slots
    pub rx_ring_full: u64,
    /// Drops: too few frames were posted
    pub rx_no_desc: u64,
    pub rx_invalid_descs: u64,
    /// Kicks that a full device stopped
    pub tx_ring_full: u64,
    /// Kicks that found nothing posted
    pub tx_no_desc: u64,
    pub tx_invalid_descs: u64,
}

const _: () = assert!(std::mem::size_of::<Meta>() == META_SIZE);
const _: () = assert!(std::mem::size_of::<MemregReq>() == 32);
const _: () = assert!(std::mem::size_of::<Req4>() == 16);

/// A descriptor, in memory shared with the kernel: the frame number, and a word of
/// length, offset, errno and flags. A store of the word passes the slot on.
#[repr(C)]
pub struct Desc {
    idx: AtomicU64,
    word: AtomicU64,
}

/// The second half of a descriptor
#[derive(Clone, Copy)]
pub struct Word(u64);

#[cfg(target_endian = "little")]
mod shift {
    pub const LEN: u32 = 0;
    pub const OFFSET: u32 = 32;
    pub const ERROR: u32 = 48;
    pub const FLAGS: u32 = 56;
}
#[cfg(target_endian = "big")]
mod shift {
    pub const LEN: u32 = 32;
    pub const OFFSET: u32 = 16;
    pub const ERROR: u32 = 8;
    pub const FLAGS: u32 = 0;
}

impl Word {
    pub const EMPTY: Word = Word(0);
    const KERNEL: u64 = (DESC_KERNEL as u64) << shift::FLAGS;
    /// Flags that go with a packet from one ring to another
    const KEPT: u64 = 0xffff_ffff << shift::LEN
        | 0xffff << shift::OFFSET
        | ((PKT_CONT | META) as u64) << shift::FLAGS;

    #[inline]
    pub fn new(len: u32, offset: u16, flags: u8) -> Word {
        Word(
            (len as u64) << shift::LEN
                | (offset as u64) << shift::OFFSET
                | (flags as u64) << shift::FLAGS,
        )
    }

    #[inline]
    pub fn len(self) -> u32 {
        (self.0 >> shift::LEN) as u32
    }

    #[inline]
    pub fn offset(self) -> u16 {
        (self.0 >> shift::OFFSET) as u16
    }

    #[inline]
    pub fn error(self) -> u8 {
        (self.0 >> shift::ERROR) as u8
    }

    #[inline]
    pub fn flags(self) -> u8 {
        (self.0 >> shift::FLAGS) as u8
    }

    /// Without error and owner
    #[inline]
    pub fn kept(self) -> Word {
        Word(self.0 & Self::KEPT)
    }
}

impl Desc {
    /// Has the kernel returned the slot?
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.word.load(Ordering::Acquire) & Word::KERNEL == 0
    }

    /// Of a slot that the program owns
    #[inline]
    pub fn word(&self) -> Word {
        Word(self.word.load(Ordering::Relaxed))
    }

    /// Of a slot that the program owns
    #[inline]
    pub fn read(&self) -> (u64, Word) {
        (self.idx.load(Ordering::Relaxed), self.word())
    }

    /// Fill a slot that the program owns, and pass it to the kernel.
    #[inline]
    pub fn give(&self, idx: u64, word: Word) {
        self.idx.store(idx, Ordering::Relaxed);
        self.word.store(word.0 | Word::KERNEL, Ordering::Release);
    }

    /// Pass a slot to the kernel, with its frame, empty.
    #[inline]
    pub fn give_same(&self) {
        self.word.store(Word::KERNEL, Ordering::Release);
    }

    /// End readability of the socket at this slot, which the program owns.
    #[inline]
    pub fn mark_seen(&self) {
        let seen = (DESC_SEEN as u64) << shift::FLAGS;
        self.word.store(seen, Ordering::Relaxed);
    }

    /// The kernel's part, for tests
    #[cfg(test)]
    pub fn kernel_returns(&self, idx: u64, len: u32, offset: u16, error: u8, flags: u8) {
        assert!(!self.is_ready());
        let word = Word::new(len, offset, flags).0 | (error as u64) << shift::ERROR;
        self.idx.store(idx, Ordering::Relaxed);
        self.word.store(word, Ordering::Release);
    }

    #[cfg(test)]
    pub fn new() -> Desc {
        Desc {
            idx: AtomicU64::new(0),
            word: AtomicU64::new(0),
        }
    }
}
