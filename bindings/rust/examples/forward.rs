// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
//! Receives on a device, swaps MAC addresses and sends back: l2fwd.
//!
//! usage: forward DEVICE [COUNT [QUEUE]]; with a queue in zero-copy mode

use std::env;
use std::io;
use std::time::Duration;

use tpacket4::{Area, Socket};

const FRAMES: u32 = 2048;
const BATCH: usize = 64;

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [device, rest @ ..] = args.as_slice() else {
        eprintln!("usage: forward DEVICE [COUNT [QUEUE]]");
        std::process::exit(2);
    };
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidInput, "not a number");
    let count = rest
        .first()
        .map_or(Ok(u64::MAX), |n| n.parse().map_err(invalid))?;
    let queue = rest
        .get(1)
        .map(|n| n.parse::<u16>().map_err(invalid))
        .transpose()?;

    let (area, mut frames) = Area::new(FRAMES, 2048)?;
    let mut socket = Socket::builder(&area).rx(FRAMES).tx(FRAMES).open()?;
    socket.rx.post(&mut frames);
    if let Some(queue) = queue {
        socket.zero_copy(queue)?;
    }
    socket.bind(device)?;
    eprintln!("ready");
    let mut forwarded = 0;
    while forwarded < count {
        let mut received = socket.rx.peek(BATCH);
        let n = received.len();
        for i in 0..n {
            if let Some(addresses) = received.data_mut(i).first_chunk_mut::<12>() {
                let (to, from) = addresses.split_at_mut(6);
                to.swap_with_slice(from);
            }
        }
        let mut sent = 0;
        if n > 0 {
            sent = received.forward(&mut socket.tx);
            forwarded += sent as u64;
        }
        // While more packets wait, they are sent with those.
        let last = n < BATCH || sent < n;
        if last && socket.tx.pending() > 0 && (queue.is_none() || socket.need_kick()) {
            socket.kick()?;
        }
        let refilled = socket.tx.peek(BATCH).refill(&mut socket.rx);
        if n == 0 && refilled == 0 {
            socket.wait_readable(Some(Duration::from_millis(100)))?;
        }
    }
    while socket.tx.pending() > 0 {
        socket.kick()?;
        if socket.tx.peek(64).refill(&mut socket.rx) == 0 {
            socket.wait_writable(Some(Duration::from_millis(100)))?;
        }
    }
    println!("{forwarded} packets");
    Ok(())
}
