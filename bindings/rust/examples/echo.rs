// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
//! Answers pings of IPv6 or IPv4 to any address of the device's link, with tokio.
//!
//! usage: echo DEVICE COUNT

use std::env;
use std::io;

use tpacket4::{Area, AsyncSocket, Packet, Socket};

const FRAMES: u32 = 1024;
const ETH: usize = 14;

/// Turn an ICMP echo request into its reply. The sum of what is covered changes by the
/// type only, so the checksum is adjusted.
fn answer(data: &mut [u8]) -> bool {
    let icmp = match (data.get(12..14), data.get(ETH)) {
        (Some([0x08, 0x00]), Some(0x45)) if data[ETH + 9] == 1 => ETH + 20,
        (Some([0x86, 0xdd]), Some(_)) if data[ETH + 6] == 58 => ETH + 40,
        _ => return false,
    };
    let (request, reply, addresses) = if icmp == ETH + 20 {
        (8, 0, ETH + 12..ETH + 20)
    } else {
        (128, 129, ETH + 8..icmp)
    };
    if data.len() < icmp + 8 || data[icmp] != request {
        return false;
    }
    data[icmp] = reply;
    let sum = u16::from_be_bytes([data[icmp + 2], data[icmp + 3]]);
    let old = u32::from(!sum) + 0xffff - (u32::from(request) << 8) + (u32::from(reply) << 8);
    let folded = (old & 0xffff) + (old >> 16);
    let folded = ((folded & 0xffff) + (folded >> 16)) as u16;
    data[icmp + 2..icmp + 4].copy_from_slice(&(!folded).to_be_bytes());
    let (to, from) = data.split_at_mut(6);
    to.swap_with_slice(&mut from[..6]);
    let middle = (addresses.end - addresses.start) / 2;
    let (source, destination) = data[addresses].split_at_mut(middle);
    source.swap_with_slice(destination);
    true
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [device, count] = args.as_slice() else {
        eprintln!("usage: echo DEVICE COUNT");
        std::process::exit(2);
    };
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidInput, "not a number");
    let count: u64 = count.parse().map_err(invalid)?;

    let (area, mut frames) = Area::new(FRAMES, 2048)?;
    let mut socket = Socket::builder(&area).rx(FRAMES).tx(FRAMES).open()?;
    socket.rx.post(&mut frames);
    socket.bind(device)?;
    let mut socket = AsyncSocket::new(socket)?;
    eprintln!("ready");
    let mut answered = 0;
    while answered < count {
        socket.readable().await?;
        let socket = socket.get_mut();
        let (mut replies, mut others) = (Vec::new(), Vec::new());
        for mut packet in socket.rx.peek(64).take() {
            if packet.error().is_none() && answer(area.data_mut(&mut packet)) {
                replies.push(packet);
            } else {
                others.push(packet.into_frame());
            }
        }
        answered += replies.len() as u64;
        socket.rx.post(&mut others);
        while !replies.is_empty() || socket.tx.pending() > 0 {
            socket.tx.send(&mut replies);
            socket.kick()?;
            let mut sent: Vec<_> = socket.tx.peek(64).take().map(Packet::into_frame).collect();
            socket.rx.post(&mut sent);
        }
    }
    println!("{answered} answered");
    Ok(())
}
