// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
//! Packet memory, and the frames that the program owns.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use crate::abi::{Meta, Word, META, META_SIZE, PKT_CONT};

/// Memory for packets, divided into frames of equal size.
///
/// Clones refer to the same memory, which is unmapped with the last of them.
#[derive(Clone)]
pub struct Area {
    inner: Arc<Inner>,
}

struct Inner {
    addr: NonNull<u8>,
    len: usize,
    memfd: OwnedFd,
    id: u32,
    frame_size: u32,
    nr_frames: u32,
}

// SAFETY: The memory is only accessed by frames, each of which has one owner.
unsafe impl Send for Inner {}
// SAFETY: as above
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: This maps nothing else, and all references into it borrow an Area.
        unsafe { libc::munmap(self.addr.as_ptr().cast(), self.len) };
    }
}

/// A frame that the program owns. A frame that is dropped is never used again.
#[must_use = "a frame that is dropped is never used again"]
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub(crate) idx: u32,
    /// Which area it is of
    pub(crate) area: u32,
}

/// A frame that the program owns, with data.
///
/// A packet longer than a frame has several of them; all but the last are followed by
/// [`more`](Packet::more).
#[must_use = "a frame that is dropped is never used again"]
#[derive(Debug, PartialEq, Eq)]
pub struct Packet {
    pub(crate) frame: Frame,
    pub(crate) len: u32,
    pub(crate) offset: u16,
    pub(crate) flags: u8,
    pub(crate) error: u8,
}

impl Area {
    /// Allocate memory for `nr_frames` frames of `frame_size` bytes: a power of two, from
    /// 2048 to the page size. Returns the area and all of its frames.
    pub fn new(nr_frames: u32, frame_size: u32) -> io::Result<(Area, Vec<Frame>)> {
        // SAFETY: a constant string
        let fd = unsafe { libc::memfd_create(c"tpacket4".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: It is new.
        let memfd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: no memory is involved
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let bytes = nr_frames as usize * frame_size as usize;
        let len = bytes.checked_next_multiple_of(page).filter(|len| *len > 0);
        let len = len.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: no memory is involved
        if unsafe { libc::ftruncate(fd, len as libc::off_t) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new mapping
        let addr = unsafe {
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), len, prot, libc::MAP_SHARED, fd, 0)
        };
        if addr == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let addr = NonNull::new(addr.cast()).expect("mmap() returns no NULL");
        Ok(Area::with_memory(addr, len, memfd, nr_frames, frame_size))
    }

    fn with_memory(
        addr: NonNull<u8>,
        len: usize,
        memfd: OwnedFd,
        nr_frames: u32,
        frame_size: u32,
    ) -> (Area, Vec<Frame>) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(id != u32::MAX, "too many areas");
        let frames = (0..nr_frames)
            .rev()
            .map(|idx| Frame { idx, area: id })
            .collect();
        let inner = Inner {
            addr,
            len,
            memfd,
            id,
            frame_size,
            nr_frames,
        };
        (
            Area {
                inner: Arc::new(inner),
            },
            frames,
        )
    }

    /// Bytes of a frame
    #[inline]
    pub fn frame_size(&self) -> usize {
        self.inner.frame_size as usize
    }

    /// Number of frames
    pub fn nr_frames(&self) -> usize {
        self.inner.nr_frames as usize
    }

    pub(crate) fn addr(&self) -> u64 {
        self.inner.addr.as_ptr() as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.len
    }

    #[inline]
    pub(crate) fn id(&self) -> u32 {
        self.inner.id
    }

    /// The memory of a frame
    ///
    /// # Safety
    ///
    /// The caller owns the frame, and nothing else refers to it.
    #[inline]
    pub(crate) unsafe fn slice<'a>(&self, idx: u64, offset: usize, len: usize) -> &'a mut [u8] {
        let size = self.inner.frame_size as usize;
        assert!(idx < self.inner.nr_frames as u64 && offset + len <= size);
        // SAFETY: in the mapping, and the caller's
        unsafe {
            let start = self.inner.addr.as_ptr().add(idx as usize * size + offset);
            std::slice::from_raw_parts_mut(start, len)
        }
    }

    #[inline]
    fn check(&self, frame: &Frame) {
        assert!(frame.area == self.inner.id, "a frame of another area");
    }

    /// All bytes of a frame, to fill it
    pub fn frame_mut<'a>(&'a self, frame: &'a mut Frame) -> &'a mut [u8] {
        self.check(frame);
        // SAFETY: The frame is borrowed.
        unsafe { self.slice(frame.idx as u64, 0, self.frame_size()) }
    }

    /// The data of a packet
    #[inline]
    pub fn data<'a>(&'a self, packet: &'a Packet) -> &'a [u8] {
        self.check(&packet.frame);
        let (offset, len) = (packet.offset as usize, packet.len as usize);
        // SAFETY: The packet is borrowed.
        unsafe { self.slice(packet.frame.idx as u64, offset, len) }
    }

    /// The data of a packet, to change it
    #[inline]
    pub fn data_mut<'a>(&'a self, packet: &'a mut Packet) -> &'a mut [u8] {
        self.check(&packet.frame);
        let (offset, len) = (packet.offset as usize, packet.len as usize);
        // SAFETY: The packet is borrowed.
        unsafe { self.slice(packet.frame.idx as u64, offset, len) }
    }

