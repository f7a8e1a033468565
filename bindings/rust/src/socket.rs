// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
//! Sockets: set-up, system calls, waiting.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{fence, AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::abi::*;
use crate::area::Area;
use crate::ring::{RxRing, TxRing};

/// The mapping of both rings and of the status page behind them
struct Map {
    addr: NonNull<u8>,
    len: usize,
}

// SAFETY: Only atomics in it are accessed.
unsafe impl Send for Map {}
// SAFETY: as above
unsafe impl Sync for Map {}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: Rings keep the mapping.
        unsafe { libc::munmap(self.addr.as_ptr().cast(), self.len) };
    }
}

/// A packet socket with rings
///
/// The rings are members, so that both can be used at the same time.
pub struct Socket {
    /// Receives
    pub rx: RxRing,
    /// Sends
    pub tx: TxRing,
    fd: OwnedFd,
    map: Arc<Map>,
    /// Bytes of the rings
    rings: usize,
    has_rx: bool,
    protocol: u16,
}

/// Options of a [`Socket`]; [`Socket::builder`] makes one.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    area: Area,
    rx: u32,
    tx: u32,
    headroom: u32,
    flags: u32,
    protocol: u16,
    mr_fd: Option<RawFd>,
}

/// What failed in [`Builder::open`]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The number of descriptors
    Options,
    /// `socket()`
    Socket,
    /// `PACKET_VERSION`
    Version,
    /// `PACKET_MEMREG`
    Memreg,
    /// `PACKET_RX_RING` or `PACKET_TX_RING`
    Ring,
    /// `mmap()` of the rings
    Mmap,
}

/// An error of [`Builder::open`]
#[derive(Debug)]
pub struct SocketError {
    /// Where
    pub step: Step,
    /// What
    pub source: io::Error,
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match (self.step, self.source.raw_os_error()) {
            (Step::Options, _) => "no ring, or more than 2^20 descriptors",
            (Step::Socket, Some(libc::EPERM)) => "a packet socket needs CAP_NET_RAW",
            (Step::Socket, _) => "cannot create a packet socket",
            (Step::Version, _) => "this kernel has no TPACKET_V4",
            (Step::Memreg, Some(libc::ENOBUFS)) => {
                "the packet memory exceeds the limit of locked memory (ulimit -l)"
            }
            (Step::Memreg, _) => {
                "frames must have a power of two of bytes, from 2048 to the page size"
            }
            (Step::Ring, _) => "a ring needs a power of two of descriptors that fills whole pages",
            (Step::Mmap, _) => "cannot map the rings",
        };
        write!(f, "{text}: {}", self.source)
    }
}

