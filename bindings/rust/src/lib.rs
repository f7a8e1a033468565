// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
//! Rings of Linux packet sockets without copies: `AF_PACKET` V4.
//!
//! A program has an [`Area`] of memory, divided into frames. It posts empty frames on
//! the Rx ring of a [`Socket`] and gets them back with packets; it posts packets on the
//! Tx ring and gets the frames back once they are sent. In copy mode, the socket is a tap
//! on any device. In zero-copy mode, it owns a queue pair of a device, and packets are
//! not copied.
//!
//! Types keep track of who owns a frame. A [`Frame`] or [`Packet`] is a frame that the
//! program owns. It cannot be cloned, and posting it moves it into the ring, so no frame
//! can be posted twice or changed while the kernel has it.
//!
//! ```no_run
//! use tpacket4::{Area, Socket};
//!
//! fn main() -> std::io::Result<()> {
//!     let (area, mut frames) = Area::new(1024, 2048)?;
//!     let mut socket = Socket::builder(&area).rx(1024).open()?;
//!     socket.rx.post(&mut frames);
//!     socket.bind("eth0")?;
//!     loop {
//!         let received = socket.rx.peek(64);
//!         for packet in received.iter() {
//!             println!("{} bytes", packet.len());
//!         }
//!         if received.is_empty() {
//!             socket.wait_readable(None)?;
//!         } else {
//!             received.recycle();
//!         }
//!     }
//! }
//! ```
//!
//! The rings are accessed by loads and stores, without a call of C. Only [`Socket::kick`]
//! and the functions that wait make system calls.
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod abi;
mod area;
#[cfg(feature = "tokio")]
mod asynchronous;
mod ring;
mod socket;

pub use abi::{Meta, Stats};
pub use area::{Area, Frame, Packet};
#[cfg(feature = "tokio")]
pub use asynchronous::AsyncSocket;
pub use ring::{Completed, Received, RxRing, Slot, Taken, TxRing};
pub use socket::{Builder, Socket, SocketError, Step};