    /// The metadata of a packet, if the ring has them
    pub fn meta(&self, packet: &Packet) -> Option<Meta> {
        self.check(&packet.frame);
        // SAFETY: The packet is borrowed.
        (packet.flags & META != 0).then(|| unsafe { self.meta_of(packet.frame.idx as u64) })
    }

    /// # Safety
    ///
    /// The caller owns the frame, and nothing else refers to it.
    pub(crate) unsafe fn meta_of(&self, idx: u64) -> Meta {
        // SAFETY: as for the caller
        let bytes = unsafe { self.slice(idx, 0, META_SIZE) };
        // SAFETY: Any bytes are valid, and a frame is aligned.
        unsafe { ptr::read(bytes.as_ptr().cast()) }
    }

    /// Write the metadata of a packet to send, whose offset must be at least 64.
    pub fn set_meta(&self, packet: &mut Packet, meta: &Meta) {
        self.check(&packet.frame);
        assert!(packet.offset as usize >= META_SIZE);
        // SAFETY: The packet is borrowed, and a frame is aligned.
        unsafe {
            let bytes = self.slice(packet.frame.idx as u64, 0, META_SIZE);
            ptr::write(bytes.as_mut_ptr().cast(), *meta);
        }
        packet.flags |= META;
    }
}

impl AsFd for Area {
    /// The memfd, for example to pass it to another process. What that process writes,
    /// Rust does not know of: read what is shared with care.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.memfd.as_fd()
    }
}

impl fmt::Debug for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Area")
            .field("nr_frames", &self.inner.nr_frames)
            .field("frame_size", &self.inner.frame_size)
            .field("memfd", &self.inner.memfd.as_raw_fd())
            .finish()
    }
}

impl Packet {
    /// A packet to send: `len` bytes at `offset` of a frame
    pub fn new(frame: Frame, offset: u16, len: u32) -> Packet {
        Packet {
            frame,
            len,
            offset,
            flags: 0,
            error: 0,
        }
    }

    /// Bytes of data in the frame
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Is there no data?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Does the packet go on in the next frame?
    pub fn more(&self) -> bool {
        self.flags & PKT_CONT != 0
    }

    /// Say whether the packet goes on in the next frame.
    pub fn set_more(&mut self, more: bool) {
        self.flags = self.flags & !PKT_CONT | if more { PKT_CONT } else { 0 };
    }

    /// Set the place of the data in the frame.
    pub fn set_data(&mut self, offset: u16, len: u32) {
        (self.offset, self.len) = (offset, len);
    }

    /// The kernel's error for this frame: it has no packet, or was not sent.
    pub fn error(&self) -> Option<io::Error> {
        (self.error != 0).then(|| io::Error::from_raw_os_error(self.error.into()))
    }

    /// The frame alone
    pub fn into_frame(self) -> Frame {
        self.frame
    }

    #[inline]
    pub(crate) fn word(&self) -> Word {
        Word::new(self.len, self.offset, self.flags)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An area in memory of Rust's, as miri has no memfd
    pub fn on_heap(nr_frames: u32) -> (Area, Vec<Frame>) {
        let memory = vec![0u64; nr_frames as usize * 2048 / 8].leak();
        let addr = NonNull::new(memory.as_mut_ptr().cast()).unwrap();
        // SAFETY: Standard input stays open; the area is leaked below.
        let memfd = unsafe { OwnedFd::from_raw_fd(libc::dup(0)) };
        let (area, frames) = Area::with_memory(addr, memory.len() * 8, memfd, nr_frames, 2048);
        std::mem::forget(area.clone());
        (area, frames)
    }

    #[test]
    fn frames_have_their_own_memory() {
        let (area, mut frames) = on_heap(4);
        let (mut a, mut b) = (frames.pop().unwrap(), frames.pop().unwrap());
        area.frame_mut(&mut a).fill(1);
        area.frame_mut(&mut b).fill(2);
        let (a, b) = (Packet::new(a, 10, 5), Packet::new(b, 0, 2048));
        assert_eq!(area.data(&a), [1; 5]);
        assert_eq!(area.data(&b), [2; 2048]);
    }

    #[test]
    fn metadata_are_those_written() {
        let (area, mut frames) = on_heap(1);
        let mut p = Packet::new(frames.pop().unwrap(), 64, 60);
        assert_eq!(area.meta(&p), None);
        let mut meta = Meta::default();
        (meta.tstamp, meta.gso_size) = (7, 1400);
        area.set_meta(&mut p, &meta);
        assert_eq!(area.meta(&p), Some(meta));
    }

    #[test]
    #[should_panic(expected = "another area")]
    fn a_frame_is_of_its_area() {
        let (area, _) = on_heap(1);
        let (_, mut others) = on_heap(1);
        area.frame_mut(&mut others[0]);
    }

    #[test]
    #[should_panic]
    fn data_end_in_the_frame() {
        let (area, mut frames) = on_heap(2);
        area.data(&Packet::new(frames.pop().unwrap(), 2000, 49));
    }
}