impl std::error::Error for SocketError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl From<SocketError> for io::Error {
    fn from(e: SocketError) -> io::Error {
        io::Error::new(e.source.kind(), e)
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn set<T>(fd: RawFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    let len = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: a value of this size
    check(unsafe { libc::setsockopt(fd, level, option, ptr::from_ref(value).cast(), len) })
        .map(|_| ())
}

impl Builder {
    /// Descriptors of the Rx ring: a power of two that fills whole pages, 256 or more
    pub fn rx(mut self, nr: u32) -> Builder {
        self.rx = nr;
        self
    }

    /// Descriptors of the Tx ring
    pub fn tx(mut self, nr: u32) -> Builder {
        self.tx = nr;
        self
    }

    /// Bytes to reserve before the data of each received packet
    pub fn headroom(mut self, bytes: u32) -> Builder {
        self.headroom = bytes;
        self
    }

    /// Packets have [`Meta`].
    pub fn meta(mut self) -> Builder {
        self.flags |= RING_META;
        self
    }

    /// In zero-copy mode, the stack gets copies of received packets.
    pub fn to_stack(mut self) -> Builder {
        self.flags |= RING_TO_STACK;
        self
    }

    /// In zero-copy mode, the host gets the packets that an XDP program passes to it also
    /// while this program is slow. `to_stack()` implies it.
    pub fn keep(mut self) -> Builder {
        self.flags |= RING_KEEP;
        self
    }

    /// Only receive this protocol, for example `0x0800`, in copy mode.
    pub fn protocol(mut self, protocol: u16) -> Builder {
        self.protocol = protocol;
        self
    }

    /// Use the area of another socket of this process, which has registered it.
    pub fn share(mut self, other: &Socket) -> Builder {
        self.mr_fd = Some(other.as_raw_fd());
        self
    }

    /// Create the socket. It receives nothing before [`Socket::bind`].
    pub fn open(&self) -> Result<Socket, SocketError> {
        let at = |step| move |source| SocketError { step, source };
        let rings = (self.rx as usize + self.tx as usize) * mem::size_of::<Desc>();
        if rings == 0 || self.rx.max(self.tx) > 1 << 20 {
            let invalid = io::Error::from_raw_os_error(libc::EINVAL);
            return Err(at(Step::Options)(invalid));
        }
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is involved
        let raw = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) });
        let raw = raw.map_err(at(Step::Socket))?;
        // SAFETY: It is new.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        set(raw, libc::SOL_PACKET, PACKET_VERSION, &TPACKET_V4).map_err(at(Step::Version))?;
        if self.mr_fd.is_none() {
            self.register(raw).map_err(at(Step::Memreg))?;
        }
        let mr_fd = self.mr_fd.unwrap_or(raw);
        let tx_flags = self.flags & RING_META;
        for (option, desc_nr, flags) in [
            (PACKET_RX_RING, self.rx, self.flags),
            (PACKET_TX_RING, self.tx, tx_flags),
        ] {
            if desc_nr > 0 {
                let req = Req4 {
                    mr_fd,
                    desc_nr,
                    flags,
                    reserved: 0,
                };
                set(raw, libc::SOL_PACKET, option, &req).map_err(at(Step::Ring))?;
            }
        }
        self.map(fd, rings).map_err(at(Step::Mmap))
    }

    fn register(&self, fd: RawFd) -> io::Result<()> {
        let least = if self.flags & RING_META != 0 {
            META_SIZE as u32
        } else {
            0
        };
        let req = MemregReq {
            addr: self.area.addr(),
            len: self.area.len() as u64,
            frame_size: self.area.frame_size() as u32,
            data_headroom: self.headroom.max(least),
            ..MemregReq::default()
        };
        set(fd, libc::SOL_PACKET, PACKET_MEMREG, &req)
    }

    fn map(&self, fd: OwnedFd, rings: usize) -> io::Result<Socket> {
        // SAFETY: no memory is involved
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let len = rings + page;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping
        let addr = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                prot,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if addr == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let addr: NonNull<u8> = NonNull::new(addr.cast()).expect("mmap() returns no NULL");
        let map = Arc::new(Map { addr, len });
        let first: NonNull<Desc> = addr.cast();
        // SAFETY: The Tx ring is behind the Rx ring, in the mapping.
        let (rx, tx) = unsafe {
            let second = NonNull::new_unchecked(first.as_ptr().add(self.rx as usize));
            (
                RxRing::new(first, self.rx, self.area.clone(), map.clone()),
                TxRing::new(second, self.tx, self.area.clone(), map.clone()),
            )
        };
        let (has_rx, protocol) = (self.rx > 0, self.protocol);
        Ok(Socket {
            rx,
            tx,
            fd,
            map,
            rings,
            has_rx,
            protocol,
        })
    }
}

impl Socket {
    /// Options for a socket on this area
    pub fn builder(area: &Area) -> Builder {
        let area = area.clone();
        Builder {
            area,
            rx: 0,
            tx: 0,
            headroom: 0,
            flags: 0,
            protocol: 0,
            mr_fd: None,
        }
    }

    /// Bind the socket to a device, by name. It then receives.
    pub fn bind(&self, device: &str) -> io::Result<()> {
        let name = CString::new(device)?;
        // SAFETY: a string
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        self.bind_index(index)
    }

    /// Bind the socket to the device with this index; 0: receive from all.
    pub fn bind_index(&self, index: u32) -> io::Result<()> {
        let protocol = if self.protocol == 0 {
            libc::ETH_P_ALL as u16
        } else {
            self.protocol
        };
        // SAFETY: All zeros are a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = if self.has_rx { protocol.to_be() } else { 0 };
        address.sll_ifindex = index as i32;
        let len = mem::size_of_val(&address) as libc::socklen_t;
        // SAFETY: an address of this size
        check(unsafe { libc::bind(self.as_raw_fd(), ptr::from_ref(&address).cast(), len) })
            .map(|_| ())
    }

    /// Enter zero-copy mode with a queue pair of the device, counted from 0. Needs
    /// CAP_NET_ADMIN.
    pub fn zero_copy(&self, queue: u16) -> io::Result<()> {
        set(
            self.as_raw_fd(),
            libc::SOL_PACKET,
            PACKET_ZEROCOPY,
            &(queue as i32 + 1),
        )
    }

