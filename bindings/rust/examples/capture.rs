// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
//! Captures packets to a pcapng file, with timestamps of nanoseconds.
//!
//! usage: capture DEVICE FILE [COUNT]

use std::env;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use tpacket4::{Area, Slot, Socket};

const FRAMES: u32 = 4096;

/// The section header, and an interface of Ethernet with timestamps in ns
fn header(out: &mut impl Write) -> io::Result<()> {
    for word in [0x0a0d0d0a, 28, 0x1a2b3c4d, 1, u32::MAX, u32::MAX, 28] {
        out.write_all(&u32::to_ne_bytes(word))?;
    }
    out.write_all(&1u32.to_ne_bytes())?;
    out.write_all(&32u32.to_ne_bytes())?;
    out.write_all(&1u16.to_ne_bytes())?; // LINKTYPE_ETHERNET
    out.write_all(&0u16.to_ne_bytes())?;
    out.write_all(&0u32.to_ne_bytes())?;
    for half in [9u16, 1] {
        out.write_all(&half.to_ne_bytes())?; // if_tsresol: 10^-9
    }
    out.write_all(&[9, 0, 0, 0])?;
    out.write_all(&0u32.to_ne_bytes())?;
    out.write_all(&32u32.to_ne_bytes())
}

/// An enhanced packet block of the slots of one packet
fn block(out: &mut impl Write, slots: &[Slot<'_>]) -> io::Result<()> {
    let captured: usize = slots.iter().map(Slot::len).sum();
    let meta = slots[0].meta().unwrap_or_default();
    let length = (meta.wire_len as usize).max(captured);
    let padding = captured.wrapping_neg() & 3;
    let total = (32 + captured + padding) as u32;
    for word in [
        6,
        total,
        0,
        (meta.tstamp >> 32) as u32,
        meta.tstamp as u32,
        captured as u32,
        length as u32,
    ] {
        out.write_all(&u32::to_ne_bytes(word))?;
    }
    for slot in slots {
        out.write_all(slot.data())?;
    }
    out.write_all(&[0; 3][..padding])?;
    out.write_all(&total.to_ne_bytes())
}

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [device, file, rest @ ..] = args.as_slice() else {
        eprintln!("usage: capture DEVICE FILE [COUNT]");
        std::process::exit(2);
    };
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidInput, "not a number");
    let count = rest
        .first()
        .map_or(Ok(u64::MAX), |n| n.parse().map_err(invalid))?;

    let mut out = BufWriter::new(File::create(file)?);
    header(&mut out)?;
    let (area, mut frames) = Area::new(FRAMES, 2048)?;
    let mut socket = Socket::builder(&area).rx(FRAMES).meta().open()?;
    socket.rx.post(&mut frames);
    socket.bind(device)?;
    eprintln!("ready");
    let mut packets = 0;
    while packets < count {
        let received = socket.rx.peek(256);
        let slots: Vec<_> = received.iter().collect();
        let mut done = 0;
        // The rest of a packet may not be there yet.
        for packet in slots
            .split_inclusive(|s| !s.more())
            .filter(|p| !p[p.len() - 1].more())
        {
            done += packet.len();
            if packet[0].error().is_none() && packets < count {
                block(&mut out, packet)?;
                packets += 1;
            }
        }
        if done == 0 {
            out.flush()?;
            socket.wait_readable(None)?;
        } else {
            received.first(done).recycle();
        }
    }
    out.flush()?;
    let stats = socket.stats()?;
    println!("{packets} packets, {} dropped", stats.drops);
    Ok(())
}
