// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
//! Sockets in tokio's reactor

use std::io;

use tokio::io::unix::AsyncFd;
use tokio::io::Interest;

use crate::Socket;

/// A [`Socket`] whose packets tasks wait for
pub struct AsyncSocket {
    fd: AsyncFd<Socket>,
}

impl AsyncSocket {
    /// Needs a runtime of tokio with I/O.
    pub fn new(socket: Socket) -> io::Result<AsyncSocket> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        // SAFETY: A socket keeps its file open, and always has the same one.
        let fd = unsafe { AsyncFd::register_with_interest(socket, interest)? };
        Ok(AsyncSocket { fd })
    }

    /// The socket, for all that does not wait
    pub fn get_mut(&mut self) -> &mut Socket {
        self.fd.get_mut()
    }

    /// Wait until there are packets on the Rx ring.
    ///
    /// Cancelling this loses nothing.
    pub async fn readable(&mut self) -> io::Result<()> {
        loop {
            self.fd.get_mut().rx.prepare_poll();
            let mut ready = self.fd.readable_mut().await?;
            ready.get_inner().take_error()?;
            if !ready.get_inner_mut().rx.peek(1).is_empty() {
                return Ok(());
            }
            // Edge-triggered: the next packet makes it ready again.
            ready.clear_ready();
        }
    }

    /// Wait until frames have come back on the Tx ring.
    ///
    /// Cancelling this loses nothing.
    pub async fn writable(&mut self) -> io::Result<()> {
        loop {
            let mut ready = self.fd.writable_mut().await?;
            ready.get_inner().take_error()?;
            if !ready.get_inner_mut().tx.peek(1).is_empty() {
                return Ok(());
            }
            ready.clear_ready();
        }
    }

    /// Leave the reactor.
    pub fn into_inner(self) -> Socket {
        self.fd.into_inner()
    }
}