    /// Leave zero-copy mode. Frames come back with `ECANCELED`.
    pub fn copy(&self) -> io::Result<()> {
        set(self.as_raw_fd(), libc::SOL_PACKET, PACKET_ZEROCOPY, &0i32)
    }

    /// Join a fanout group, of a type `PACKET_FANOUT_...`.
    pub fn fanout(&self, group: u16, kind: u16) -> io::Result<()> {
        let value = group as u32 | (kind as u32) << 16;
        set(self.as_raw_fd(), libc::SOL_PACKET, PACKET_FANOUT, &value)
    }

    /// Let the device receive packets for all addresses while the socket is open.
    pub fn promiscuous(&self, index: u32) -> io::Result<()> {
        // SAFETY: All zeros are a valid packet_mreq.
        let mut mreq: libc::packet_mreq = unsafe { mem::zeroed() };
        mreq.mr_ifindex = index as i32;
        mreq.mr_type = libc::PACKET_MR_PROMISC as u16;
        set(
            self.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            &mreq,
        )
    }

    /// Let the kernel send what was posted. Does not wait for a full device, but leaves
    /// packets to the next kick.
    #[inline]
    pub fn kick(&self) -> io::Result<()> {
        let fd = self.as_raw_fd();
        // SAFETY: no memory is involved
        let sent = unsafe { libc::send(fd, ptr::null(), 0, libc::MSG_DONTWAIT) };
        if sent < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::WouldBlock {
                return Err(error);
            }
        }
        Ok(())
    }

    fn status(&self, word: usize) -> bool {
        fence(Ordering::SeqCst);
        // SAFETY: The status page is behind the rings.
        unsafe {
            let page = self.map.addr.as_ptr().add(self.rings).cast::<AtomicU32>();
            (*page.add(word)).load(Ordering::Relaxed) != 0
        }
    }

    /// Does the kernel wait for a [`kick`](Self::kick) after packets were posted?
    #[inline]
    pub fn need_kick(&self) -> bool {
        self.status(0)
    }

    /// Does the kernel wait for a call after frames were posted (zero-copy mode)?
    #[inline]
    pub fn rx_need_kick(&self) -> bool {
        self.status(1)
    }

    /// Counters, which this sets to 0
    pub fn stats(&self) -> io::Result<Stats> {
        let mut stats = Stats::default();
        let mut len = mem::size_of::<Stats>() as libc::socklen_t;
        // SAFETY: a value of this size
        check(unsafe {
            libc::getsockopt(
                self.as_raw_fd(),
                libc::SOL_PACKET,
                PACKET_STATISTICS,
                ptr::from_mut(&mut stats).cast(),
                &mut len,
            )
        })?;
        Ok(stats)
    }

    /// Sleep until there are packets on the Rx ring, for `timeout` at most. Returns
    /// whether there are.
    pub fn wait_readable(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.wait(libc::POLLIN, timeout)
    }

    /// Sleep until frames have come back on the Tx ring, for `timeout` at most.
    pub fn wait_writable(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.wait(libc::POLLOUT, timeout)
    }

    fn wait(&mut self, events: i16, timeout: Option<Duration>) -> io::Result<bool> {
        if events & libc::POLLIN != 0 {
            self.rx.prepare_poll();
        }
        let mut pollfd = libc::pollfd {
            fd: self.as_raw_fd(),
            events,
            revents: 0,
        };
        let ms = timeout.map_or(-1, |t| t.as_millis().min(i32::MAX as u128) as i32);
        // SAFETY: one struct
        match check(unsafe { libc::poll(&mut pollfd, 1, ms) }) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(false),
            other => other?,
        };
        if pollfd.revents & libc::POLLERR != 0 {
            self.take_error()?;
        }
        Ok(pollfd.revents & events != 0)
    }

    /// The socket's error, such as `ENETDOWN`, which is reported once
    pub(crate) fn take_error(&self) -> io::Result<()> {
        let mut error = 0i32;
        let mut len = mem::size_of_val(&error) as libc::socklen_t;
        // SAFETY: a value of this size
        check(unsafe {
            libc::getsockopt(
                self.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                ptr::from_mut(&mut error).cast(),
                &mut len,
            )
        })?;
        match error {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("fd", &self.fd)
            .finish_non_exhaustive()
    }
}
